"""The node db on clusters that fill many leaves of its index, against plain arrays.

Leaves hold up to 64 nodes, branches up to 64 leaves, and 64 branches are searched at a time: the
sizes are those around one leaf, around two, past a branch, and past a block of branches. Nodes
that move together make leaves and branches overflow, empty and join. Holds INV-B1 to INV-B7,
INV-B11.
"""

from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from kit.jobs import job, leased
from kit.nodes import Pairs, node_config
from kit.wide_nodes import WideModel
from pyresched._core import use_portable_scan
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

LEAF = 64
SIZES = [1, LEAF - 1, LEAF, LEAF + 1, 2 * LEAF, 2 * LEAF + 1, 5 * LEAF, 11 * LEAF + 3]
LEVELS = (0, 5, 10)
SPOT = Taint("spot", "", TaintEffect.PREFER_NO_SCHEDULE)
GPU = Taint("gpu", "", TaintEffect.NO_SCHEDULE)
OPERATIONS = (
    "place",
    "place",
    "scatter",
    "gather",
    "evict",
    "give_back",
    "unbind",
    "find",
    "batch",
)
STEP = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2**16))
_EXAMPLES = settings.default.max_examples
WIDE = settings(max_examples=_EXAMPLES if _EXAMPLES > 1000 else min(_EXAMPLES, 40))


def cluster(draw, count, width, *, alike):
    """Nodes alike or of many sizes; some closed, tainted, labelled."""
    rows = []
    for i in range(count):
        amounts = [24] * width if alike else [draw.randrange(0, 40) for _ in range(width)]
        rows.append(
            Node(
                id=NodeId(f"n{i:05}"),
                total=ResourceVector(amounts),
                labels={"zone": "ab"[i % 2]} if i % 3 else {},
                taints=((), (), (SPOT,), (GPU,), ())[draw.randrange(5)],
                intake=Intake.CORDONED if draw.randrange(12) == 0 else Intake.OPEN,
                lost_at=5 if draw.randrange(15) == 0 else None,
            )
        )
    return rows


def request(draw, width, *, most=7):
    """What a job asks for; seldom for nothing at all, seldom for a zone, or for tainted nodes."""
    return Requirements(
        ResourceVector([draw.randrange(0, most) for _ in range(width)]),
        f"p{draw.choice(LEVELS)}",
        selector=[("zone", draw.choice("ab"))] if draw.randrange(4) == 0 else (),
        tolerations=(Toleration("gpu", exists=True),) if draw.randrange(3) == 0 else (),
    )


