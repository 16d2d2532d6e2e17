"""How users' code is typed. Checked by mypy, never run."""

from collections.abc import Sequence
from typing import assert_type

from pyresched import (
    GroupRules,
    Job,
    Outlook,
    Problem,
    ReschedulePolicy,
    RescheduleTracker,
    RestartPolicy,
    Step,
    Verdict,
    VerdictReason,
    next_many,
    outlook,
    timeline,
)
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.jobdb import Snapshot, Txn
from pyresched.model import (
    JobId,
    JobState,
    Move,
    Node,
    NodeId,
    Placement,
    PoolName,
    Queue,
    QueueCounts,
    QueueName,
    ResourceVector,
    RoundResult,
    UnschedulableReason,
    next_state,
)
from pyresched.nodedb import NodeDb
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.scheduling import (
    Change,
    Explanation,
    RoundState,
    explain,
    load_round,
    run_round,
    save_round,
    unplaceable,
)


def vectors(one: ResourceVector, other: ResourceVector) -> None:
    """Arithmetic stays in the type; an amount is an int."""
    assert_type(one + other, ResourceVector)
    assert_type(one[0], int)
    assert_type(one.first_exceeding(other), int | None)


def states(state: JobState) -> None:
    """A move gives a state."""
    assert_type(next_state(state, JobState.LEASED), JobState)


def ids() -> None:
    """A bare string is not an id."""
    job: JobId = "j1"  # type: ignore[assignment]
    assert_type(job, JobId)


def plain_names(scheduler: Scheduler, total: ResourceVector, snapshot: Snapshot) -> None:
    """Who makes something of an id, or asks for it, need not wrap it; what comes back is one."""
    assert_type(Queue(name="a").name, QueueName)
    assert_type(Node(id="n", total=total, pool="p").id, NodeId)
    assert_type(PoolConfig(name="p").name, PoolName)
    report = Report(run_id="r", job_id="j", kind=ReportKind.RUNNING, at=0)
    assert_type(report.job_id, JobId)
    scheduler.cancel(["j"], 0)
    scheduler.lose_nodes(["n"], 0)
    assert_type([job.id for job in snapshot.queued("a", "p")], list[JobId])
    config, nodes = scheduler.config, scheduler.nodes
    by_text = {"a": Queue(name="a")}
    result, _ = run_round(snapshot, nodes, by_text, "p", config, RoundState(), 0)
    run_round(snapshot, nodes, scheduler.queues, "p", config, RoundState(), 0)
    assert_type(result.refused["j"], UnschedulableReason)


def a_round(snapshot: Snapshot, dry: Txn, nodes: NodeDb, config: SchedulingConfig) -> None:
    """Every reader of the job db will do; the state goes in and comes out."""
    pool = PoolName("default")
    result, state = run_round(snapshot, nodes, {}, pool, config, RoundState(), 0)
    result, state = run_round(dry, nodes, {}, pool, config, state, 1)
    assert_type(state, RoundState)
    assert_type(result.scheduled, Sequence[Placement])
    assert_type(result.moved, tuple[Move, ...])
    assert_type(result.queues, tuple[QueueCounts, ...])
    assert_type(result.refused[JobId("j1")], UnschedulableReason)
    told = explain("j1", dry, nodes, {}, pool, config, state, 2, result=result)
    assert_type(told.smallest, Change | None)
    assert_type(result.explain("j1").sentence(), str)


def a_saved_round(snapshot: Snapshot, nodes: NodeDb, config: SchedulingConfig) -> None:
    """What `run_round` takes goes in, and comes out as that."""
    save_round("some.round", snapshot, nodes, {}, "p", config, RoundState(), 0, anonymous=True)
    saved = load_round("some.round")
    result, _ = saved.run()
    assert_type(result, RoundResult)
    run_round(*saved.inputs.arguments())
    assert_type(saved.explain("j1"), Explanation)


def a_submit_check(snapshot: Snapshot, nodes: NodeDb, config: SchedulingConfig) -> None:
    """Jobs in, reasons out."""
    found = unplaceable(snapshot, nodes, config)
    assert_type(found.get(JobId("j1")), UnschedulableReason | None)


def policies(tracker: RescheduleTracker, job: Job) -> None:
    """Durations go in as text or ns and are ns; verdicts are ints and reasons."""
    policy = ReschedulePolicy(attempts=3, interval="1h", delay=30_000_000_000)
    assert_type(policy.interval, int)
    assert_type(ReschedulePolicy.default("batch"), ReschedulePolicy | None)
    verdict = policy.next(tracker, failed_at=5)
    assert_type(verdict, Verdict)
    assert_type(verdict.reason, VerdictReason)
    assert_type(policy.problems(min_delay="1s", dialect="exact"), tuple[Problem, ...])
    grown = tracker.extended(policy, now=1, previous_run="r", previous_node="n", delay=0)
    assert_type(grown, RescheduleTracker)
    assert_type(timeline(policy, runtime=5, failures=3), list[Step])
    assert_type(outlook(None), Outlook)
    assert_type(next_many(policy, [tracker, None], 5), dict[str, memoryview])
    rules = GroupRules(restart=RestartPolicy(attempts=1, interval="1m"))
    assert_type(rules.restart, RestartPolicy | None)
    assert_type(job.rules, GroupRules | None)
