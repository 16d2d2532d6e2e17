"""Pools whose jobs are guests on nodes of others: whole cycles, checked from the outside."""

import random
from collections.abc import Iterator
from itertools import count

import pytest

from kit.jobs import gang, job, requirements
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import Job, Node, PriorityClass, ResourceVector, RoundResult
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler, StepResult
from pyresched.scheduling import Arguments, run_round
from pyresched.scheduling.inputs import RoundInputs
from pyresched.store import MemoryJournal

CLASSES = (
    PriorityClass(name="firm", priority=1000),
    PriorityClass(name="soft", priority=1000, preemptible=True),
    PriorityClass(name="spare", priority=0, preemptible=True),
)
SHAPES = ("one way", "guests only", "in a chain", "two tenants", "guests as they are")
MOST_STEPS = 12
"""In which everything must have come to rest when nothing comes from outside."""


def pools(shape: str) -> tuple[PoolConfig, ...]:
    """Pools that lend to each other in one of the ways of `SHAPES`."""
    return {
        "one way": (PoolConfig(name="p", away_pools=("a",)), PoolConfig(name="a")),
        "guests only": (PoolConfig(name="a"), PoolConfig(name="p", away_pools=("a",))),
        "in a chain": (
            PoolConfig(name="p", away_pools=("a",)),
            PoolConfig(name="q"),
            PoolConfig(name="a", away_pools=("q",)),
        ),
        "two tenants": (
            PoolConfig(name="a"),
            PoolConfig(name="p", away_pools=("a",)),
            PoolConfig(name="q", away_pools=("a", "p")),
        ),
        "guests as they are": (
            PoolConfig(name="p", away_pools=("a",)),
            PoolConfig(name="a", preempt_guests_first=False),
        ),
    }[shape]


class Drive:
    """A scheduler, and everything that may happen to it, drawn from a seed."""

    def __init__(self, seed: int, shape: str) -> None:
        self.draw = random.Random(f"{seed} {shape}")
        self.config = SchedulingConfig(
            priority_classes=CLASSES,
            default_priority_class="soft",
            pools=pools(shape),
            protected_fraction=self.draw.choice([0.0, 0.5, 1.0]),
            prefer_large_jobs=self.draw.random() < 0.5,
        )
        numbers = count(1)
        self.made = Scheduler(self.config, MemoryJournal(), ids=lambda: f"run-{next(numbers)}")
        self.names = [pool.name for pool in self.config.pools]
        owners = [name for name in self.names if shape != "guests only" or name != "p"]
        total = ResourceVector([4000, 4096])
        nodes = [
            Node(id=f"{name}{n}", total=total, pool=name)
            for name in owners
            for n in range(self.draw.randint(1, 3))
        ]
        self.made.join_nodes(nodes, 0)
        self.now = 0
        self.jobs = count()
        self.taken: list[Arguments] = []
        self.replayed: dict[str, RoundResult] = {}

    def happen(self) -> None:
        """One thing from outside."""
        self.now += 1
        draw, snapshot = self.draw, self.made.snapshot()
        active = [one for one in snapshot.leased() if one.active_run is not None]
        what = draw.choice(("submit", "submit", "submit", "gang", "end", "end", "lose", "cordon"))
        if what in {"submit", "gang"}:
            self.made.submit(self._jobs(as_gang=what == "gang"), self.now)
        elif what == "end" and active:
            one = draw.choice(active)
            run_id = one.active_run.id
            kind = ReportKind("succeeded")
            self.made.report(
                [Report(run_id=run_id, job_id=one.id, kind=kind, at=self.now)], self.now
            )
        elif what == "lose":
            self._toggle("lost_at", self.made.lose_nodes, self.made.nodes_back)
        elif what == "cordon":
            node = draw.choice(self.made.nodes.nodes())
            if node.takes_new_runs:
                self.made.cordon_nodes([node.id], self.now)
            else:
                self.made.uncordon_nodes([node.id], self.now)

    def step(self) -> StepResult:
        """A cycle; what its rounds took is in `taken`."""
        self.taken = []
        return self.made.step(self.now, on_round=self._keep)

    def _keep(self, taken: Arguments) -> None:
        """What a round takes, and what it would decide if it were saved and run elsewhere."""
        self.taken.append(taken)
        self.replayed[taken.pool], _ = run_round(*RoundInputs.of(*taken).arguments())

    def _toggle(self, field, lose, back) -> None:
        node = self.draw.choice(self.made.nodes.nodes())
        (lose if getattr(node, field) is None else back)([node.id], self.now)

    def _jobs(self, *, as_gang: bool) -> list[Job]:
        draw = self.draw
        asked = requirements(
            draw.choice([1000, 1000, 2000, 3000]),
            draw.choice([256, 1024]),
            priority_class=draw.choice(["soft", "soft", "spare", "firm"]),
        )
        several = tuple(draw.sample(self.names, draw.randint(1, 2)))
        fields = {"queue": draw.choice("xyz"), "requirements": asked, "pools": several}
        size = draw.randint(2, 3) if as_gang else draw.randint(1, 4)
        first = next(self.jobs)
        rows = [job(f"j{first:03}-{n}", submitted_at=self.now, **fields) for n in range(size)]
        if as_gang:
            for n, member in enumerate(gang(f"g{first}", size=size)):
                rows[n] = rows[n].replace(gang=member.gang)
        return rows


