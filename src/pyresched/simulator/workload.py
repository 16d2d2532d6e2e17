"""From a log to jobs of the scheduler: owners, classes, pieces, and how each run will end.

Relies on the nodes only for how wide a piece may be. All randomness is `draws.chance`, so what
becomes of a job depends on its number, its failures so far and the seed, never on order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import (
    Gang,
    GangId,
    GroupRules,
    Job,
    JobId,
    Node,
    QueueName,
    Requirements,
    ResourceVector,
    Rounding,
    TaintEffect,
    parse_quantity,
)
from pyresched.simulator.draws import chance
from pyresched.simulator.formats.swf import Ending, LogJob, WorkloadLog

__all__ = ["PlannedJob", "Workload", "piece_sizes"]

CPU: Final = "cpu"
MEMORY: Final = "memory"
BEST_EFFORT: Final = "best-effort"
UNKNOWN_USER: Final = "user-unknown"
TYPE: Final = "batch"
"""The type of every job of a log."""


class PlannedJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job of the log as it will be submitted: `pieces` are the cores of each of its members."""

    id: JobId
    log: LogJob
    queue: QueueName
    priority_class: str
    pieces: tuple[int, ...]

    @property
    def member_ids(self) -> tuple[JobId, ...]:
        """The ids of what is submitted: the job itself, or the members of its gang."""
        if len(self.pieces) == 1:
            return (self.id,)
        digits = len(str(len(self.pieces) - 1))
        return tuple(JobId(f"{self.id}.{n:0{digits}}") for n in range(len(self.pieces)))


class Workload:
    """The jobs of *log* on *nodes*, under *config*. Raises InputError where they cannot be made.

    *preemptible* are the queue numbers of the log whose jobs give way; None takes those that
    its header names.
    """

    def __init__(
        self,
        log: WorkloadLog,
        *,
        nodes: Sequence[Node],
        config: SchedulingConfig,
        seed: int,
        preemptible: frozenset[int] | None = None,
    ) -> None:
        if CPU not in config.spec.names:
            raise InputError(
                f"the configuration has no resource {CPU!r}; logs ask for processors: add it"
            )
        self._config = config
        self.seed = seed
        # A log says nothing of restarts, so there are none unless the configuration writes some.
        self.restart = config.restart_for(TYPE) if TYPE in config.restart else None
        self._rules = None if self.restart is None else GroupRules(restart=self.restart)
        self._counts_memory = _counts_memory(nodes, config)
        self._requirements: dict[tuple[int, int, str], Requirements] = {}
        self._pools = tuple(dict.fromkeys(node.pool for node in nodes))
        self.preemptible_queues = log.preemptible_queues if preemptible is None else preemptible
        self._preemptible_class = _preemptible_class(config)
        capacity = Counter(cores_of(node.total, config) for node in nodes if _takes_logs(node))
        digits = max(len(str(job.number)) for job in log.jobs)
        sizes: dict[int, tuple[int, ...]] = {}
        jobs = []
        for job in log.jobs:
            pieces = sizes.get(job.cores)
            if pieces is None:
                pieces = sizes[job.cores] = piece_sizes(job.cores, capacity)
            jobs.append(
                PlannedJob(
                    # Padded, so that jobs of one instant stand in the order of their numbers.
                    id=JobId(f"{job.number:0{digits}}"),
                    log=job,
                    queue=_owner(job),
                    priority_class=self._class_of(job),
                    pieces=pieces,
                )
            )
        self.jobs: tuple[PlannedJob, ...] = tuple(jobs)
        self.failure_share: Mapping[int | None, float] = _failure_shares(log.jobs)

    def fails(self, job: PlannedJob, *, failures: int) -> bool:
        """Whether a run of *job* that is left alone fails, after that many *failures*.

        The first does what the log says; later ones fail with the failure share of the job's
        queue in the log (which is a class of jobs there, where ours are their owners).
        """
        if job.log.ending is not Ending.FAILED:
            return False
        if failures == 0:
            return True
        return chance(self.seed, "fails", job.id, failures) < self.failure_share[job.log.queue]

    def failing_piece(self, job: PlannedJob, *, failures: int) -> int:
        """Which member of *job* fails first."""
        return int(chance(self.seed, "piece", job.id, failures) * len(job.pieces))

    def rows(self, job: PlannedJob) -> list[Job]:
        """*job* as rows to submit: one, or the members of a gang."""
        gang = Gang(GangId(job.id), len(job.pieces)) if len(job.pieces) > 1 else None
        return [
            Job(
                id=member,
                queue=job.queue,
                requirements=self._requirements_of(cores, job),
                submitted_at=job.log.submitted_at,
                pools=self._pools,
                gang=gang,
                rules=self._rules,
            )
            for member, cores in zip(job.member_ids, job.pieces, strict=True)
        ]

    def _requirements_of(self, cores: int, job: PlannedJob) -> Requirements:
        memory_kb = (job.log.memory_kb or 0) * cores if self._counts_memory else 0
        key = (cores, memory_kb, job.priority_class)
        found = self._requirements.get(key)
        if found is None:
            quantities = {CPU: cores}
            if memory_kb:
                quantities[MEMORY] = memory_kb * 1024
            vector = self._config.spec.vector(quantities, rounding=Rounding.UP)
            found = self._requirements[key] = Requirements(vector, job.priority_class)
        return found

    def _class_of(self, job: LogJob) -> str:
        if job.queue in self.preemptible_queues:
            return self._preemptible_class
        return self._config.default_priority_class


