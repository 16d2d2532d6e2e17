"""The journal in memory: guards, the log, what is forgotten (INV-J1, INV-J11)."""

import pytest

from kit.jobs import ended, job, leased, requirements
from pyresched.errors import Conflict, DuplicateId, Forgotten
from pyresched.jobdb import JobDb
from pyresched.model import (
    Changes,
    Constraint,
    Event,
    EventKind,
    Node,
    Operator,
    Preference,
    Queue,
    QueueName,
    ResourceVector,
    Spread,
    Toleration,
)
from pyresched.store import MemoryJournal


def commit(journal: MemoryJournal, *jobs, events: int = 0, **rows) -> int:
    """Commit rows with the guards that follow from them, and *events* events."""
    said = tuple(Event(kind=EventKind.SUBMITTED, at=n) for n in range(events))
    changes = Changes(jobs=jobs, events=said, **rows)
    return journal.commit(changes, expect=changes.expected())


def node(version: int = 1) -> Node:
    """A node at *version*."""
    return Node(id="node-1", total=ResourceVector([1, 1]), version=version)


def test_a_commit_is_numbered_and_its_rows_are_read_back() -> None:
    """Serials count commits from 1; `load` gives every row in the order in which they came."""
    journal = MemoryJournal()
    first = commit(journal, job("b"), job("a"), queues=(Queue(name=QueueName("q")),))
    second = commit(journal, leased(job("a")), nodes=(node(),))
    assert (first, second) == (1, 2)
    rows, serial = journal.load()
    assert serial == 2
    assert rows.jobs == (job("b"), leased(job("a")))
    assert rows.nodes == (node(),)
    assert rows.queues == (Queue(name=QueueName("q")),)


def test_what_jobs_ask_of_nodes_comes_back_from_a_journal_as_it_was() -> None:
    """The whole language of placement: equal, of one key, and matched alike."""
    zone = Constraint("zone", Operator.IN, ("b", "a"))
    asked = requirements(
        selector={"arch": "arm"},
        tolerations=(Toleration("gpu", exists=True),),
        constraints=(zone, Constraint("", Operator.DISTINCT_HOSTS)),
        affinity=((zone,), (Constraint("kernel", Operator.VERSION, (">= 5.4",)),)),
        preferences=(Preference(-20, (zone,)),),
        spread=(Spread("rack", 70, (("r1", 60),)),),
        scope="web",
        nodes=("n2", "n1"),
    )
    journal = MemoryJournal()
    commit(journal, job("a", requirements=asked), job("b"))
    rows, _ = journal.load()
    back = rows.jobs[0].requirements
    assert back == asked
    assert hash(back) == hash(asked)
    assert repr(back) == repr(asked)
    assert not back.has_scheduling_key
    assert rows.jobs[1].requirements.has_scheduling_key
    db = JobDb()
    with db.write() as txn:
        txn.upsert_many(rows.jobs)
        txn.commit()
    assert db.snapshot().get("a").requirements == asked


def test_a_stale_row_conflicts_and_nothing_is_written() -> None:
    """All or nothing: the other rows and the events of a refused commit are not there either."""
    journal = MemoryJournal()
    commit(journal, job("a"), nodes=(node(),), events=1)
    before = journal.load(), journal.events_since(0)
    with pytest.raises(Conflict) as refused:
        commit(journal, job("new"), job("a"), nodes=(node(3),), events=2)
    assert refused.value.rows == (("job", "a"), ("node", "node-1"))
    assert (journal.load(), journal.events_since(0)) == before


def test_a_row_that_must_be_there_conflicts_when_it_is_not() -> None:
    """A guard above 0 names a row; an unknown one has another version."""
    with pytest.raises(Conflict):
        commit(MemoryJournal(), leased(job("a")))


@pytest.mark.parametrize(
    ("jobs", "expect"),
    [
        pytest.param((job("a"),), {}, id="row without guard"),
        pytest.param((job("a", version=0),), {("job", "a"): 0}, id="version does not grow"),
    ],
)
def test_a_row_without_a_guard_below_it_is_refused(jobs, expect) -> None:
    """A commit that could overwrite unseen is our mistake, and nothing of it is written."""
    journal = MemoryJournal()
    with pytest.raises(ValueError, match="has guard"):
        journal.commit(Changes(jobs=jobs), expect=expect)
    assert journal.load() == (Changes(), 0)


