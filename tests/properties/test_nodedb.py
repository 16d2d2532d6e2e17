"""The node db against a plain model: every answer, every change, every way back.

Holds INV-B1 to INV-B10.
"""

from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from kit.jobs import ended, job, leased, requeued
from kit.nodes import Held, ModelNodes, Pairs, node_config
from pyresched.config import PoolConfig
from pyresched.model import (
    Constraint,
    Intake,
    Node,
    NodeId,
    Operator,
    PoolName,
    Preference,
    Requirements,
    ResourceVector,
    Spread,
    Taint,
    TaintEffect,
    Toleration,
)
from pyresched.nodedb import CROSS_POOL, EVICTED, Candidate, NodeDb, NotFound, Victims

INT64_MAX = 2**63 - 1
# A sequence of steps costs what fifty single cases do; long runs by hand go to their full length.
_EXAMPLES = settings.default.max_examples
SEQUENCES = settings(max_examples=_EXAMPLES if _EXAMPLES > 1000 else min(_EXAMPLES, 60))
LABELS = [("zone", "a"), ("zone", "b"), ("disk", "ssd")]
TAINTS = [
    Taint("gpu", "yes", TaintEffect.NO_SCHEDULE),
    Taint("old", "", TaintEffect.NO_EXECUTE),
    Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE),
]
TOLERATIONS = [
    Toleration("gpu", "yes"),
    Toleration("gpu", "no"),
    Toleration("old", exists=True),
    Toleration("spot", exists=True, effect=TaintEffect.PREFER_NO_SCHEDULE),
    Toleration(exists=True),
]
PRIORITIES = [0, 5, 10]
small = st.integers(0, 6)
# Amounts at the ends of int64 too: what is counted stops there and comes back exactly.
any_amount = st.one_of(small, st.sampled_from([2**62, INT64_MAX - 1, INT64_MAX]))


def vectors(width, amounts=small):
    """A resource vector."""
    return st.lists(amounts, min_size=width, max_size=width).map(ResourceVector)


@st.composite
def clusters(draw, amounts=small, *, most=6):
    """Nodes of one pool, sorted by id, of one width."""
    width = draw(st.integers(1, 3))
    count = draw(st.integers(0, most))
    return width, [draw(node_rows(width, f"n{i}", amounts)) for i in range(count)]


@st.composite
def node_rows(draw, width, id, amounts=small):
    """One node."""
    return Node(
        id=NodeId(id),
        total=draw(vectors(width, amounts)),
        labels=dict(draw(st.lists(st.sampled_from(LABELS), max_size=2))),
        taints=tuple(draw(st.lists(st.sampled_from(TAINTS), max_size=2, unique=True))),
        intake=draw(st.sampled_from([Intake.OPEN, Intake.OPEN, Intake.OPEN, Intake.CORDONED])),
        lost_at=draw(st.sampled_from([None, None, None, 5])),
    )


RULES = {
    "constraints": [
        Constraint("zone", Operator.NOT_IN, ("a",)),
        Constraint("", Operator.DISTINCT_HOSTS),
        Constraint("zone", Operator.DISTINCT_PROPERTY, ("2",)),
    ],
    "affinity": [
        (Constraint("zone", Operator.IN, ("a",)),),
        (Constraint("disk", Operator.EXISTS),),
    ],
    "preferences": [
        Preference(5, (Constraint("disk", Operator.EXISTS),)),
        Preference(-5, (Constraint("zone", Operator.EQUAL, ("b",)),)),
    ],
    "spread": [Spread("zone"), Spread("zone", 10, (("a", 70),)), Spread("disk", 20)],
    "nodes": ["n0", "n2", "a", "c"],
}


@st.composite
def requests(draw, width, amounts=small):
    """What a job asks for: mostly little of the language of placement, sometimes some."""
    rules = {}
    if draw(st.integers(0, 2)) == 0:
        for part in draw(st.lists(st.sampled_from(sorted(RULES)), max_size=2, unique=True)):
            rules[part] = tuple(draw(st.lists(st.sampled_from(RULES[part]), max_size=2)))
        rules["scope"] = draw(st.sampled_from(["", "web"]))
    return Requirements(
        draw(vectors(width, amounts)),
        "p0",
        selector=draw(st.lists(st.sampled_from(LABELS), max_size=1)),
        tolerations=tuple(draw(st.lists(st.sampled_from(TOLERATIONS), max_size=2, unique=True))),
        **rules,
    )


