"""Records of a simulation, kept from events alone."""

from typing import Any

from pyresched.model import Event, EventKind, JobId, NodeId, QueueName, RunId
from pyresched.report.records import JobEnd, JobRecord, Outage
from pyresched.simulator.books import Books, Place, Progress
from pyresched.simulator.formats.swf import LogJob
from pyresched.simulator.workload import PlannedJob


def plan(*pieces: int, id: str = "1") -> PlannedJob:
    """A job of *pieces* that comes at 0."""
    log = LogJob(number=int(id), line=1, submitted_at=0, run_time=60, cores=sum(pieces))
    return PlannedJob(
        id=JobId(id), log=log, queue=QueueName("q"), priority_class="default", pieces=pieces
    )


def event(kind: EventKind, job: str, at: int, **fields: Any) -> Event:
    """Something that happened to *job*."""
    return Event(kind=kind, at=at, job_id=JobId(job), **fields)


def run_event(kind: EventKind, job: str, at: int, run: str, reason: str = "") -> Event:
    """Something that happened to *run* of *job*, on node n1."""
    return event(kind, job, at, run_id=RunId(run), node_id=NodeId("n1"), reason=reason)


def begun(*plans: PlannedJob) -> Books:
    """Books of *plans*, all submitted."""
    books = Books(plans)
    for progress in books.progress:
        books.submitted(progress)
    return books


def only(books: Books) -> tuple[Progress, JobRecord]:
    """The one job of *books*, as it stands and as it would be written."""
    return books.progress[0], books.job_records({})[0]


def test_a_job_that_succeeds_is_one_row_with_one_run() -> None:
    """Its times are those of the events; its cores are held while it runs."""
    books = begun(plan(4))
    assert (books.places[Place.WAITING], books.waiting["q"]) == (1, 1)
    (started,) = books.take([run_event(EventKind.LEASED, "1", 5, "r1")])
    assert started.whole
    assert (books.allocated_cores, books.waiting["q"], books.open_jobs) == (4, 0, 1)
    assert books.take([run_event(EventKind.SUCCEEDED, "1", 65, "r1")]) == []
    _, record = only(books)
    assert (record.started_at, record.ended_at, record.runs) == (5, 65, 1)
    assert record.end is JobEnd.SUCCEEDED
    assert (books.allocated_cores, books.open_jobs) == (0, 0)
    (run,) = books.run_records()
    assert (run.job_id, run.node_id, run.started_at, run.ended_at) == ("1", "n1", 5, 65)
    assert (run.outcome, run.cores) == ("succeeded", 4)


def test_a_gang_is_one_row_however_its_pieces_end() -> None:
    """One piece fails, the others are returned, all are tried again: one reschedule."""
    books = begun(plan(4, 4, 2))
    members = ["1.0", "1.1", "1.2"]
    books.take(run_event(EventKind.LEASED, m, 5, f"a{m}") for m in members)
    assert (books.places[Place.RUNNING], books.allocated_cores) == (1, 10)
    books.take(
        [
            run_event(EventKind.RETURNED, "1.0", 20, "a1.0", "gang"),
            event(EventKind.BACKING_OFF, "1.0", 20),
            run_event(EventKind.FAILED, "1.1", 20, "a1.1", "exit_status"),
            event(EventKind.BACKING_OFF, "1.1", 20),
            run_event(EventKind.RETURNED, "1.2", 20, "a1.2", "gang"),
            event(EventKind.BACKING_OFF, "1.2", 20),
        ]
    )
    progress, _ = only(books)
    assert (progress.place, progress.failures, books.allocated_cores) == (Place.WAITING, 1, 0)
    for member in members:
        books.take(
            [
                run_event(EventKind.LEASED, member, 30, f"b{member}"),
                run_event(EventKind.RESCHEDULED, member, 30, f"b{member}"),
            ]
        )
    books.take(run_event(EventKind.SUCCEEDED, m, 90, f"b{m}") for m in members)
    _, record = only(books)
    assert (record.started_at, record.ended_at, record.runs, record.pieces) == (5, 90, 2, 3)
    assert (books.reschedules, books.places[Place.DONE]) == (1, 1)
    runs = books.run_records()
    assert [(run.attempt, run.piece, run.cores) for run in runs] == [
        (attempt, piece, cores) for attempt in (1, 2) for piece, cores in enumerate((4, 4, 2))
    ]
    assert {run.job_id for run in runs} == {"1"}


