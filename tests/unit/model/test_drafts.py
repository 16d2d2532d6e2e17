"""A draft hands out each row once, one version above what it read, and reads its own decisions.

Holds INV-J2 with the guards of `tests/unit/store/test_memory.py`.
"""

from kit.jobs import gang, job
from kit.readers import DictReader
from pyresched.model import Changes, Draft, EventKind


def test_a_row_put_twice_is_one_version_above_what_was_read() -> None:
    """Otherwise its guard would name a version that never was."""
    row = job("a", version=4)
    draft = Draft(DictReader([row]))
    first = draft.put(row.replace(reason="x"))
    second = draft.put(first.replace(priority=7))
    assert (first.version, second.version) == (5, 5)
    changes = draft.changes()
    assert changes.jobs == (row.replace(reason="x", priority=7, version=5),)
    assert changes.expected() == {("job", "a"): 4}


def test_a_draft_reads_its_own_decisions() -> None:
    """By id, from a row of the reader, and as members of a gang."""
    first, second = gang("g", size=2)
    draft = Draft(DictReader([first, second, job("z")]))
    put = draft.put(second.replace(reason="x"))
    assert draft.job(second.id) == draft.seen(second) == put
    assert list(draft.members(first)) == [first, put]
    assert list(draft.members(job("z"))) == [job("z")]
    assert draft.job("nobody") is None


def test_a_draft_without_decisions_changes_nothing() -> None:
    """Its changes are falsy, so that nothing is committed."""
    draft = Draft(DictReader([job("a")]))
    assert draft.changes() == Changes()
    assert not draft.changes()


def test_events_keep_their_order_and_name_job_and_run() -> None:
    """Readers act on them alone."""
    row = job("a", job_set="s")
    draft = Draft(DictReader([row]))
    draft.emit(EventKind.SUBMITTED, row, at=3)
    draft.emit(EventKind.REFUSED, row, at=4, reason="no_nodes")
    events = draft.changes().events
    assert [event.kind for event in events] == [EventKind.SUBMITTED, EventKind.REFUSED]
    assert (events[1].job_id, events[1].queue, events[1].job_set) == ("a", "queue-a", "s")
    assert (events[1].at, events[1].reason, events[1].run_id) == (4, "no_nodes", "")
