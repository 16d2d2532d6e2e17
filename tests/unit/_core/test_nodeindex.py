"""The native table by itself: what it refuses, and what only native callers use."""

import pytest

from kit.jobs import requirements
from pyresched._core import EVICTED, NodeTable, use_portable_scan
from pyresched.errors import IllegalBinding, InputError, UnknownNode
from pyresched.model import ResourceVector

ONE = requirements(1, 1)


def table(*totals, levels=(0, 5)):
    """Nodes `n0`, `n1`, ... that take anything that fits."""
    one = NodeTable(levels, 2)
    ids = tuple(f"n{i}" for i in range(len(totals)))
    one.set_nodes(ids, [ResourceVector(total) for total in totals], b"\1" * len(totals))
    return one


@pytest.mark.parametrize("levels", [(5, 0), (0, 0)])
def test_levels_ascend(levels):
    """In any other order a job would see the wrong room."""
    with pytest.raises(InputError, match="levels must ascend"):
        NodeTable(levels, 2)


@pytest.mark.parametrize("width", [0, -1, 65])
def test_the_number_of_resources_has_limits(width):
    """At least one, and not past what a search keeps on its stack."""
    with pytest.raises(InputError, match="write from 1 to 64"):
        NodeTable((0,), width)


def test_no_class_at_all_leaves_the_evicted_level():
    """Then everything asks for room that nobody holds."""
    one = NodeTable((), 1)
    one.set_nodes(("a",), [ResourceVector((4,))], b"\1")
    one.bind("j", requirements(3), "a", 7, True)
    assert one.amounts(0, 0) == ResourceVector((1,))


@pytest.mark.parametrize(
    ("ids", "totals", "takes_new", "says"),
    [
        (("b", "a"), [(1, 1), (1, 1)], b"\1\1", "ascend without repeats"),
        (("a", "a"), [(1, 1), (1, 1)], b"\1\1", "ascend without repeats"),
        (("a",), [], b"\1", "one length"),
        (("a",), [(1, 1)], b"", "one length"),
        (("a",), [(1, 1, 1)], b"\1", "3 amounts where there are 2 resources"),
        (("a",), [(1, -1)], b"\1", "amount -1 of resource 1"),
    ],
    ids=["order", "twice", "totals", "flags", "width", "negative"],
)
def test_a_bad_set_of_nodes_leaves_the_old_one(ids, totals, takes_new, says):
    """Nothing half applied."""
    one = table((8, 8))
    one.bind("j", ONE, "n0", 0, True)
    with pytest.raises(InputError, match=says):
        one.set_nodes(ids, [ResourceVector(total) for total in totals], takes_new)
    assert one.node_ids == ("n0",)
    assert one.bound(0) == ["j"]
    assert one.amounts(0, 0) == ResourceVector((7, 7))


def test_nodes_do_not_change_within_an_attempt():
    """What an attempt takes back must still be there."""
    one = table((8, 8))
    mark = one.begin()
    for change in (
        lambda: one.set_nodes((), [], b""),
        lambda: one.set_node(0, ResourceVector((1, 1)), takes_new=True),
        one.drop_unused_shapes,
    ):
        with pytest.raises(IllegalBinding, match="within an attempt"):
            change()
    one.undo(mark)


def test_bindings_of_nodes_that_are_gone_are_handed_back():
    """Sorted by job id, with all that is needed to bind them again."""
    one = table((8, 8), (8, 8), (8, 8))
    for job_id, node_id in [("z", "n0"), ("y", "n1"), ("a", "n2"), ("b", "n0")]:
        one.bind(job_id, ONE, node_id, 5, job_id == "z")
    gone = one.set_nodes(("n1", "x"), [ResourceVector((8, 8))] * 2, b"\1\1")
    assert gone == [
        ("a", "n2", ONE, 5, False, ""),
        ("b", "n0", ONE, 5, False, ""),
        ("z", "n0", ONE, 5, True, ""),
    ]
    assert one.bound_jobs() == ["y"]
    assert one.bound(0) == ["y"]
    assert one.amounts(0, 2) == ResourceVector((7, 7))
    one.bind("z", ONE, "x", 0, True)
    assert one.bound(1) == ["z"]


def test_marks_belong_to_open_attempts():
    """Undo and keep take the mark that begin gave, inner attempts first."""
    one = table((8, 8))
    for wrong in (0, -1, 5):
        with pytest.raises(IllegalBinding, match="no open attempt"):
            one.undo(wrong)
        with pytest.raises(IllegalBinding, match="no open attempt"):
            one.keep(wrong)
    outer = one.begin()
    one.bind("j", ONE, "n0", 0, True)
    with pytest.raises(IllegalBinding, match="no open attempt"):
        one.undo(outer + 1)
    inner = one.begin()
    with pytest.raises(IllegalBinding, match="inside that one is open"):
        one.keep(outer)
    one.keep(inner)
    with pytest.raises(IllegalBinding, match="no open attempt"):
        one.undo(inner)
    one.keep(outer)
    assert one.depth == 0
    assert one.bound(0) == ["j"]
    outer, inner = one.begin(), one.begin()
    one.unbind("j")
    one.undo(outer)
    assert (one.depth, one.bound(0)) == (0, ["j"])


