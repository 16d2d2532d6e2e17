"""Reasons: typed, with the amounts, and worked out only when someone asks."""

from kit.jobs import requirements
from kit.nodes import node, node_config
from pyresched.model import Ends, Intake, ReasonCode, ResourceVector, UnschedulableReason
from pyresched.nodedb import EVICTED, NodeDb, NotFound


def refusal(nodes, *amounts, priority=1000, **asked):
    """Why a request of *amounts* finds nothing."""
    fork = NodeDb(node_config(width=len(amounts)), nodes).fork("default")
    found = fork.find(requirements(*amounts, **asked), priority)
    assert isinstance(found, NotFound)
    return found


def short(code, resource, wanted, had):
    """The reason that *resource* is short."""
    return UnschedulableReason(code, Ends.GANG, resource, wanted, had)


def test_an_empty_pool_has_no_nodes():
    """Nothing to look at."""
    assert refusal([], 1, 1).reasons == (UnschedulableReason(ReasonCode.NO_NODES),)


def test_nodes_that_take_nothing_are_no_nodes():
    """Lost, cordoned and draining nodes take no part."""
    closed = [
        node("a", lost_at=3),
        node("b", intake=Intake.CORDONED),
        node("c", intake=Intake.DRAINING),
    ]
    assert refusal(closed, 1, 1).reason.code is ReasonCode.NO_NODES


def test_a_selector_that_no_node_meets_is_named():
    """Not a matter of room."""
    found = refusal([node(labels={"zone": "a"})], 1, 1, selector={"zone": "b"})
    assert found.reasons == (UnschedulableReason(ReasonCode.NO_MATCHING_NODE),)
    assert (found.nodes, found.matching) == (1, 0)


def test_each_resource_that_every_node_lacks_is_named_with_the_best():
    """In vector order, with what was wanted and the most that a node has."""
    found = refusal([node("a", 4, 9, 1), node("b", 6, 2, 1)], 7, 10, 1)
    assert found.reasons == (
        short(ReasonCode.EXCEEDS_EVERY_NODE, "cpu", 7, 6),
        short(ReasonCode.EXCEEDS_EVERY_NODE, "memory", 10, 9),
    )
    assert found.reason.sentence() == "exceeds every node: cpu: wanted 7, best node had 6"


def test_amounts_that_no_single_node_has_together_are_those_of_the_nearest_node():
    """One node has the cpu, the other the memory: the one that is short of the fewest is told."""
    found = refusal([node("a", 8, 1, 0), node("b", 1, 8, 9)], 8, 8, 1)
    assert found.reasons == (short(ReasonCode.EXCEEDS_EVERY_NODE, "cpu", 8, 1),)


def test_what_would_fit_an_empty_node_lacks_room_now():
    """A running job is in the way: what is left is told, not what there is."""
    fork = NodeDb(node_config(), [node("a", 8, 8), node("b", 2, 2)]).fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("j", requirements(5, 1), "a", 1000, False)
        found = fork.find(requirements(4, 1), 1000)
        assert found.reasons == (short(ReasonCode.INSUFFICIENT_RESOURCES, "cpu", 4, 3),)
        assert repr(found) == ("NotFound(insufficient resources: cpu: wanted 4, best node had 3)")


def test_reasons_are_those_of_the_moment_of_the_search():
    """What changed since, or was taken back, does not change them."""
    fork = NodeDb(node_config(), [node("a", 8, 8)]).fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("j", requirements(8, 1), "a", 1000, False)
        found = fork.find(requirements(4, 1), 1000)
    assert fork.find(requirements(4, 1), 1000)
    assert found.reasons == (short(ReasonCode.INSUFFICIENT_RESOURCES, "cpu", 4, 0),)


def test_room_at_the_level_asked_for_is_told():
    """A preemptible job is in the way of free room only."""
    fork = NodeDb(node_config(0, 5, preemptible=[0]), [node("a", 8, 8)]).fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("j", requirements(6, 1), "a", 0, True)
        assert fork.find(requirements(9, 1), 5).reason.code is ReasonCode.EXCEEDS_EVERY_NODE
        assert fork.not_found(requirements(5, 1), EVICTED).reason.had == 2
        assert fork.find(requirements(5, 1), 0).reason.had == 2
        assert fork.find(requirements(5, 1), 5)


def test_an_over_allocated_node_is_short_of_room():
    """It takes part, has less than nothing, and says so even where a level looks free."""
    db = NodeDb(node_config(0, 5, preemptible=[0]), [node("a", 8, 8)])
    fork = db.fork("default")
    with fork.attempt() as attempt:
        attempt.bind_as("j", requirements(9, 1), "a", 0, True)
        attempt.keep()
    fork.table.close_over_allocated()
    for priority in (0, 5, EVICTED):
        found = fork.find(requirements(1, 1), priority)
        assert found.reasons == (short(ReasonCode.INSUFFICIENT_RESOURCES, "cpu", 1, -1),)


def test_a_hundred_thousand_refusals_make_no_reason(monkeypatch):
    """Equal refusals are one object until room is given back, and its reasons wait to be read."""
    asked = []
    original = NotFound._short_of
    monkeypatch.setattr(NotFound, "_short_of", lambda *given: asked.append(1) or original(*given))
    fork = NodeDb(node_config(), [node("a", 8, 8)]).fork("default")
    need = requirements(9, 1)
    found = [fork.find(need, 1000) for _ in range(100_000)]
    assert len(set(map(id, found))) == 1
    assert not asked
    assert found[0].reason.had == 8
    with fork.attempt() as attempt:
        attempt.bind_as("j", requirements(1, 1), "a", 1000, False)
        assert fork.find(need, 1000) is found[0]
        attempt.unbind("j")
        assert fork.find(need, 1000) is not found[0]


def test_not_found_is_false_and_a_candidate_true():
    """So that a search reads as a question."""
    fork = NodeDb(node_config(), [node("a", 8, 8)]).fork("default")
    assert fork.find(requirements(8, 8), 1000)
    assert not fork.find(requirements(9, 8), 1000)
    assert fork.not_found(requirements(9, 8), 1000).wanted == ResourceVector((9, 8))