class Walk:
    """One fork and its model under steps drawn from numbers."""

    def __init__(self, draw, count, *, alike):
        self.width = draw.randrange(1, 5)
        rows = cluster(draw, count, self.width, alike=alike)
        self.fork = NodeDb(node_config(*LEVELS, width=self.width), rows).fork("default")
        self.model = WideModel(rows, LEVELS)
        self.made = 0
        self.open = []

    def step(self, operation, seed):
        draw = Random(seed)
        getattr(self, operation)(draw)

    def names(self, count):
        self.made += count
        return [f"job-{n:06}" for n in range(self.made - count, self.made)]

    def place(self, draw):
        """A burst of two shapes, found and bound in turn."""
        shapes = [request(draw, self.width), request(draw, self.width)]
        asked = [draw.choice(shapes) for _ in range(draw.randrange(1, 30))]
        priority, preemptible = draw.choice(LEVELS), draw.random() < 0.7
        names = self.names(len(asked))
        placed = self.fork.table.place_each(names, asked, priority, preemptible)
        for name, wanted, node_id in zip(names, asked, placed, strict=True):
            found = self.model.find(wanted, priority)
            assert node_id == (None if found is None else found[0]), name
            if found is not None:
                node = self.model.ids.index(found[0])
                self.model.bind(name, node, wanted, priority, preemptible=preemptible)

    def bind(self, name, node, wanted, priority, preemptible):
        node_id = self.model.ids[node]
        self.fork.table.bind(name, wanted, node_id, priority, preemptible)
        self.model.bind(name, node, wanted, priority, preemptible=preemptible)

    def scatter(self, draw):
        """Something different for each of many nodes: what lay together lies apart."""
        priority, preemptible = draw.choice(LEVELS), draw.random() < 0.5
        for node in range(0, len(self.model.ids), draw.randrange(1, 4)):
            wanted = request(draw, self.width, most=20)
            self.bind(self.names(1)[0], node, wanted, priority, preemptible)

    def gather(self, draw):
        """The same for each of many nodes that follow each other."""
        wanted, priority = request(draw, self.width), draw.choice(LEVELS)
        first = draw.randrange(len(self.model.ids))
        for node in range(first, min(first + 3 * LEAF, len(self.model.ids))):
            self.bind(self.names(1)[0], node, wanted, priority, preemptible=True)

    def some(self, draw, *, evicted):
        held = [name for name, hold in self.model.held.items() if hold.evicted == evicted]
        return draw.sample(held, min(len(held), draw.randrange(1, 90)))

    def evict(self, draw):
        for name in self.some(draw, evicted=False):
            self.fork.table.evict(name)
            self.model.evict(name)

    def give_back(self, draw):
        for name in self.some(draw, evicted=True):
            hold = self.model.held[name]
            priority = draw.choice(LEVELS)
            self.bind(name, hold.node, hold.requirements, priority, hold.preemptible)

    def unbind(self, draw):
        for name in [*self.some(draw, evicted=draw.random() < 0.3), "nobody"]:
            self.fork.table.unbind(name)
            self.model.unbind(name)

    def find(self, draw):
        """With nodes to avoid and a few that may be named."""
        ids = self.model.ids
        avoid = {draw.choice(ids): draw.randrange(3) for _ in range(draw.randrange(0, 80))}
        only = draw.sample(ids, draw.randrange(1, len(ids) + 1)) if draw.random() < 0.4 else None
        wanted = request(draw, self.width)
        for priority in (None, -1, 0, 3, 10, 99):
            code = EVICTED if priority is None else priority
            found = self.fork.find(wanted, code, avoid=avoid.items(), only=only)
            level = found and (None if found.level == EVICTED else found.level)
            expected = self.model.find(wanted, priority, avoid=avoid, only=only)
            assert ((found.node_id, level) if found else None) == expected

    def batch(self, draw):
        """Alike jobs in one step go where they would one by one."""
        wanted, priority, count = request(draw, self.width), draw.choice(LEVELS), 40
        placed = self.fork.place_many(wanted, count, priority)
        trial = self.model.copy()
        expected = []
        for n in range(count):
            found = trial.find(wanted, priority)
            if found is None:
                break
            expected.append(found[0])
            node = trial.ids.index(found[0])
            trial.bind(f"trial-{n}", node, wanted, priority, preemptible=False)
        assert [node_id for node_id, copies in placed for _ in range(copies)] == expected

    def begin(self):
        attempt = self.fork.attempt()
        attempt.__enter__()
        self.open.append((attempt, self.model.copy()))

    def end(self, *, keep):
        attempt, before = self.open.pop()
        if keep:
            attempt.keep()
        else:
            self.model = before
        attempt.__exit__(None, None, None)

    def compare(self):
        """All amounts, all bindings, and the fork's own check."""
        assert self.fork.check() == []
        for row, level in enumerate((EVICTED, *LEVELS)):
            for node, node_id in enumerate(self.model.ids):
                left = self.fork.allocatable(node_id, level).to_tuple()
                assert left == tuple(self.model.left[row, node])
        assert sorted(self.fork.table.bound_jobs()) == sorted(self.model.held)


