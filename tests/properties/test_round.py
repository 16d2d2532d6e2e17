"""The round on random clusters: its invariants over many rounds, and the plain model's answers."""

import json
from typing import Any

from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kit.jobs import gang, job, leased, requirements
from kit.round_model import model_round
from kit.rounds import CONFIG, POOL, World, breaches, node, replace_node
from pyresched.model import (
    Intake,
    Job,
    JobState,
    Outcome,
    RescheduleEvent,
    RescheduleTracker,
    RoundResult,
    Taint,
    TaintEffect,
    Toleration,
)

QUEUES = ("a", "b", "c")
CLASSES = ("default", "urgent", "spot", "best-effort")
ZONES = ("east", "west")
GPU = Taint("gpu")
SLOW = Taint("slow", effect=TaintEffect.PREFER_NO_SCHEDULE)

amounts = st.tuples(
    st.sampled_from([500, 1000, 1000, 2000, 3000, 4000, 9000]),
    st.sampled_from([0, 512, 1024, 1024, 4096, 8192]),
)
selectors = st.sampled_from([{}, {}, {}, {"zone": "east"}, {"zone": "west"}, {"zone": "none"}])
tolerations = st.sampled_from([(), (), (Toleration("gpu", exists=True),)])


@st.composite
def nodes(draw: st.DrawFn, id: str) -> Any:
    """A node of one of three sizes, perhaps labelled, tainted, cordoned, lost or elsewhere."""
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        fields["labels"] = {"zone": draw(st.sampled_from(ZONES))}
    fields["taints"] = draw(st.sampled_from([(), (), (), (), (GPU,), (SLOW,)]))
    odd = draw(st.integers(0, 11))
    if odd == 0:
        fields["intake"] = Intake.CORDONED
    elif odd == 1:
        fields["lost_at"] = 0
    elif odd == 2:
        fields["pool"] = "other"
    return node(id, *draw(st.sampled_from([(4000, 8192), (2000, 4096), (8000, 4096)])), **fields)