def _takes_logs(node: Node) -> bool:
    """Whether jobs of a log, which tolerate nothing, may run on *node*."""
    return all(taint.effect is TaintEffect.PREFER_NO_SCHEDULE for taint in node.taints)


def cores_of(amounts: ResourceVector, config: SchedulingConfig) -> int:
    """Whole cores in *amounts*."""
    cpu = config.spec.names.index(CPU)
    return int(amounts[cpu] * parse_quantity(config.resources[cpu].unit))


def piece_sizes(cores: int, nodes: Mapping[int, int]) -> tuple[int, ...]:
    """The cores of each piece of a job of *cores*, on *nodes* (cores of a node to how many).

    A job that fits a node is one piece. A wider one has pieces of one node size and a last one
    with the rest: the largest size of which there are enough nodes, else the largest of all.
    A job wider than all nodes together gets one piece more than they can hold, no more, so
    that it is refused without ever being spelled out.
    """
    sizes = sorted((size for size in nodes if size > 0), reverse=True)
    if not sizes or cores <= sizes[0]:
        return (cores,)
    for size in sizes:
        if _fits(cores, size, nodes):
            return _split(cores, size)
    most = _room(sizes[0], nodes)
    return _split(min(cores, (most + 1) * sizes[0]), sizes[0])


def _fits(cores: int, size: int, nodes: Mapping[int, int]) -> bool:
    """Whether pieces of *size* and one with the rest fit *nodes* when those are empty."""
    whole, rest = divmod(cores, size)
    room = _room(size, nodes)
    # The rest takes a piece's room, or what pieces leave of some node.
    return whole < room or (whole == room and any(own % size >= rest for own in nodes))


def _room(size: int, nodes: Mapping[int, int]) -> int:
    """How many pieces of *size* fit *nodes*."""
    return sum(count * (own // size) for own, count in nodes.items())


def _split(cores: int, size: int) -> tuple[int, ...]:
    whole, rest = divmod(cores, size)
    return (size,) * whole + ((rest,) if rest else ())


def _owner(job: LogJob) -> QueueName:
    return QueueName(UNKNOWN_USER if job.user is None else f"user-{job.user}")


def _failure_shares(jobs: Iterable[LogJob]) -> dict[int | None, float]:
    """Failed jobs over those that ran to an end, by queue number of the log.

    Where all failed it is n/(n + 1): a policy that allows a try a day would go on for ever with
    a job that fails after a day, and surely fails again.
    """
    ran: Counter[int | None] = Counter()
    failed: Counter[int | None] = Counter()
    for job in jobs:
        if job.ending is not Ending.CANCELLED:
            ran[job.queue] += 1
            failed[job.queue] += job.ending is Ending.FAILED
    return {queue: min(failed[queue] / n, n / (n + 1)) for queue, n in ran.items()}


def _preemptible_class(config: SchedulingConfig) -> str:
    """`best-effort` where there is such a class, else the least urgent preemptible one.

    A configuration without any preemptible class has the default class for all jobs.
    """
    names = [each.name for each in config.priority_classes]
    if BEST_EFFORT in names:
        return BEST_EFFORT
    classes = [each for each in config.priority_classes if each.preemptible]
    least = min(classes, key=lambda each: (each.priority, each.name), default=None)
    return config.default_priority_class if least is None else least.name


def _counts_memory(nodes: Sequence[Node], config: SchedulingConfig) -> bool:
    """Whether requests for memory mean anything: only where nodes say how much they have."""
    if MEMORY not in config.spec.names:
        return False
    memory = config.spec.names.index(MEMORY)
    return any(node.total[memory] > 0 for node in nodes)