@WIDE
@given(
    size=st.sampled_from(SIZES),
    alike=st.booleans(),
    seed=st.integers(0, 2**16),
    steps=st.lists(STEP, max_size=12),
    inner=st.lists(STEP, max_size=6),
    keep=st.booleans(),
)
def test_any_steps_on_many_nodes_leave_what_arrays_say(*, size, alike, seed, steps, inner, keep):
    """With one attempt inside another that is kept or not, and then all of it taken back."""
    walk = Walk(Random(seed), size, alike=alike)
    note(f"width {walk.width}")
    walk.begin()
    for step in steps:
        walk.step(*step)
    walk.begin()
    for step in inner:
        walk.step(*step)
    walk.end(keep=keep)
    walk.step("place", seed)
    walk.step("find", seed)
    walk.compare()
    walk.end(keep=False)
    walk.step("find", seed)
    walk.compare()


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "different"])
def test_past_the_first_branches(alike):
    """More than 8,192 nodes: scattered, gathered, emptied, taken back, and searched each time."""
    draw = Random(8_192)
    walk = Walk(draw, 8_192 + 3 * LEAF + 5, alike=alike)
    walk.begin()
    for seed, operation in enumerate(
        ("find", "place", "scatter", "place", "find", "gather", "evict", "find", "unbind", "batch")
    ):
        walk.step(operation, seed)
    for name in list(walk.model.held):
        walk.fork.table.unbind(name)
        walk.model.unbind(name)
    walk.step("place", 11)
    walk.compare()
    walk.end(keep=False)
    walk.step("find", 12)
    walk.step("batch", 13)
    assert walk.fork.check() == []