@st.composite
def submissions(draw: st.DrawFn, id: str, at: int) -> list[Job]:
    """A job, or the members of a gang, sometimes a gang that is not all there."""
    common: dict[str, Any] = {
        "queue": draw(st.sampled_from(QUEUES)),
        "submitted_at": at,
        "priority": draw(st.sampled_from([0, 0, 1])),
    }
    asked = {
        "priority_class": draw(st.sampled_from(CLASSES)),
        "selector": draw(selectors),
        "tolerations": draw(tolerations),
    }
    if draw(st.integers(0, 3)):
        return [job(id, requirements=requirements(*draw(amounts), **asked), **common)]
    size = draw(st.integers(2, 4))
    shape = draw(amounts)
    members = gang(
        id,
        size=size,
        uniformity=draw(st.sampled_from(["", "", "zone"])),
        requirements=requirements(*shape, **asked),
        **common,
    )
    if draw(st.integers(0, 2)) == 0:
        other = requirements(*draw(amounts), **asked)
        members = [
            each.replace(requirements=other) if i else each for i, each in enumerate(members)
        ]
    if draw(st.integers(0, 7)) == 0:
        members = members[1:]
    return members


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A cluster in the middle of its life: some jobs run, more than fits anywhere waits."""
    world = World(now=1000)
    world.with_nodes(*[draw(nodes(f"n{i}")) for i in range(draw(st.integers(1, 5)))])
    for queue in QUEUES[: draw(st.integers(1, 3))]:
        world.with_queues(**{queue: draw(st.sampled_from([1.0, 1.0, 2.0, 0.5]))})
    for i in range(draw(st.integers(1, 14))):
        members = draw(submissions(f"j{i}", draw(st.integers(0, 5))))
        if draw(st.booleans()):
            members = _started(draw, world, members)
        elif draw(st.integers(0, 3)) == 0:
            members = [_with_past(draw, world, each) for each in members]
        world.with_jobs(members)
    return world


def _started(draw: st.DrawFn, world: World, members: list[Job]) -> list[Job]:
    """The members running on any nodes, room or not, if there are enough of them."""
    if members[0].gang is not None and len(members) < members[0].gang.cardinality:
        return members
    at = draw(st.integers(0, 9))
    priority = CONFIG.priority_class(members[0].requirements.priority_class).priority
    ids = sorted(world.nodes)
    return [
        leased(
            each,
            node_id=draw(st.sampled_from(ids)),
            at=at,
            priority=priority,
            pool=POOL if draw(st.integers(0, 9)) else "other",
        )
        for each in members
    ]


def _with_past(draw: st.DrawFn, world: World, waiting: Job) -> Job:
    """The job as it returned from a run somewhere."""
    world.jobs[waiting.id] = leased(waiting, node_id=draw(st.sampled_from(sorted(world.nodes))))
    world.end_run(waiting.id, draw(st.sampled_from([Outcome.FAILED, Outcome.PREEMPTED])))
    back = world.jobs.pop(waiting.id)
    if draw(st.booleans()):
        past = RescheduleEvent(
            time=0,
            previous_run="gone",
            previous_node=draw(st.sampled_from(sorted(world.nodes))),
            delay=0,
        )
        back = back.replace(tracker=RescheduleTracker(events=(past,)))
    return back


def as_bytes(result: RoundResult) -> bytes:
    """All that a round decided."""
    return json.dumps(result.to_dict()).encode()


def plain(result: RoundResult) -> dict[str, Any]:
    """A result in the terms of the model."""
    return {
        "scheduled": [
            (each.job_id, each.node_id, each.priority, each.method.value)
            for each in result.scheduled
        ],
        "preempted": [
            (each.job_id, each.run_id, each.node_id, each.for_job_id, each.reason.value)
            for each in result.preempted
        ],
        "refused": {id: reason.code.value for id, reason in result.refused.items()},
    }


def with_limits(world: World, lookback: int, protected_fraction: float) -> World:
    """The world under another look-back and another protected fraction."""
    kept = {name: getattr(world.config, name) for name in world.config.__struct_fields__}
    kept |= {"max_queue_lookback": lookback, "protected_fraction": protected_fraction}
    world.config = type(world.config)(**kept)
    return world


@given(worlds(), st.sampled_from([0, 0, 3]), st.sampled_from([1.0, 1.0, 0.5, 0.0]))
def test_a_round_decides_what_the_plain_model_decides(world, lookback, protected_fraction):
    """Placements, victims, order and reasons are those of the scan-and-sort model."""
    with_limits(world, lookback, protected_fraction)
    result = world.round()
    expected = model_round(
        world.jobs.values(), world.nodes.values(), world.queues, POOL, world.config
    )
    for kind in {each.method.value for each in result.scheduled} | set(result.refused_by_code()):
        event(kind)
    for kind in {each.reason.value for each in result.preempted}:
        event(f"preempted: {kind}")
    assert plain(result) == {
        "scheduled": expected.scheduled,
        "preempted": expected.preempted,
        "refused": expected.refused,
    }


@given(worlds(), st.sampled_from([1.0, 1.0, 0.5, 0.0]))
def test_a_round_keeps_every_invariant(world, protected_fraction):
    """INV-R1 to INV-R8 hold, whatever state a cluster is in."""
    with_limits(world, 0, protected_fraction)
    assert breaches(world, world.round()) == []


@given(worlds())
def test_a_round_writes_nothing_and_gives_the_same_bytes_again(world):
    """INV-R7: what it was given is as before, and neither a repeat nor another order matters."""
    db, reader = world.node_db(), world.reader()
    rows = {id: db.get(id) for id in db.ids()}
    free = [db.fork(POOL).allocatable(each.id, 0) for each in db.nodes(POOL)]
    first, again = world.round(reader, db), world.round(reader, db)
    assert as_bytes(first) == as_bytes(again)
    assert as_bytes(world.round(world.job_db().snapshot(), db)) == as_bytes(first)
    assert {id: db.get(id) for id in db.ids()} == rows
    assert [db.fork(POOL).allocatable(each.id, 0) for each in db.nodes(POOL)] == free
    assert db.check() == []
    backwards = World(
        world.config,
        dict(reversed(world.nodes.items())),
        dict(reversed(world.jobs.items())),
        dict(reversed(world.queues.items())),
        world.now,
    )
    assert as_bytes(backwards.round()) == as_bytes(first)


class Rounds(RuleBasedStateMachine):
    """Many rounds over one cluster, with arrivals, ends, failures and losses between them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.submitted = 0

    @initialize(data=st.data())
    def begin(self, data):
        rows = [data.draw(nodes(f"n{i}")) for i in range(4)]
        self.world.with_nodes(*rows).with_queues(a=1.0, b=2.0, c=1.0)

    @rule(data=st.data(), count=st.integers(1, 4))
    def submit(self, data, count):
        for _ in range(count):
            self.submitted += 1
            members = data.draw(submissions(f"j{self.submitted}", self.world.now))
            self.world.with_jobs(members)

    def running(self) -> list[str]:
        return sorted(j.id for j in self.world.jobs.values() if j.active_run is not None)

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def finish(self, data):
        self.world.finish(data.draw(st.sampled_from(self.running())))

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def fail(self, data):
        self.world.put_back(data.draw(st.sampled_from(self.running())), Outcome.FAILED)

    @rule(index=st.integers(0, 3))
    def lose_or_find(self, index):
        row = self.world.nodes[f"n{index}"]
        if row.lost_at is None:
            self.world.lose(row.id)
        else:
            self.world.back(row.id)

    @rule(index=st.integers(0, 3))
    def cordon_or_open(self, index):
        row = self.world.nodes[f"n{index}"]
        intake = Intake.OPEN if row.intake is Intake.CORDONED else Intake.CORDONED
        self.world.nodes[row.id] = replace_node(row, intake=intake)

    @rule(index=st.integers(0, 3), amounts=st.sampled_from([(4000, 8192), (1000, 1024)]))
    def resize(self, index, amounts):
        row = self.world.nodes[f"n{index}"]
        self.world.nodes[row.id] = replace_node(row, total=node("x", *amounts).total)

    @rule(times=st.integers(1, 3))
    def rounds(self, times):
        for _ in range(times):
            self.world.now += 10
            result = self.world.round()
            note(str(result.to_dict()))
            assert breaches(self.world, result) == []
            self.world.grant(result)

    @invariant()
    def no_gang_is_part_placed(self):
        for each in self.world.jobs.values():
            states = {mate.state.active for mate in self.world.mates(each.id)}
            assert len(states) == 1, f"{each.id} runs without its gang"

    @invariant()
    def every_job_is_somewhere(self):
        for each in self.world.jobs.values():
            assert each.state in (JobState.QUEUED, JobState.LEASED, JobState.SUCCEEDED)


TestRounds = Rounds.TestCase
TestRounds.settings = settings(stateful_step_count=30, deadline=None)