def test_a_job_that_fails_for_good_says_why() -> None:
    """The first member's word counts; later ones repeat it."""
    books = begun(plan(4, 4))
    for member in ("1.0", "1.1"):
        books.take([run_event(EventKind.LEASED, member, 5, f"r{member}")])
    books.take(
        [
            run_event(EventKind.FAILED, "1.0", 20, "r1.0"),
            event(EventKind.EXHAUSTED, "1.0", 20, reason="exhausted"),
            run_event(EventKind.RETURNED, "1.1", 20, "r1.1"),
            event(EventKind.EXHAUSTED, "1.1", 21, reason="repeated"),
        ]
    )
    progress, record = only(books)
    assert (record.end, record.reason, record.ended_at) == (JobEnd.FAILED, "exhausted", 20)
    assert (progress.place, books.allocated_cores) == (Place.DONE, 0)


def test_a_preempted_gang_counts_once_and_each_lost_run_counts() -> None:
    """Both go back to waiting."""
    books = begun(plan(4, 4))
    members = ("1.0", "1.1")
    books.take(run_event(EventKind.LEASED, m, 5, f"a{m}") for m in members)
    books.take(run_event(EventKind.PREEMPTED, m, 6, f"a{m}") for m in members)
    books.take(run_event(EventKind.LEASED, m, 7, f"b{m}") for m in members)
    books.take(run_event(EventKind.LOST, m, 8, f"b{m}") for m in members)
    books.take(run_event(EventKind.LEASED, m, 9, f"c{m}") for m in members)
    books.take(run_event(EventKind.PREEMPTED, m, 9, f"c{m}") for m in members)
    assert (books.preemptions, books.runs_lost) == (2, 2)
    assert (books.places[Place.WAITING], books.waiting["q"]) == (1, 1)


def test_a_refused_job_never_started() -> None:
    """It has ended, with the reason."""
    books = begun(plan(99))
    books.take([event(EventKind.REFUSED, "1", 3, reason="exceeds_every_node")])
    _, record = only(books)
    assert (record.end, record.reason) == (JobEnd.REFUSED, "exceeds_every_node")
    assert (record.started_at, record.ended_at, record.runs) == (None, 3, 0)
    assert books.waiting["q"] == 0


def test_a_job_is_cancelled_with_or_without_a_run() -> None:
    """Either way it ends, and holds nothing."""
    books = begun(plan(4, id="1"), plan(4, id="2"))
    books.take([run_event(EventKind.LEASED, "1", 5, "r1")])
    books.take([run_event(EventKind.CANCELLED, "1", 9, "r1"), event(EventKind.CANCELLED, "2", 9)])
    assert [record.end for record in books.job_records({})] == [JobEnd.CANCELLED] * 2
    assert (books.open_jobs, books.allocated_cores) == (0, 0)


def test_a_job_that_has_not_ended_says_what_it_waits_for() -> None:
    """The reason of the last cycle, or where it stands."""
    books = begun(plan(4, id="1"), plan(4, id="2"), plan(4, id="3"))
    ahead = Books([plan(4)])
    books.take([run_event(EventKind.LEASED, "2", 5, "r2")])
    records = books.job_records({JobId("1"): "insufficient_resources"})
    assert [record.reason for record in records] == ["insufficient_resources", "running", "waiting"]
    assert {record.end for record in records} == {JobEnd.UNFINISHED}
    assert ahead.job_records({})[0].reason == "ahead"


def test_outages_are_those_of_the_events() -> None:
    """A node may be lost twice; one that never comes back has no end."""

    def node(kind: EventKind, id: str, at: int) -> Event:
        return Event(kind=kind, at=at, node_id=NodeId(id))

    books = begun(plan(1))
    books.take(
        [
            node(EventKind.NODE_LOST, "a", 1),
            node(EventKind.NODE_LOST, "b", 2),
            node(EventKind.NODE_BACK, "a", 3),
            node(EventKind.NODE_LOST, "a", 4),
        ]
    )
    assert books.outages == [
        Outage(node_id="a", lost_at=1, back_at=3),
        Outage(node_id="b", lost_at=2),
        Outage(node_id="a", lost_at=4),
    ]