@st.composite
def holdings(draw, width, ids, amounts=small):
    """What some jobs hold on the nodes *ids*."""
    held = {}
    for i in range(draw(st.integers(0, 8)) if ids else 0):
        held[f"job-{i}"] = Held(
            draw(st.sampled_from(ids)),
            draw(requests(width, amounts)),
            draw(st.sampled_from(PRIORITIES)),
            draw(st.booleans()),
            evicted=draw(st.sampled_from([False, False, True])),
        )
    return held


priorities = st.sampled_from([None, -1, 0, 3, 5, 10, 99])


def code_of(priority):
    """As the fork takes it: None is the evicted level."""
    return EVICTED if priority is None else priority


def built(width, rows, held, *, levels=PRIORITIES):
    """(fork, model) of the same cluster, both with what *held* says."""
    db = NodeDb(node_config(*levels, width=width), rows)
    fork = db.fork("default")
    model = ModelNodes(list(rows), tuple(levels))
    with fork.attempt() as attempt:
        for job_id, one in held.items():
            attempt.bind_as(job_id, one.requirements, one.node_id, one.priority, one.preemptible)
            if one.evicted:
                attempt.evict(job_id)
        attempt.keep()
    model.held = {job_id: Held(**vars(one)) for job_id, one in held.items()}
    return fork, model


def answer(found):
    """A candidate as the model says it."""
    if not found:
        return None
    assert isinstance(found, Candidate)
    return found.node_id, None if found.level == EVICTED else found.level


@given(st.data())
def test_a_search_finds_what_sorting_all_nodes_finds(data):
    """Node and level, for any cluster, request, avoid list and list of allowed nodes."""
    amounts = data.draw(st.sampled_from([small, any_amount]))
    width, rows = data.draw(clusters(amounts))
    ids = [row.id for row in rows]
    fork, model = built(width, rows, data.draw(holdings(width, ids, amounts)))
    for _ in range(3):
        asked = data.draw(requests(width, amounts))
        priority = data.draw(priorities)
        avoid = data.draw(st.lists(st.tuples(st.sampled_from([*ids, "gone"]), st.integers(0, 2))))
        only = data.draw(st.none() | st.lists(st.sampled_from(ids), unique=True)) if ids else None
        ranks = {id: max(rank for one, rank in avoid if one == id) for id, _ in avoid}
        found = fork.find(asked, code_of(priority), avoid=avoid, only=only)
        expected = model.find(asked, priority, avoid=ranks, only=only)
        assert answer(found) == expected
        if isinstance(found, NotFound):
            assert not found
            check_reasons(found, model, asked, priority, only)
    assert fork.check() == []


def check_reasons(found, model, asked, priority, only):
    """The reasons are true, and name what is short."""
    taking = [n for n in model.nodes if n.takes_new_runs and (only is None or n.id in only)]
    matching = [n for n in taking if model.matches(n, asked)]
    codes = {reason.code.value for reason in found.reasons}
    assert len(codes) == 1
    (code,) = codes
    if not taking:
        assert code == "no_nodes"
        return
    if not matching:
        assert code == "no_matching_node"
        return
    fits_empty = any(asked.resources.fits_in(n.total) for n in matching)
    assert code == ("insufficient_resources" if fits_empty else "exceeds_every_node")
    level = model.seen_levels(priority)[-1]
    had = [model.left(n, level) if fits_empty else n.total.to_tuple() for n in matching]
    names = ["cpu", "memory", "gpu"]
    for reason in found.reasons:
        r = names.index(reason.resource)
        assert reason.wanted == asked.resources[r] > reason.had
        assert reason.had in [amounts[r] for amounts in had]
    best = [max(amounts[r] for amounts in had) for r in range(len(asked.resources))]
    short = [names[r] for r, most in enumerate(best) if asked.resources[r] > most]
    if short:
        assert [reason.resource for reason in found.reasons] == short
        assert [reason.had for reason in found.reasons] == [best[names.index(n)] for n in short]


