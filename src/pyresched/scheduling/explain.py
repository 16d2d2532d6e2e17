"""`explain`: why a job is where it is, asked with the arguments of `run_round`."""

from collections.abc import Mapping

from pyresched.config import SchedulingConfig
from pyresched.model import Instant, Queue, QueueName, RoundResult
from pyresched.nodedb import NodeDb
from pyresched.scheduling.explanation import MOST_ROUNDS, Explanation, explain_inputs
from pyresched.scheduling.inputs import QueueReader, RoundInputs
from pyresched.scheduling.round import run_round
from pyresched.scheduling.state import RoundState

__all__ = ["explain"]


def explain(  # noqa: PLR0917  # the arguments of `run_round` after the job
    job_id: str,
    snapshot: QueueReader,
    nodes: NodeDb,
    queues: Mapping[QueueName, Queue] | Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
    state: RoundState,
    now: Instant,
    *,
    result: RoundResult | None = None,
    most_rounds: int = MOST_ROUNDS,
) -> Explanation:
    """Why the job is where it is after the round with these arguments, and what would start it.

    *result* is that of the round, which is run where it is not given. For the changes of a job
    that is refused at most *most_rounds* rounds are run; 0 proposes none. Raises InputError for
    a job that the snapshot does not have, and what `run_round` raises.
    """
    inputs = RoundInputs.of(snapshot, nodes, queues, pool, config, state, now)
    return explain_inputs(job_id, inputs, run_round, result=result, most_rounds=most_rounds)