def test_a_stamp_holds_until_room_is_given_back():
    """Across attempts that are taken back; a release that is kept ends it, and a new one holds."""
    one = table((8, 8))
    one.bind("j", ONE, "n0", 0, True)
    outside = one.stamp()
    mark = one.begin()
    inside = one.stamp()
    assert one.is_current(outside)
    assert one.is_current(inside)
    one.bind("k", ONE, "n0", 0, True)
    assert one.is_current(outside)
    one.unbind("k")
    assert not one.is_current(outside)
    assert not one.is_current(inside)
    assert one.is_current(one.stamp())
    one.undo(mark)
    assert one.is_current(outside)
    assert not one.is_current(inside)
    mark = one.begin()
    one.bind("k", ONE, "n0", 0, True)
    one.keep(mark)
    assert one.is_current(outside)
    mark = one.begin()
    one.evict("k")
    one.keep(mark)
    assert not one.is_current(outside)
    assert one.is_current(one.stamp())
    assert not one.is_current(0)


def test_undo_restores_the_order_in_which_the_round_walks_a_node():
    """Newest first, whatever was unbound in between."""
    one = table((8, 8))
    for n in range(5):
        one.bind(f"j{n}", ONE, "n0", 0, True)
    before = one.bound_newest_first(0)
    assert before == ["j4", "j3", "j2", "j1", "j0"]
    mark = one.begin()
    for job_id in ("j0", "j4", "j2", "j1"):
        one.unbind(job_id)
    one.bind("j2", ONE, "n0", 5, True)
    assert one.bound_newest_first(0) == ["j2", "j3"]
    one.undo(mark)
    assert one.bound_newest_first(0) == before


def test_a_mask_must_cover_every_node():
    """A matcher that is not ours is not trusted with memory."""
    one = table((8, 8), (8, 8))
    one.matcher = lambda _: (b"\1", None)
    with pytest.raises(ValueError, match="a byte for each node"):
        one.find_for(ONE, 0)
    one.matcher = lambda _: (b"\0\1".ljust(64, b"\0"), None)
    assert one.find_for(ONE, 0) == ("n1", EVICTED)


def test_a_matcher_that_raises_leaves_the_table_usable():
    """Its error comes through, and the next question is answered."""
    one = table((8, 8))

    def broken(_):
        raise ZeroDivisionError

    one.matcher = broken
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            one.find_for(ONE, 0)
    one.matcher = None
    assert one.find_for(ONE, 0) == ("n0", EVICTED)


def test_a_batch_that_cannot_be_binds_nothing():
    """A job that holds a node, stands twice, or has a bad request."""
    one = table((8, 8))
    one.bind("j", ONE, "n0", 0, True)
    for ids, asked, error in [
        (["a", "j"], [ONE, ONE], IllegalBinding),
        (["a", "a"], [ONE, ONE], IllegalBinding),
        (["a", "b"], [ONE], InputError),
        (["a", "b"], [ONE, requirements(-1, 1)], InputError),
        (["a", None], [ONE, ONE], TypeError),
        (["a", "b"], [ONE, None], TypeError),
    ]:
        with pytest.raises(error):
            one.place_each(ids, asked, 0, True)
        assert one.bound_jobs() == ["j"]
    assert one.place_each([], [], 0, True) == []
    assert one.place_each(["a", "b"], [ONE, requirements(9, 9)], 0, True) == ["n0", None]


def test_indices_out_of_range_are_refused():
    """Node and row."""
    one = table((8, 8))
    for call in (one.bound, one.total, one.is_open, one.is_over, one.bound_newest_first):
        for wrong in (-1, 1):
            with pytest.raises(IndexError):
                call(wrong)
    for node in (-1, 1):
        with pytest.raises(IndexError):
            one.amounts(node, 0)
    with pytest.raises(IndexError):
        one.find_for(ONE, 0, None, [1])
    with pytest.raises(IndexError):
        one.find_for(ONE, 0, [(1, 1)])
    with pytest.raises(IndexError):
        one.shortfall(ONE, 0, [-1])
    with pytest.raises(UnknownNode):
        one.hold("j", ONE, "x", 0, True)


def test_wrong_types_are_type_errors():
    """None is no id, no request, no vector."""
    one = table((8, 8))
    for call in (
        lambda: one.bind(None, ONE, "n0", 0, True),
        lambda: one.bind("j", None, "n0", 0, True),
        lambda: one.find_for(None, 0),
        lambda: one.set_node(0, None, takes_new=True),
        lambda: one.evict(None),
        lambda: one.victims_for(ONE, 0, [None]),
    ):
        with pytest.raises((TypeError, IllegalBinding)):
            call()
    assert one.bound_jobs() == []


def test_the_portable_search_can_be_chosen():
    """And says whether this machine has another."""
    differs = use_portable_scan(True)
    try:
        assert table((8, 8), (4, 4)).find_for(ONE, 0) == ("n1", EVICTED)
    finally:
        assert use_portable_scan(False) is differs


@pytest.mark.parametrize("priority", [EVICTED, EVICTED + 1])
def test_a_priority_that_names_a_level_of_ours_is_refused(priority):
    """The evicted level and that of guests are no job's; nothing is bound."""
    one = table((8, 8))
    with pytest.raises(InputError, match="is none that a job may have"):
        one.bind("j", ONE, "n0", priority, True)
    assert one.bound_jobs() == []
    one.bind("j", ONE, "n0", 3, True)
    assert one.find_for(ONE, 3) is not None