@given(st.data())
def test_alike_jobs_in_a_batch_go_where_they_would_one_by_one(data):
    """The batch binds nothing, and says for each node how many."""
    width, rows = data.draw(clusters())
    ids = [row.id for row in rows]
    fork, model = built(width, rows, data.draw(holdings(width, ids)))
    asked, priority = data.draw(requests(width)), data.draw(priorities)
    count = data.draw(st.integers(0, 12))
    avoid = data.draw(st.dictionaries(st.sampled_from([*ids, "gone"]), st.integers(1, 2)))
    placed = fork.place_many(asked, count, code_of(priority), avoid=avoid.items())
    spread = [node_id for node_id, copies in placed for _ in range(copies)]
    assert spread == model.place_many(asked, count, priority, avoid=avoid)
    assert fork.check() == []


@given(st.data())
def test_victims_are_those_of_a_search_through_every_set(data):
    """Node and victims equal the brute-force minimum over all sets of up to eight candidates."""
    width, rows = data.draw(clusters(most=3))
    ids = [row.id for row in rows]
    held = data.draw(holdings(width, ids))
    fork, model = built(width, rows, held)
    asked, priority = data.draw(requests(width)), data.draw(st.sampled_from(PRIORITIES))
    candidates = data.draw(st.permutations(sorted(held)))
    note(f"{candidates=}")
    found = fork.victims(asked, priority, candidates)
    expected = model.victims(asked, priority, candidates)
    if expected is None:
        assert isinstance(found, NotFound)
    else:
        assert isinstance(found, Victims)
        assert (found.node_id, list(found.job_ids)) == expected
    assert fork.check() == []


@given(st.data())
def test_jobs_placed_in_one_native_call_go_where_they_would_one_by_one(data):
    """`place_each` is find and bind in turn."""
    width, rows = data.draw(clusters())
    fork, model = built(width, rows, {})
    asked = data.draw(st.lists(requests(width), max_size=8))
    names = [f"new-{i}" for i in range(len(asked))]
    placed = fork.table.place_each(names, asked, 5, True)
    for name, requirements, node_id in zip(names, asked, placed, strict=True):
        expected = model.find(requirements, 5)
        assert node_id == (None if expected is None else expected[0])
        if expected is not None:
            model.held[name] = Held(expected[0], requirements, 5, preemptible=True)
    assert fork.check() == []


