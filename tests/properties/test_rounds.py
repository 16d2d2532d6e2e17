"""Rounds over random clusters: what each keeps, how they come to rest, and who ends with what."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kit.crowded_worlds import CLASSES, Kind, crowded_world, limited, odd_world, repriced
from kit.deciding import BY_MODEL, Decider
from kit.jobs import jobs, leased
from kit.round_checks import breaches
from kit.rounds import POOL, World, node, replace_node
from pyresched.config import SchedulingConfig
from pyresched.model import Intake, JobState, Outcome

SECOND = 1_000_000_000
draws = st.randoms(use_true_random=False)
worlds = st.one_of(
    draws.map(odd_world),
    draws.map(crowded_world),
    draws.map(lambda draw: crowded_world(draw, tainted=0.4)),
    draws.map(lambda draw: repriced(crowded_world(draw, tainted=0.2), draw)),
)


def later(world, decided):
    """The world a second after the decisions came true."""
    world.grant(decided)
    world.now += SECOND
    return world


@given(worlds)
def test_a_round_keeps_every_invariant(world):
    """Room, gangs, answers, victims, protection, need and progress: INV-R1 to INV-R6, INV-R8."""
    decided = Decider().decide(world)
    event(f"{decided.passes} passes")
    assert breaches(world, decided) == []


@given(worlds, draws)
def test_a_round_under_limits_keeps_every_invariant(world, draw):
    """Limits leave work undone, and nothing else."""
    decided = Decider().decide(limited(world, draw))
    for code in set(decided.refused.values()):
        event(code)
    assert breaches(world, decided) == []


@given(worlds)
def test_the_next_round_changes_nothing(world):
    """INV-R9: what a round decided is what it would decide again, and all that fits is placed."""
    decider = Decider()
    decided = decider.decide(world)
    assert decided.rested
    again = decider.decide(later(world, decided))
    assert not again, again
    assert breaches(world, again) == []


def test_fifty_rounds_change_nothing():
    """Neither does any of the next fifty, of many seeds."""
    for seed in range(12):
        world, decider = crowded_world(seed), Decider()
        later(world, decider.decide(world))
        for _ in range(50):
            assert not decider.decide(later(world, decider.decide(world))), seed


@given(worlds, draws)
def test_rows_may_come_in_any_order(world, draw):
    """INV-R7: the order in which jobs, nodes and queues were added decides nothing."""
    expected = Decider().decide(world)

    def shuffled(rows):
        ids = sorted(rows)
        draw.shuffle(ids)
        return {id: rows[id] for id in ids}

    other = World(
        world.config,
        shuffled(world.nodes),
        shuffled(world.jobs),
        shuffled(world.queues),
        world.now,
    )
    assert Decider().decide(other) == expected


# --- the engine against the plain model ---------------------------------------------------------

by_engine = pytest.mark.skipif(BY_MODEL, reason="about the engine")


@by_engine
@given(worlds)
def test_a_round_decides_what_the_plain_model_decides(world):
    """Placements, moves and victims in their order, and the kind of every refusal."""
    assert Decider().by_engine(world) == Decider().by_model(world)


@by_engine
@given(worlds, draws)
def test_a_round_under_limits_decides_what_the_plain_model_decides(world, draw):
    """The same, and the tokens that are left: the round after it too."""
    limited(world, draw)
    engine, model = Decider(), Decider()
    for _ in range(2):
        decided = engine.by_engine(world)
        assert decided == model.by_model(world)
        later(world, decided)


@by_engine
@given(worlds)
def test_a_round_writes_nothing_and_gives_the_same_bytes_again(world):
    """INV-R7: what it was given is as before, and the job db and any other reader say the same."""
    db, reader = world.node_db(), world.reader()
    rows = {id: db.get(id) for id in db.ids()}
    free = [db.fork(POOL).allocatable(each.id, 0) for each in db.nodes(POOL)]
    first = as_bytes(world.round(reader, db))
    assert as_bytes(world.round(reader, db)) == first
    assert as_bytes(world.round(world.job_db().snapshot(), db)) == first
    assert {id: db.get(id) for id in db.ids()} == rows
    assert [db.fork(POOL).allocatable(each.id, 0) for each in db.nodes(POOL)] == free
    assert db.check() == []


def as_bytes(result):
    """All that a round decided."""
    return json.dumps(result.to_dict()).encode()


# --- who ends with what -------------------------------------------------------------------------


@st.composite
def divisible(draw):
    """Equal nodes, jobs of one core, queues of any weight that run and want some."""
    cores, count = draw(st.sampled_from([2, 4, 8])), draw(st.integers(1, 5))
    config = SchedulingConfig(
        priority_classes=CLASSES,
        default_priority_class="default",
        protected_fraction=draw(st.sampled_from([0.0, 0.5, 1.0])),
        prefer_large_jobs=draw(st.booleans()),
    )
    world = World(config, now=1000)
    world.with_nodes(*[node(f"n{i}", cores * 1000, cores * 1024) for i in range(count)])
    free = [f"n{i}" for i in range(count) for _ in range(cores)]
    for name in "abcde"[: draw(st.integers(1, 5))]:
        world.with_queues(**{name: draw(st.sampled_from([1.0, 1.0, 2.0, 0.5, 0.1]))})
        wanted = draw(st.integers(0, 2 * cores))
        running = draw(st.integers(0, min(wanted, len(free))))
        rows = jobs(wanted, 1000, 1024, prefix=name, queue=name, priority_class="mid")
        for row in rows[:running]:
            at = draw(st.integers(0, len(free) - 1))
            when = draw(st.integers(0, 9))
            world.with_jobs(leased(row, node_id=free.pop(at), at=when, priority=1000))
        world.with_jobs(rows[running:])
    return world


def level(weights, demands, size):
    """What each gets of *size* when all that want more stand at one level by weight."""
    got = dict.fromkeys(weights, Fraction(0))
    rest, left = {q for q in weights if demands[q]}, Fraction(size)
    while rest:
        height = left / sum(Fraction(weights[q]) for q in rest)
        sated = {q for q in rest if demands[q] <= height * Fraction(weights[q])}
        if not sated:
            return got | {q: height * Fraction(weights[q]) for q in rest}
        got |= {q: Fraction(demands[q]) for q in sated}
        left -= sum(demands[q] for q in sated)
        rest -= sated
    return got


@given(divisible())
def test_no_queue_ends_a_whole_job_below_its_level(world):
    """Work that can be divided, whoever ran before: nothing is left over, and none has too little.

    Above its level a queue of much weight may be by what several of little are below theirs.
    """
    decider = Decider()
    later(world, decider.decide(world))
    rows = list(world.jobs.values())
    demands = {q: sum(job.queue == q for job in rows) for q in world.queues}
    weights = {q: queue.weight for q, queue in world.queues.items()}
    size = sum(row.total[0] for row in world.nodes.values()) // 1000
    for q, due in level(weights, demands, size).items():
        has = sum(job.queue == q and job.active_run is not None for job in rows)
        assert due - has < 1, (q, has, float(due))
    assert sum(job.active_run is not None for job in rows) == min(size, len(rows))


@given(divisible(), st.sampled_from([math.nan, math.inf, 0.0, -1.0]))
def test_a_weight_that_is_none_hinders_nobody(world, weight):
    """Its queue takes no part; the figures of the others stay numbers, and all invariants hold."""
    from msgspec import structs

    for row in list(world.queues.values())[:1]:
        structs.force_setattr(row, "weight", weight)  # as another program may have written it
    decided = Decider().decide(world)
    assert breaches(world, decided) == []
    bad = next(iter(world.queues), "")
    assert not any(world.jobs[each[0]].queue == bad for each in decided.scheduled)


# --- long lives ---------------------------------------------------------------------------------


class Rounds(RuleBasedStateMachine):
    """Many rounds over one cluster, with arrivals, ends, failures and losses between them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.decider = Decider()
        self.submitted = 0

    @initialize(draw=draws)
    def begin(self, draw):
        self.world = crowded_world(draw)
        for name in "abc":
            if name not in self.world.queues:
                self.world.with_queues(name)
        self.kind = Kind([each.name for each in CLASSES], [1, 2, 4], 0.3, "abc", "a", 0.3)

    @rule(draw=draws, count=st.integers(1, 4))
    def submit(self, draw, count):
        for _ in range(count):
            self.submitted += 1
            self.world.with_jobs(self.kind.submission(draw, 100 + self.submitted))

    def running(self) -> list[str]:
        return sorted(j.id for j in self.world.jobs.values() if j.active_run is not None)

    def node_id(self, number: int) -> str:
        return sorted(self.world.nodes)[number % len(self.world.nodes)]

    @precondition(lambda self: self.running())
    @rule(data=st.data(), count=st.integers(1, 4))
    def finish(self, data, count):
        for _ in range(count):
            if self.running():
                self.world.finish(data.draw(st.sampled_from(self.running())))
        self.world.forget_ended()

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def fail(self, data):
        self.world.put_back(data.draw(st.sampled_from(self.running())), Outcome.FAILED)

    @rule(number=st.integers(0, 5))
    def lose_or_find(self, number):
        row = self.world.nodes[self.node_id(number)]
        if row.lost_at is None:
            self.world.lose(row.id)
        else:
            self.world.back(row.id)

    @rule(number=st.integers(0, 5))
    def cordon_or_open(self, number):
        row = self.world.nodes[self.node_id(number)]
        intake = Intake.OPEN if row.intake is Intake.CORDONED else Intake.CORDONED
        self.world.nodes[row.id] = replace_node(row, intake=intake)

    @rule(number=st.integers(0, 5), amounts=st.sampled_from([(8000, 8192), (1000, 1024)]))
    def resize(self, number, amounts):
        row = self.world.nodes[self.node_id(number)]
        self.world.nodes[row.id] = replace_node(row, total=node("x", *amounts).total)

    @rule()
    def round_and_rest(self):
        self.world.now += SECOND
        decided = self.decider.decide(self.world)
        note(str(decided))
        assert breaches(self.world, decided) == []
        again = self.decider.decide(later(self.world, decided))
        assert not again, again

    @invariant()
    def no_gang_is_part_placed(self):
        for each in self.world.jobs.values():
            states = {mate.state.active for mate in self.world.mates(each.id)}
            assert len(states) == 1, f"{each.id} runs without its gang"

    @invariant()
    def every_job_is_somewhere(self):
        for each in self.world.jobs.values():
            assert each.state in {JobState.QUEUED, JobState.LEASED}


TestRounds = Rounds.TestCase
TestRounds.settings = settings(stateful_step_count=30, deadline=None)
