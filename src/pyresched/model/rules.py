"""What the group of a job asks for beyond a policy of rescheduling, as it is in effect.

Owns the values behind `Job.rules`, which jobs of a group share; what users write and how it is
merged lies in `blocks` and `spec`. Durations are integer nanoseconds.
"""

from typing import Final

from msgspec import Struct

from pyresched.durations import NANOS
from pyresched.ids import Duration
from pyresched.reschedule import RestartPolicy

__all__ = ["DisconnectRule", "GroupRules", "MigrateRule", "UpdateRule"]

_TEN_SECONDS: Final = 10 * NANOS


class DisconnectRule(Struct, frozen=True, kw_only=True):
    """What becomes of a run whose node is out of reach.

    It is lost `lost_after` from then on; if `replace`, another run starts meanwhile, and
    `reconcile` names which of both goes on. `stop_on_client_after`, if any, is when the node
    itself stops it.
    """

    lost_after: Duration = 0
    stop_on_client_after: Duration | None = None
    replace: bool = True
    reconcile: str = "best_score"


class MigrateRule(Struct, frozen=True, kw_only=True):
    """How many runs of a group leave draining nodes at once, and when one counts as healthy."""

    max_parallel: int = 1
    min_healthy_time: Duration = _TEN_SECONDS


class UpdateRule(Struct, frozen=True, kw_only=True):
    """Until when a deployment must make progress, and when a run of it counts as healthy."""

    progress_deadline: Duration = 600 * NANOS
    min_healthy_time: Duration = _TEN_SECONDS


class GroupRules(Struct, frozen=True, kw_only=True):
    """The rules of one group of jobs: `group` is its identity within the queue.

    `count` is how many jobs it has, `version` that of the submission. Without a part, a job
    behaves as if it were alone: no restart on its node, no tolerance of a node out of reach, it
    migrates by itself, and no deployment. `kill_timeout` is how long a process may take to end.
    """

    group: str = ""
    count: int = 1
    version: int = 0
    restart: RestartPolicy | None = None
    disconnect: DisconnectRule | None = None
    migrate: MigrateRule | None = None
    update: UpdateRule | None = None
    kill_timeout: Duration = 5 * NANOS