class Deciding(RuleBasedStateMachine):
    """One fork under any sequence of changes and nested attempts, beside the model."""

    @initialize(data=st.data())
    def begin(self, data):
        amounts = data.draw(st.sampled_from([small, any_amount]))
        self.width, rows = data.draw(clusters(amounts, most=4).filter(lambda one: one[1]))
        self.amounts = amounts
        self.ids = [row.id for row in rows]
        held = data.draw(holdings(self.width, self.ids, amounts))
        self.fork, self.model = built(self.width, rows, held)
        self.open = []  # (attempt, the model as it was)
        self.aside = []  # forks that nothing here may change

    def inner(self):
        return self.open[-1][0]

    @rule()
    @precondition(lambda self: len(self.open) < 4)
    def open_attempt(self):
        attempt = self.fork.attempt()
        attempt.__enter__()
        self.open.append((attempt, self.model.copy()))

    @rule(keep=st.booleans())
    @precondition(lambda self: self.open)
    def end_attempt(self, keep):
        attempt, before = self.open.pop()
        if keep:
            attempt.keep()
        else:
            self.model = before
        attempt.__exit__(None, None, None)

    @rule(data=st.data())
    @precondition(lambda self: self.open)
    def bind(self, data):
        free = [f"job-{i}" for i in range(10) if f"job-{i}" not in self.model.held]
        if not free:
            return
        one = Held(
            data.draw(st.sampled_from(self.ids)),
            data.draw(requests(self.width, self.amounts)),
            data.draw(st.sampled_from(PRIORITIES)),
            data.draw(st.booleans()),
        )
        job_id = data.draw(st.sampled_from(free))
        self.inner().bind_as(job_id, one.requirements, one.node_id, one.priority, one.preemptible)
        self.model.held[job_id] = one

    @rule(data=st.data())
    @precondition(lambda self: self.open and self.evicted(want=False))
    def evict(self, data):
        job_id = data.draw(st.sampled_from(self.evicted(want=False)))
        self.inner().evict(job_id)
        self.model.held[job_id].evicted = True

    @rule(data=st.data(), priority=st.sampled_from(PRIORITIES))
    @precondition(lambda self: self.open and self.evicted(want=True))
    def put_back(self, data, priority):
        job_id = data.draw(st.sampled_from(self.evicted(want=True)))
        one = self.model.held[job_id]
        self.inner().bind_as(job_id, one.requirements, one.node_id, priority, one.preemptible)
        one.evicted = False
        one.priority = priority

    @rule(data=st.data())
    @precondition(lambda self: self.open)
    def unbind(self, data):
        job_id = data.draw(st.sampled_from([*sorted(self.model.held), "nobody"]))
        self.inner().unbind(job_id)
        self.model.held.pop(job_id, None)

    def evicted(self, *, want):
        return sorted(job for job, one in self.model.held.items() if one.evicted == want)

    @rule()
    def set_a_fork_aside(self):
        self.aside.append((self.fork.fork(), self.model.copy()))

    @rule()
    @precondition(lambda self: self.aside and not self.open)
    def go_on_with_a_fork(self):
        self.aside.append((self.fork, self.model))
        self.fork, self.model = self.aside.pop(0)

    @rule(data=st.data(), asked_at=st.lists(priorities, min_size=1, max_size=4))
    def find(self, data, asked_at):
        asked = data.draw(requests(self.width, self.amounts))
        for priority in asked_at:  # what did not fit at one is remembered at the next
            found = self.fork.find(asked, code_of(priority))
            assert answer(found) == self.model.find(asked, priority)

    @invariant()
    def the_fork_is_the_model(self):
        if hasattr(self, "fork"):
            same(self.fork, self.model)

    def teardown(self):
        for fork, model in getattr(self, "aside", ()):
            same(fork, model)
        for attempt, before in reversed(getattr(self, "open", [])):
            attempt.__exit__(None, None, None)
            same(self.fork, before)


def same(fork, model):
    """The fork says of everything what the model says, and its own check agrees."""
    assert fork.check() == []
    for one in model.nodes:
        assert fork.bound(one.id) == tuple(
            sorted(job for job, held in model.held.items() if held.node_id == one.id)
        )
        assert fork.allocatable(one.id, EVICTED).to_tuple() == model.left(one, None)
        for level in model.levels:
            assert fork.allocatable(one.id, level).to_tuple() == model.left(one, level)
    for job_id, held in model.held.items():
        assert fork.binding(job_id) == tuple(vars(held).values())
        assert fork.node_of(job_id) == held.node_id


TestDeciding = Deciding.TestCase
TestDeciding.settings = settings(SEQUENCES, stateful_step_count=30)