def test_a_row_that_stands_twice_is_refused() -> None:
    """Each row once in a commit: otherwise the later would win unseen."""
    journal = MemoryJournal()
    with pytest.raises(DuplicateId):
        journal.commit(Changes(jobs=(job("a"), job("a", version=2))), expect={("job", "a"): 0})
    assert journal.load() == (Changes(), 0)


def test_an_extra_guard_is_checked_too() -> None:
    """A decision may depend on rows that it does not change."""
    journal = MemoryJournal()
    commit(journal, queues=(Queue(name=QueueName("q"), version=1),))
    with pytest.raises(Conflict, match="queue 'q'"):
        journal.commit(Changes(jobs=(job("a"),)), expect={("job", "a"): 0, ("queue", "q"): 2})


def test_changes_since_gives_each_row_once_at_its_newest() -> None:
    """Whatever the number of commits between, and without events."""
    journal = MemoryJournal()
    a, b = job("a"), job("b")
    commit(journal, a, b, events=1)
    commit(journal, leased(a), nodes=(node(),), events=1)
    assert journal.changes_since(0) == (Changes(jobs=(leased(a), b), nodes=(node(),)), 2)
    assert journal.changes_since(1) == (Changes(jobs=(leased(a),), nodes=(node(),)), 2)
    assert journal.changes_since(2) == (Changes(), 2)
    with pytest.raises(ValueError, match="no commit has serial 3"):
        journal.changes_since(3)


def test_the_log_is_read_by_cursor_without_gap_or_repeat() -> None:
    """Pages of any size give what one page gives."""
    journal = MemoryJournal()
    for n in range(5):
        commit(journal, job(f"job-{n}"), events=n)
    whole, end = journal.events_since(0)
    assert (len(whole), end) == (10, 10)
    assert journal.end() == end
    paged, cursor = [], 0
    while cursor < end:
        page, cursor = journal.events_since(cursor, limit=3)
        paged += page
    assert paged == list(whole)
    assert journal.events_since(end) == ([], end)
    with pytest.raises(ValueError, match="no event 11 yet"):
        journal.events_since(11)


def test_what_is_forgotten_is_never_skipped_silently() -> None:
    """A reader that comes too late is told where the log begins; the rest stays in place."""
    journal = MemoryJournal()
    commit(journal, job("a"), events=4)
    rest = journal.events_since(3)
    journal.forget(3)
    assert journal.events_since(3) == rest
    with pytest.raises(Forgotten, match="the first held is 3"):
        journal.events_since(2)
    journal.forget(1)
    assert journal.events_since(3) == rest
    journal.forget(99)
    assert journal.events_since(4) == ([], 4)
    assert journal.end() == 4


def test_ended_jobs_stay_where_they_are_kept() -> None:
    """By default; then their ids stay taken."""
    journal = MemoryJournal()
    commit(journal, job("a"))
    commit(journal, ended(job("a")), events=1)
    journal.forget(1)
    assert journal.load()[0].jobs == (ended(job("a")),)
    with pytest.raises(Conflict):
        commit(journal, job("a"))


def test_ended_jobs_go_where_they_are_not_kept() -> None:
    """`changes_since` tells of the end until it is forgotten; then of nothing, or Forgotten."""
    journal = MemoryJournal(keep_ended=False)
    commit(journal, job("a"), job("b"), events=1)
    commit(journal, ended(job("a")), events=1)
    commit(journal, job("c"), events=1)
    assert journal.load() == (Changes(jobs=(job("b"), job("c"))), 3)
    assert journal.changes_since(1)[0].jobs == (ended(job("a")), job("c"))
    journal.forget(1)
    assert journal.changes_since(1)[0].jobs == (ended(job("a")), job("c"))
    journal.forget(2)
    assert journal.changes_since(2)[0].jobs == (job("c"),)
    with pytest.raises(Forgotten, match="from serial 2 on"):
        journal.changes_since(1)


def test_the_id_of_a_job_that_went_is_free_again() -> None:
    """At once; forgetting the old job does not take the new one."""
    journal = MemoryJournal(keep_ended=False)
    commit(journal, job("a"))
    commit(journal, ended(job("a")), events=1)
    commit(journal, job("a"), events=1)
    journal.forget(1)
    assert journal.load()[0].jobs == (job("a"),)
