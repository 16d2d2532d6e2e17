"""Memory that follows the journal: the only writer of the job db and the node db in a program.

It ingests what was committed, in the order of the serials, and can neither refuse it nor run
ahead. Keeps INV-J3.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final

from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb, Snapshot
from pyresched.model import (
    Changes,
    Instant,
    Intake,
    Job,
    JobId,
    JobState,
    Node,
    NodeId,
    Outcome,
    PoolName,
    Queue,
    QueueName,
    RunId,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduler.journal import Journal
from pyresched.scheduling.penalties import ShortRun, charged, cutoffs, live

__all__ = ["Sync"]

_UNKNOWN: Final = Outcome.UNKNOWN
_FIRST_ENDED: Final = JobState.SUCCEEDED  # states are numbered so that the ended ones come last


class Sync:
    """Jobs, nodes and queues as of one serial of *journal*; made from all of its rows."""

    def __init__(self, config: SchedulingConfig, journal: Journal) -> None:
        self._journal = journal
        self._db = JobDb(config)
        self._nodes = NodeDb(config)
        self._node_rows: dict[NodeId, Node] = {}
        self._timed_nodes: dict[NodeId, Node] = {}
        self._queue_rows: dict[QueueName, Queue] = {}
        # An operator's queue is there before anybody writes its row.
        configured = {queue.name: queue for queue in config.queues}
        self._queues = ChainMap(self._queue_rows, configured)
        self._snapshot = self._db.snapshot()
        self._cutoffs = cutoffs(config)
        self._short: dict[JobId, ShortRun] = {}
        self._unsettled: set[JobId] = set()
        rows, self._serial = journal.load()
        self._ingest(rows)

    @property
    def serial(self) -> int:
        """The commit up to which memory has followed."""
        return self._serial

    @property
    def db(self) -> JobDb:
        """The job db, for dry runs and checks."""
        return self._db

    @property
    def snapshot(self) -> Snapshot:
        """The jobs as of `serial`."""
        return self._snapshot

    @property
    def nodes(self) -> NodeDb:
        """The nodes as of `serial`, with what is bound to them."""
        return self._nodes

    @property
    def node_rows(self) -> Mapping[NodeId, Node]:
        """The nodes as the journal has them, by id, in the order in which they joined."""
        return self._node_rows

    @property
    def timed_nodes(self) -> Mapping[NodeId, Node]:
        """Those that are disconnected or drain: time alone may end what runs there."""
        return self._timed_nodes

    @property
    def queues(self) -> Mapping[QueueName, Queue]:
        """The queues of the journal, then those that only the configuration names."""
        return self._queues

    @property
    def queue_rows(self) -> Mapping[QueueName, Queue]:
        """The queues that the journal has a row of."""
        return self._queue_rows

    @property
    def pools(self) -> AbstractSet[PoolName]:
        """The pools of known nodes, lost ones included."""
        return frozenset(self._nodes.pools())

    def penalties(self, now: Instant) -> tuple[ShortRun, ...]:
        """The short runs of ended jobs that still count at *now*, by deadline and job.

        Those that no longer do are forgotten: ask with times that never go back.
        """
        if self._short:
            still = sorted(live(self._short.values(), now), key=attrgetter("deadline", "job_id"))
            self._short = {each.job_id: each for each in still}
        return tuple(self._short.values())

    @property
    def unsettled(self) -> AbstractSet[JobId]:
        """The jobs that have not ended and have an unknown run."""
        return self._unsettled

    def catch_up(self) -> None:
        """Bring in what was committed since `serial`, by whomever."""
        rows, serial = self._journal.changes_since(self._serial)
        if serial != self._serial:
            self._ingest(rows)
            self._serial = serial

    def _ingest(self, rows: Changes) -> None:
        """Make memory what *rows* say."""
        for queue in rows.queues:
            self._queue_rows[queue.name] = queue
        if rows.nodes:
            self._node_rows.update((node.id, node) for node in rows.nodes)
            for node in rows.nodes:
                if node.disconnected_at is not None or node.intake is Intake.DRAINING:
                    self._timed_nodes[node.id] = node
                else:
                    self._timed_nodes.pop(node.id, None)
            self._nodes.upsert_many(rows.nodes)
        if not rows.jobs:
            return
        if rows.nodes or self._unsettled:  # a run is given up together with its node
            self._look_for_unknown(rows.jobs)
        if self._cutoffs:
            ended = (job for job in rows.jobs if job.state >= _FIRST_ENDED)
            short = (charged(job, self._cutoffs) for job in ended)
            self._short.update((each.job_id, each) for each in short if each is not None)
        gone: list[JobId] = []
        held: Sequence[Job] = rows.jobs
        if not self._journal.keeps_ended:
            gone = [job.id for job in rows.jobs if job.state >= _FIRST_ENDED]
            if gone:
                held = [job for job in rows.jobs if job.state < _FIRST_ENDED]
        with self._db.write() as txn:
            if gone:
                txn.delete_many(gone)
            txn.upsert_many(held)
        before, self._snapshot = self._snapshot, self._db.snapshot()
        self._nodes.advance(_Moved(self._snapshot.diff(before).pairs()))

    def _look_for_unknown(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.state < _FIRST_ENDED and any(run.outcome is _UNKNOWN for run in job.runs):
                self._unsettled.add(job.id)
            else:
                self._unsettled.discard(job.id)


class _Moved:
    """The part of a diff of the job db that changes what is bound on nodes: most does not."""

    def __init__(self, pairs: Iterable[tuple[Job | None, Job | None]]) -> None:
        self._pairs = [pair for pair in pairs if _active(pair[0]) != _active(pair[1])]

    def pairs(self) -> list[tuple[Job | None, Job | None]]:
        """(before, after) of each job whose active run is another."""
        return self._pairs


def _active(job: Job | None) -> RunId | None:
    """The id of the active run of *job*, if any."""
    run = None if job is None else job.active_run
    return None if run is None else run.id