class Following(RuleBasedStateMachine):
    """A node db that follows nodes and diffs, beside one that is built anew each time."""

    POOLS = ("default", "other")

    @initialize()
    def begin(self):
        self.config = replace(
            node_config(*PRIORITIES, preemptible=[0, 5], width=2),
            pools=(PoolConfig(name="default"), PoolConfig(name="other")),
        )
        self.db = NodeDb(self.config)
        self.nodes = {}
        self.jobs = {}

    @rule(data=st.data())
    def upsert(self, data):
        rows = []
        for id in data.draw(st.lists(st.sampled_from("abcde"), max_size=3, unique=True)):
            row = data.draw(node_rows(2, id))
            pool = PoolName(data.draw(st.sampled_from(self.POOLS)))
            rows.append(
                Node(**{f: getattr(row, f) for f in row.__struct_fields__} | {"pool": pool})
            )
        self.db.upsert_many(rows)
        self.nodes.update((row.id, row) for row in rows)

    @rule(data=st.data())
    @precondition(lambda self: self.nodes)
    def remove(self, data):
        gone = data.draw(st.lists(st.sampled_from(sorted(self.nodes)), max_size=2))
        self.db.remove_many(gone)
        for id in set(gone):
            del self.nodes[id]

    @rule(data=st.data())
    def change_jobs(self, data):
        pairs = []
        for i in data.draw(st.lists(st.integers(0, 6), max_size=3, unique=True)):
            old = self.jobs.get(f"job-{i}")
            new = self.next_version(data, f"job-{i}", old)
            pairs.append((old, new))
            if new is None:
                self.jobs.pop(f"job-{i}", None)
            else:
                self.jobs[new.id] = new
        diff = Pairs(*pairs)
        for _ in range(data.draw(st.integers(1, 2))):  # twice is as once
            self.db.advance(diff)

    def next_version(self, data, id, old):
        if old is None or old.state.terminal:
            name = f"p{data.draw(st.sampled_from(PRIORITIES))}"
            return job(id, *data.draw(vectors(2)), priority_class=name) if old is None else None
        if old.active_run is None:
            return leased(
                old,
                node_id=data.draw(st.sampled_from("abcdef")),
                priority=data.draw(st.sampled_from([0, 3, 5, 10])),
            )
        return data.draw(
            st.sampled_from([requeued(old), ended(old), old.replace(job_set="x"), None])
        )

    @invariant()
    def it_equals_one_built_anew(self):
        if not hasattr(self, "db"):
            return
        assert self.db.check() == []
        anew = NodeDb(self.config, self.nodes.values())
        anew.advance(Pairs.added(self.jobs.values()))
        late = NodeDb(self.config)
        late.advance(Pairs.added(self.jobs.values()))
        late.upsert_many(self.nodes.values())
        assert self.db.ids() == tuple(sorted(self.nodes))
        for pool in self.POOLS:
            rows = sorted((n for n in self.nodes.values() if n.pool == pool), key=lambda n: n.id)
            model = ModelNodes(rows, tuple(PRIORITIES))
            for one in self.jobs.values():
                run = one.active_run
                if run is not None and run.node_id in {row.id for row in rows}:
                    soft = one.requirements.priority_class != "p10"
                    at = CROSS_POOL if soft and run.pool != pool else run.priority
                    model.held[one.id] = Held(run.node_id, one.requirements, at, soft)
            model.close_over_allocated()
            for db in (self.db, anew, late):
                fork = db.fork(pool)
                same(fork, model)
                assert fork.nodes == tuple(rows)
                for row in rows:
                    assert fork.over_allocated(row.id) == (row.id in model.closed)
                    assert fork.takes_new(row.id) == (
                        row.takes_new_runs and row.id not in model.closed
                    )
                asked = Requirements(ResourceVector((1, 1)), "p0")
                assert answer(fork.find(asked, 5)) == model.find(asked, 5)


TestFollowing = Following.TestCase
TestFollowing.settings = settings(SEQUENCES, stateful_step_count=15)


@given(st.data())
@settings(max_examples=25)
def test_both_searches_give_the_same_nodes(data):
    """The kernel that the machine has and the portable one, past the width of a block."""
    from pyresched._core import use_portable_scan

    width = data.draw(st.integers(1, 4))
    seed = data.draw(st.integers(0, 2**32))
    count = data.draw(st.integers(60, 200))
    amounts = [[(seed >> (i * 3 + r) % 29) % 5 for r in range(width)] for i in range(count)]
    rows = [
        Node(
            id=NodeId(f"n{i:03}"),
            total=ResourceVector(amount),
            intake=Intake.CORDONED if (seed + i) % 7 == 0 else Intake.OPEN,
        )
        for i, amount in enumerate(amounts)
    ]
    db = NodeDb(node_config(*PRIORITIES, width=width), rows)
    asked = data.draw(st.lists(requests(width, st.integers(0, 3)), min_size=1, max_size=4)) * 40
    names = [f"job-{i}" for i in range(len(asked))]
    placed = []
    try:
        for portable in (False, True):
            use_portable_scan(portable)
            placed.append(db.fork("default").table.place_each(names, asked, 5, True))
    finally:
        use_portable_scan(False)
    assert placed[0] == placed[1]
    model = ModelNodes(rows, tuple(PRIORITIES))
    for name, requirements, node_id in zip(names[:20], asked, placed[0], strict=False):
        expected = model.find(requirements, 5)
        assert node_id == (None if expected is None else expected[0])
        if expected is not None:
            model.held[name] = Held(expected[0], requirements, 5, preemptible=True)
