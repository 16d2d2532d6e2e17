"""What benchmarks run on: ids, jobs and nodes made from a number, the same each time.

Nothing here draws from a clock or a generator of the process, so that a figure of today and
one of last month are of the same work.
"""

from pyresched.config import SchedulingConfig
from pyresched.model import (
    NANOS,
    Job,
    JobId,
    Node,
    NodeId,
    Queue,
    QueueName,
    Requirements,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    Rounding,
)

__all__ = ["histories", "job_ids", "jobs", "nodes", "queues", "retry_policies", "spread"]

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MASK = 2**64 - 1


def spread(n: int) -> int:
    """A 64-bit number that looks random, the same for the same *n* (SplitMix64's finaliser)."""
    z = (n + 1) * 0x9E3779B97F4A7C15 & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


def job_ids(count: int) -> list[JobId]:
    """*count* ULIDs: a time that grows, then bits that look random."""
    ids = []
    for n in range(count):
        bits = (1_700_000_000_000 + n // 4) << 80 | spread(n) << 16 | n & 0xFFFF
        ids.append(JobId("".join(_CROCKFORD[bits >> shift & 31] for shift in range(125, -1, -5))))
    return ids


def queues(count: int) -> dict[QueueName, Queue]:
    """*count* queues of weight 1, by name."""
    names = [QueueName(f"queue-{n:03}") for n in range(count)]
    return {name: Queue(name=name) for name in names}


def jobs(count: int, *, in_queues: int, config: SchedulingConfig) -> list[Job]:
    """*count* validated jobs of 1, 2, 4 or 8 cores, dealt to *in_queues* queues unevenly."""
    shapes = [
        Requirements(
            config.spec.vector({"cpu": cores, "memory": f"{4 * cores}Gi"}, rounding=Rounding.UP),
            config.default_priority_class,
        )
        for cores in (1, 2, 4, 8)
    ]
    return [
        Job(
            id=id,
            queue=f"queue-{min(spread(n), spread(n + count)) % in_queues:03}",
            requirements=shapes[spread(3 * n) % len(shapes)],
            submitted_at=n,
            validated=True,
        )
        for n, id in enumerate(job_ids(count))
    ]


def nodes(count: int, *, config: SchedulingConfig) -> list[Node]:
    """*count* nodes of 32 cores and 256 GiB."""
    total = config.spec.vector({"cpu": 32, "memory": "256Gi"}, rounding=Rounding.DOWN)
    return [Node(id=NodeId(f"node-{n:05}"), total=total) for n in range(count)]


def histories(count: int) -> list[RescheduleTracker | None]:
    """*count* histories of none to four reschedules, none of them shared."""
    events = [
        RescheduleEvent(
            time=number * 100 * NANOS,
            previous_run=f"01JR2H5V9A{number:016}",
            previous_node=f"node-{number}",
            delay=(1 + number) * 5 * NANOS,
        )
        for number in range(4)
    ]
    return [
        RescheduleTracker(events=tuple(events[: run % 5])) if run % 5 else None
        for run in range(count)
    ]


def retry_policies(count: int) -> list[ReschedulePolicy]:
    """Three policies, one with each delay function, in turn *count* times."""
    hour, base = 3600 * NANOS, 5 * NANOS
    policies = [
        ReschedulePolicy(attempts=3, interval=hour, delay=base),
        ReschedulePolicy(
            delay=6 * base, delay_function="exponential", max_delay=hour, unlimited=True
        ),
        ReschedulePolicy(
            delay=base, delay_function="fibonacci", max_delay=60 * base, unlimited=True
        ),
    ]
    return [policies[run % 3] for run in range(count)]