ORDERS = {
    "ascending": lambda ids: ids,
    "descending": lambda ids: ids[::-1],
    "shuffled": lambda ids: Random(1).sample(ids, len(ids)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_alike_nodes_move_from_one_end_of_the_order_to_the_other_and_back(order):
    """Few at a time, so that each search moves them one by one: every leaf splits or empties."""
    count, some = 6_000, 500
    rows = [Node(id=NodeId(f"n{n:05}"), total=ResourceVector((9, 9))) for n in range(count)]
    fork = NodeDb(node_config(0, preemptible=[0]), rows).fork("default")
    ids = ORDERS[order]([row.id for row in rows])
    asked = Requirements(ResourceVector((2, 1)), "p0")
    least = Requirements(ResourceVector((8, 0)), "p0")
    table = fork.table
    best = min(ids)
    assert fork.find(asked, 0).node_id == best
    for start in range(0, count, some):
        for node_id in ids[start : start + some]:
            table.bind(node_id, asked, node_id, 0, True)
        assert fork.find(asked, 0).node_id == min(ids[: start + some])
        left = ids[start + some :]
        assert (fork.find(least, 0) or None) == ((min(left), EVICTED) if left else None)
        assert table.check_orders() == []
    back = ORDERS[order](ids)
    for start in range(0, count, some):
        for node_id in back[start : start + some]:
            table.unbind(node_id)
        assert fork.find(least, 0).node_id == min(back[: start + some])
        left = back[start + some :]
        assert fork.find(asked, 0).node_id == min(left or ids)
        assert table.check_orders() == []
    assert fork.check() == []


def test_past_a_block_of_branches():
    """As many nodes as no single block of maxima covers; those of the last branches are found."""
    count = 64 * 48 * 48 + 5_000  # 48 of 64 are used where nothing has moved yet
    rows = [Node(id=NodeId(f"n{n:06}"), total=ResourceVector((n + 1,))) for n in range(count)]
    fork = NodeDb(node_config(0, preemptible=[0], width=1), rows).fork("default")
    for wanted in (1, count // 2, count - 4_000, count):
        asked = Requirements(ResourceVector((wanted,)), "p0")
        assert fork.find(asked, 0) == (f"n{wanted - 1:06}", EVICTED)
    assert not fork.find(Requirements(ResourceVector((count + 1,)), "p0"), 0)
    wanted = Requirements(ResourceVector((count - 2,)), "p0")
    assert [node_id for node_id, _ in fork.place_many(wanted, 9, 0)] == [
        f"n{count - n:06}" for n in (3, 2, 1)
    ]
    assert fork.table.check_orders() == []


@pytest.mark.parametrize("seed", range(4))
def test_forks_of_many_nodes_do_not_share_what_they_change(seed):
    """A fork in the middle of an attempt keeps its leaves while the other splits its own."""
    draw = Random(seed)
    walk = Walk(draw, 5 * LEAF + 7, alike=seed % 2 == 0)
    walk.begin()
    walk.step("place", seed)
    walk.step("scatter", seed)
    aside = Walk.__new__(Walk)
    aside.__dict__.update(walk.__dict__)
    aside.fork, aside.model, aside.open = walk.fork.fork(), walk.model.copy(), []
    walk.step("gather", seed)
    walk.step("unbind", seed)
    aside.step("evict", seed + 1)
    aside.step("gather", seed + 1)
    for one in (aside, walk):
        one.step("place", seed)
        one.step("find", seed)
        one.compare()
    walk.end(keep=False)
    walk.compare()
    aside.compare()


@WIDE
@given(st.data())
def test_many_nodes_that_come_and_go_are_as_built_anew(data):
    """Jobs and nodes change between rounds; each fork places as one of a new node db would."""
    draw = Random(data.draw(st.integers(0, 2**16)))
    config = node_config(*LEVELS, preemptible=LEVELS, width=2)
    db, nodes, jobs = NodeDb(config), {}, {}
    for size in data.draw(st.lists(st.sampled_from([3, LEAF, LEAF + 1, 200]), max_size=5)):
        rows = cluster(draw, size, 2, alike=draw.random() < 0.5)
        gone = draw.sample(sorted(nodes), draw.randrange(len(nodes) + 1)) if nodes else []
        db.remove_many(gone)
        nodes = {id: node for id, node in nodes.items() if id not in gone}
        some = draw.sample(rows, draw.randrange(1, size + 1))
        db.upsert_many(some)
        nodes.update((row.id, row) for row in some)
        pairs = []
        for n in range(draw.randrange(size * 2)):
            id = f"job-{draw.randrange(4 * n + 4)}"
            old = jobs.get(id)
            if any(id == pair[0].id for pair in pairs if pair[0] is not None) or (
                old is None and any(pair[1] is not None and pair[1].id == id for pair in pairs)
            ):
                continue
            new = None
            if old is None:
                priority = draw.choice(LEVELS)
                asked = (draw.randrange(8), draw.randrange(8))
                new = leased(
                    job(id, *asked, priority_class=f"p{priority}"),
                    node_id=f"n{draw.randrange(200):05}",
                    priority=priority,
                )
                jobs[id] = new
            else:
                del jobs[id]
            pairs.append((old, new))
        db.advance(Pairs(*pairs))
        equal_to_anew(db, config, nodes, jobs, draw)


def equal_to_anew(db, config, nodes, jobs, draw):
    """The db, one built anew and the arrays place the same jobs on the same nodes."""
    assert db.check() == []
    anew = NodeDb(config, nodes.values())
    anew.advance(Pairs.added(jobs.values()))
    model = WideModel(nodes.values(), LEVELS)
    for one in jobs.values():
        run = one.active_run
        if run.node_id in nodes:
            node = model.ids.index(run.node_id)
            model.bind(one.id, node, one.requirements, run.priority, preemptible=True)
    model.close_over_allocated()
    asked = [request(draw, 2) for _ in range(25)]
    names = [f"new-{n}" for n in range(len(asked))]
    expected = []
    for name, wanted in zip(names, asked, strict=True):
        found = model.find(wanted, 5) if model.ids else None
        expected.append(None if found is None else found[0])
        if found is not None:
            model.bind(name, model.ids.index(found[0]), wanted, 5, preemptible=True)
    for each in (db, anew):
        fork = each.fork("default")
        assert fork.table.place_each(names, asked, 5, True) == expected
        assert fork.check() == []


@pytest.mark.parametrize("seed", range(3))
def test_both_kernels_place_alike_through_splits_and_joins(seed):
    """What the machine has and portable C, at each width, over the same steps."""
    placed = []
    try:
        for portable in (False, True):
            use_portable_scan(portable)
            walk = Walk(Random(seed), 11 * LEAF + 3, alike=seed == 0)
            for n, operation in enumerate(("scatter", "place", "gather", "place", "unbind")):
                walk.step(operation, seed * 10 + n)
            walk.compare()
            names = walk.names(60)
            asked = [request(Random(n), walk.width) for n in range(60)]
            placed.append(walk.fork.table.place_each(names, asked, 10, True))
    finally:
        use_portable_scan(False)
    assert placed[0] == placed[1]
