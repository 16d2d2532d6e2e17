"""What `instructions.py` counts: each scenario prepares its input and returns the work to count.

A scenario is small (callgrind is about fifty times slower than the processor), fixed (no
clock, no random seed) and repeats the path that it is about often enough to drown the rest.
"""

from collections.abc import Callable

from pyresched.model import Job, JobState, Requirements, ResourceVector

__all__ = ["SCENARIOS"]

Work = Callable[[], object]


def vectors() -> Work:
    """2,000 sums and fit checks of resource vectors."""
    one, other = ResourceVector((1000, 2**34, 1)), ResourceVector((500, 2**33, 0))

    def work() -> None:
        for _ in range(2_000):
            (one + other).fits_in(one)

    return work


def rows() -> Work:
    """500 jobs made and moved on by one version."""
    needs = Requirements(ResourceVector((1000, 2**30)))

    def work() -> None:
        for n in range(500):
            job = Job(id=f"job-{n}", queue="a", requirements=needs, submitted_at=n)
            job.replace(state=JobState.LEASED)

    return work


SCENARIOS: dict[str, Callable[[], Work]] = {
    "resource vectors": vectors,
    "job rows": rows,
}