def test_a_piece_that_moves_starts_its_job_over() -> None:
    """Once whatever the number that move; the job never waits, and the rest keep their runs."""
    books = begun(plan(4, 4, 4))
    members = ("1.0", "1.1", "1.2")
    books.take(run_event(EventKind.LEASED, m, 5, f"a{m}") for m in members)
    for at, moved in ((7, members[:2]), (9, members[2:])):
        for m in moved:
            books.take([run_event(EventKind.PREEMPTED, m, at, f"a{m}", "urgency")])
            (started,) = books.take([run_event(EventKind.LEASED, m, at, f"b{m}")])
            assert started.whole
    progress, record = only(books)
    assert (progress.attempts, books.preemptions, record.started_at) == (3, 2, 5)
    assert (progress.place, books.allocated_cores) == (Place.RUNNING, 12)
    books.take(run_event(EventKind.SUCCEEDED, m, 20, f"b{m}") for m in members)
    assert only(books)[1].end is JobEnd.SUCCEEDED


def test_a_lone_job_that_moves_is_tried_again_at_once() -> None:
    """It is preempted and leased in one cycle."""
    books = begun(plan(4))
    books.take([run_event(EventKind.LEASED, "1", 5, "a")])
    books.take(
        [run_event(EventKind.PREEMPTED, "1", 7, "a"), run_event(EventKind.LEASED, "1", 7, "b")]
    )
    progress, _ = only(books)
    assert (progress.attempts, progress.place, books.preemptions) == (2, Place.RUNNING, 1)


def test_a_run_out_of_reach_may_come_back() -> None:
    """It ends as unknown, and goes on as the newest run when what replaced it was returned."""
    books = begun(plan(4))
    books.take(
        [
            run_event(EventKind.LEASED, "1", 5, "r1"),
            event(EventKind.NODE_DISCONNECTED, "", 9, node_id=NodeId("n1")),
            run_event(EventKind.UNKNOWN, "1", 9, "r1", "node_disconnected"),
            event(EventKind.BACKING_OFF, "1", 9, attempts_used="0/3 in 1h", eligible_at=12),
        ]
    )
    progress, _ = only(books)
    assert (progress.place, books.allocated_cores) == (Place.WAITING, 0)
    assert [(run.outcome, run.ended_at) for run in books.run_records()] == [("unknown", 9)]
    books.take(
        [
            run_event(EventKind.LEASED, "1", 12, "r2"),
            run_event(EventKind.RETURNED, "1", 20, "r2", "reconnected"),
            run_event(EventKind.RECONNECTED, "1", 20, "r1"),
            event(EventKind.NODE_BACK, "", 20, node_id=NodeId("n1")),
        ]
    )
    assert (progress.place, books.allocated_cores, books.outages) == (Place.RUNNING, 4, [])
    books.take([run_event(EventKind.SUCCEEDED, "1", 65, "r1")])
    first, second = books.run_records()
    assert (first.outcome, first.ended_at, first.attempts_used) == ("succeeded", 65, "0/3 in 1h")
    assert (second.outcome, second.previous_run, second.previous_node) == ("returned", "r1", "n1")
    assert books.open_jobs == 0


def test_a_run_out_of_reach_may_be_lost_for_good_while_its_job_runs_on() -> None:
    """The end of the old run is nothing to the new one."""
    books = begun(plan(4))
    books.take(
        [
            run_event(EventKind.LEASED, "1", 5, "r1"),
            run_event(EventKind.UNKNOWN, "1", 9, "r1", "node_disconnected"),
            run_event(EventKind.LEASED, "1", 12, "r2"),
            run_event(EventKind.LOST, "1", 30, "r1", "node_lost"),
        ]
    )
    progress, _ = only(books)
    assert (progress.place, books.allocated_cores, books.runs_lost) == (Place.RUNNING, 4, 1)
    assert [(run.outcome, run.ended_at) for run in books.run_records()] == [
        ("lost", 30),
        ("", None),
    ]