def faults(drive: Drive, results: dict[str, RoundResult]) -> Iterator[str]:
    """What is wrong now, from rows alone."""
    made = drive.made
    nodes = {node.id: node for node in made.nodes.nodes()}
    near = {pool.name: {pool.name, *pool.away_pools} for pool in drive.config.pools}
    held: dict[str, list[Job]] = {}
    for one in made.snapshot().leased():
        run = one.active_run
        held.setdefault(run.node_id, []).append(one)
        if nodes[run.node_id].pool not in near[run.pool]:
            yield f"{one.id} of {run.pool} runs on {run.node_id}"
    for id, jobs in held.items():
        used = sum((one.requirements.resources for one in jobs), start=ResourceVector([0, 0]))
        if not used.fits_in(nodes[id].total):
            yield f"{id} is over-allocated: {[one.id for one in jobs]}"
    placed = [one.job_id for result in results.values() for one in result.scheduled]
    if len(set(placed)) != len(placed):
        gone = {one.job_id for result in results.values() for one in result.preempted}
        twice = {id for id in placed if placed.count(id) > 1}
        if twice - gone:
            yield f"placed twice: {twice}"
    for pool, result in results.items():
        if result != drive.replayed[pool]:
            yield f"the round over {pool} is another when it is run again"
        for one in result.scheduled:
            if (nodes[one.node_id].pool != pool) and one.method.value != "away":
                yield f"{one.job_id} is a guest and was placed {one.method}"


def untouched(drive: Drive, results: dict[str, RoundResult]) -> Iterator[str]:
    """Victims of a round that it had no right to."""
    for taken in drive.taken:
        result = results[taken.pool]
        owner = {node.id: node.pool for node in taken.nodes.nodes()}
        for job_id, node_id in (
            *((one.job_id, one.node_id) for one in result.preempted),
            *((one.job_id, one.from_node_id) for one in result.moved),
        ):
            run = next(
                (
                    run
                    for run in drive.made.snapshot().get(job_id).runs
                    if run.node_id == node_id and run.ended_at == drive.now
                ),
                None,
            )
            if run is None:
                yield f"{job_id} of {node_id} has no run that ended"
            elif run.pool != taken.pool and owner[node_id] != taken.pool:
                yield f"{taken.pool} took {job_id} of {run.pool} off {node_id}"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_no_node_is_given_out_twice_and_everything_comes_to_rest(shape: str, seed: int) -> None:
    """INV-B12, whatever comes from outside, after each cycle; and without it, cycles end."""
    drive = Drive(seed, shape)
    for _ in range(25):
        for _ in range(drive.draw.randint(1, 3)):
            drive.happen()
        for _ in range(MOST_STEPS):
            results = dict(drive.step().results)
            found = [*faults(drive, results), *untouched(drive, results), *drive.made.check()]
            assert found == []
            if not any(results.values()):
                break
        else:
            pytest.fail(f"no rest at {drive.now}")
        for taken in drive.taken:
            again, _ = run_round(*taken)
            assert not again
