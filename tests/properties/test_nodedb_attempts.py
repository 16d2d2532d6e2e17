"""Attempts with many jobs at once under any sequence of steps, beside the plain model.

What a step refuses leaves everything as it was; after each step the fork checks itself.
Holds INV-B1 to INV-B5, INV-B8 to INV-B10.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kit.jobs import job
from kit.nodes import Held, ModelNodes, node_config
from pyresched.errors import IllegalBinding, InputError, UnknownNode
from pyresched.model import (
    Intake,
    Node,
    NodeId,
    Requirements,
    ResourceVector,
    Taint,
    TaintEffect,
    Toleration,
)
from pyresched.nodedb import EVICTED, NodeDb

LEVELS = (0, 5, 10)
CONFIG = node_config(*LEVELS, preemptible=[0, 5])
SPOT = Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE)
OLD = Taint("old", "", TaintEffect.NO_SCHEDULE)
SHAPES = [
    Requirements(ResourceVector(amounts), f"p{level}", selector=selector, tolerations=tolerations)
    for amounts in ((1, 1), (2, 1), (0, 3), (4, 4))
    for level in LEVELS
    for selector in ((), (("zone", "a"),))
    for tolerations in ((), (Toleration("old", exists=True),))
]
ROW = st.builds(
    lambda amounts, zone, taint, intake: {
        "total": ResourceVector(amounts),
        "labels": {"zone": zone} if zone else {},
        "taints": (taint,) if taint else (),
        "intake": intake,
    },
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([SPOT, OLD, None, None]),
    st.sampled_from([Intake.OPEN, Intake.OPEN, Intake.OPEN, Intake.DRAINING]),
)
PRIORITY = st.sampled_from([None, None, 0, 5, 7, 10])


def class_of(shape):
    """The priority and whether it may be preempted."""
    level = int(shape.priority_class[1:])
    return level, level != 10


class Trying(RuleBasedStateMachine):
    """One fork, nested attempts, and calls for many jobs of which one may be wrong."""

    @initialize(rows=st.lists(ROW, min_size=1, max_size=6))
    def begin(self, rows):
        self.rows = [Node(id=NodeId(f"n{i}"), **fields) for i, fields in enumerate(rows)]
        self.ids = [row.id for row in self.rows]
        self.fork = NodeDb(CONFIG, self.rows).fork("default")
        self.model = ModelNodes(list(self.rows), LEVELS)
        self.open = []
        self.count = 0

    @property
    def inner(self):
        return self.open[-1][0]

    def new_jobs(self, shapes):
        self.count += len(shapes)
        return [
            job(f"job-{self.count - n:03}", requirements=shape) for n, shape in enumerate(shapes)
        ]

    def held(self, *, evicted=None):
        return sorted(id for id, one in self.model.held.items() if evicted in {None, one.evicted})

    def hold(self, one, node_id, priority):
        level, preemptible = class_of(one.requirements)
        at = level if priority is None else priority
        self.model.held[one.id] = Held(node_id, one.requirements, at, preemptible)

    @rule()
    @precondition(lambda self: len(self.open) < 3)
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

    @rule(shapes=st.lists(st.sampled_from(SHAPES), max_size=6), priority=PRIORITY)
    @precondition(lambda self: self.open)
    def place(self, shapes, priority):
        new = self.new_jobs(shapes)
        placed = self.inner.place(new, priority)
        for one, node_id in zip(new, placed, strict=True):
            level, _ = class_of(one.requirements)
            found = self.model.find(one.requirements, level if priority is None else priority)
            assert node_id == (found and found[0])
            if found:
                self.hold(one, node_id, priority)

    @rule(data=st.data(), shapes=st.lists(st.sampled_from(SHAPES), max_size=5), priority=PRIORITY)
    @precondition(lambda self: self.open)
    def bind_many(self, data, shapes, priority):
        new = self.new_jobs(shapes)
        where = [data.draw(st.sampled_from(self.ids)) for _ in new]
        self.inner.bind_many(new, where, priority)
        for one, node_id in zip(new, where, strict=True):
            self.hold(one, node_id, priority)

    @rule(data=st.data(), shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=5))
    @precondition(lambda self: self.open)
    def bind_many_with_one_wrong(self, data, shapes):
        new = self.new_jobs(shapes)
        where = [data.draw(st.sampled_from(self.ids)) for _ in new]
        at = data.draw(st.integers(0, len(new)))
        held = self.held(evicted=False)
        wrong = {
            "node": (job("x", requirements=SHAPES[0]), "nowhere"),
            "width": (job("x", 1, 1, 1, priority_class="p0"), self.ids[0]),
            "negative": (job("x", -1, 1, priority_class="p0"), self.ids[0]),
        }
        if held:
            wrong["held"] = (job(held[0], requirements=SHAPES[0]), self.ids[0])
        bad, node_id = wrong[data.draw(st.sampled_from(sorted(wrong)))]
        new.insert(at, bad)
        where.insert(at, node_id)
        with pytest.raises((IllegalBinding, InputError, UnknownNode)):
            self.inner.bind_many(new, where)
        if node_id != "nowhere":
            with pytest.raises((IllegalBinding, InputError)):
                self.inner.place(new)

    @rule(data=st.data())
    @precondition(lambda self: self.open and self.held(evicted=False))
    def evict_many(self, data):
        some = data.draw(st.lists(st.sampled_from(self.held(evicted=False)), unique=True))
        for wrong in ([some[0]] if some else []) + ["nobody"]:
            with pytest.raises(IllegalBinding):
                self.inner.evict_many([*some, wrong])
        self.the_fork_is_the_model()
        self.inner.evict_many(some)
        for id in some:
            self.model.held[id].evicted = True

    @rule(data=st.data(), priority=PRIORITY)
    @precondition(lambda self: self.open and self.held(evicted=True))
    def give_back(self, data, priority):
        some = data.draw(st.lists(st.sampled_from(self.held(evicted=True)), unique=True))
        jobs = [job(id, requirements=self.model.held[id].requirements) for id in some]
        where = [self.model.held[id].node_id for id in some]
        self.inner.bind_many(jobs, where, priority)
        for one, node_id in zip(jobs, where, strict=True):
            del self.model.held[one.id]
            self.hold(one, node_id, priority)

    @rule(data=st.data())
    @precondition(lambda self: self.open)
    def unbind_many(self, data):
        some = data.draw(st.lists(st.sampled_from([*self.held(), "nobody"]), unique=True))
        self.inner.unbind_many(some)
        for id in some:
            self.model.held.pop(id, None)

    @rule(
        data=st.data(),
        shape=st.sampled_from(SHAPES),
        priority=st.sampled_from([EVICTED, 0, 3, 5, 10]),
    )
    def ask(self, data, shape, priority):
        avoid = data.draw(st.dictionaries(st.sampled_from(self.ids), st.integers(0, 2)))
        only = data.draw(st.none() | st.lists(st.sampled_from(self.ids), unique=True))
        at = None if priority == EVICTED else priority
        found = self.fork.find(shape, priority, avoid=avoid.items(), only=only)
        expected = self.model.find(shape, at, avoid=avoid, only=only)
        level = found and (None if found.level == EVICTED else found.level)
        assert ((found.node_id, level) if found else None) == expected
        batch = self.fork.place_many(shape, 7, priority, avoid=avoid.items())
        spread = [node_id for node_id, copies in batch for _ in range(copies)]
        assert spread == self.model.place_many(shape, 7, at, avoid=avoid)

    @rule(data=st.data(), shape=st.sampled_from(SHAPES), priority=st.sampled_from(LEVELS))
    @precondition(lambda self: len(self.held()) <= 8)
    def who_would_go(self, data, shape, priority):
        candidates = data.draw(st.permutations(self.held()))
        found = self.fork.victims(shape, priority, candidates)
        expected = self.model.victims(shape, priority, candidates)
        assert ((found.node_id, list(found.job_ids)) if found else None) == expected

    @invariant()
    def the_fork_is_the_model(self):
        if not hasattr(self, "fork"):
            return
        assert self.fork.check() == []
        for row in self.rows:
            assert self.fork.allocatable(row.id, EVICTED).to_tuple() == self.model.left(row, None)
            for level in LEVELS:
                left = self.fork.allocatable(row.id, level).to_tuple()
                assert left == self.model.left(row, level)
        assert sorted(self.fork.table.bound_jobs()) == self.held()
        for id, one in self.model.held.items():
            assert self.fork.binding(id) == tuple(vars(one).values())

    def teardown(self):
        for attempt, before in reversed(getattr(self, "open", [])):
            attempt.__exit__(None, None, None)
            self.model = before
            self.the_fork_is_the_model()


_EXAMPLES = settings.default.max_examples
TestTrying = Trying.TestCase
TestTrying.settings = settings(
    max_examples=_EXAMPLES if _EXAMPLES > 1000 else min(_EXAMPLES, 60), stateful_step_count=25
)
