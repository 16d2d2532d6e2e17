"""Each cell of the outcome table is what the scheduler does: none is made true elsewhere."""

from itertools import product

import pytest

from kit.driving import node, report, scheduler
from kit.jobs import job
from pyresched.config import SchedulingConfig
from pyresched.model import (
    NANOS,
    DisconnectRule,
    GroupRules,
    Job,
    JobState,
    JobType,
    Outcome,
    ReschedulePolicy,
    Run,
)
from pyresched.model.outcome_table import Action, NodeState, RunState, action
from pyresched.outcomes import Report, ReportKind

SECOND = NANOS
LEASE = SchedulingConfig(lease_duration=30 * SECOND)
POLICY = ReschedulePolicy(delay=SECOND, unlimited=True)
SYSTEM = {JobType.SYSTEM, JobType.SYSBATCH}
WAITED_FOR = {NodeState.DISCONNECTED, NodeState.DOWN, NodeState.DOWN_KEPT}
REPORTED = {
    RunState.SUCCEEDED: "succeeded",
    RunState.FAILED: "failed",
    RunState.SETUP_FAILED: "setup_failed",
    RunState.RETURNED: "returned",
}
GIVEN_UP = {RunState.UNKNOWN, RunState.EXPIRED, RunState.RECONNECTED, RunState.BACK_FAILED}
DRAINS = {NodeState.DRAINING, NodeState.DRAIN_OVER}


def occurs(job_type: JobType, run: RunState, node: NodeState) -> bool:
    """Whether a scheduler can come to that. It removes no nodes, and none is unreachable to who
    waits for it; a run that is not replaced is not given up, but runs on, out of reach.
    """
    if node is NodeState.GONE:
        return False
    if run in GIVEN_UP:
        if node in {NodeState.UNREACHABLE, NodeState.DOWN_KEPT}:
            return False
        if job_type in SYSTEM and run in {RunState.UNKNOWN, RunState.EXPIRED}:
            return node is NodeState.DISCONNECTED
    return True


class Cell:
    """A job on node n1 that has been tried before, and its run of which the table speaks."""

    def __init__(self, job_type: JobType, run: RunState, node_state: NodeState) -> None:
        self.type, self.run, self.node = job_type, run, node_state
        self.now = 0
        config = LEASE if run is RunState.LOST else SchedulingConfig()
        self.made = scheduler(node("n1"), config=config)
        replace = node_state is not NodeState.DOWN_KEPT
        waits = DisconnectRule(lost_after=60 * SECOND, replace=replace)
        tolerated = node_state in WAITED_FOR or run in GIVEN_UP
        rules = GroupRules(group="group", disconnect=waits if tolerated else None)
        self.id = "a@n1" if job_type in SYSTEM else "a"
        policy = None if job_type in SYSTEM else POLICY
        fields = {"policy": policy, "rules": rules, "job_type": job_type.value}
        # For its sake no drain lets system jobs go.
        stays = GroupRules(group="stays", disconnect=DisconnectRule(replace=False))
        self.made.submit([job("stays", 500, 64, rules=stays)], 0)
        self.made.submit([job("a", 3000, 64, priority_class="best-effort", **fields)], 0)
        self.made.step(0)
        if job_type is not JobType.SYSBATCH:
            report(self.made, self.id, kind="failed", now=0)
            eligible_at = self.row.eligible_at
            assert eligible_at is not None
            self.now = eligible_at
            self.made.step(self.now)
        assert self.row.active_run is not None
        self.run_id = self.row.active_run.id

    @property
    def row(self) -> Job:
        """The job."""
        found = self.made.snapshot().get(self.id)
        assert found is not None
        return found

    def tell(self, kind: str) -> None:
        """A report of the run."""
        news = Report(run_id=self.run_id, job_id=self.id, kind=ReportKind(kind), at=self.now)
        self.made.report([news], self.now)

    def bring_run(self) -> None:
        """Let the run come to its state."""
        made, run = self.made, self.run
        report(made, "stays", kind="running", now=self.now)
        if run is not RunState.PENDING:
            self.tell("running")
        if run in REPORTED:
            self.tell(REPORTED[run])
        elif run is RunState.STOPPED:
            made.stop([self.id], self.now)
        elif run is RunState.PREEMPTED:
            made.submit([job("high", 3500, 64, submitted_at=self.now)], self.now)
            made.step(self.now)
        elif run is RunState.LOST:
            made.cordon_nodes(["n1"], self.now)
            self.now += 30 * SECOND
            made.step(self.now)
        elif run in GIVEN_UP:
            made.disconnect_nodes(["n1"], self.now)
            if run in {RunState.RECONNECTED, RunState.BACK_FAILED}:
                made.nodes_back(["n1"], self.now)
                self.tell("running" if run is RunState.RECONNECTED else "failed")

    def bring_node(self) -> None:
        """Let the node come to its state, and time to what the run waits for."""
        made, run = self.made, self.run
        if run in {RunState.UNKNOWN, RunState.EXPIRED} and self.node not in WAITED_FOR:
            made.nodes_back(["n1"], self.now)
        if self.node in DRAINS:
            over = self.node is NodeState.DRAIN_OVER
            made.drain_nodes(["n1"], self.now, deadline=0 if over else None)
        elif self.node in {NodeState.DISCONNECTED, NodeState.UNREACHABLE}:
            made.disconnect_nodes(["n1"], self.now)
        elif self.node in {NodeState.DOWN, NodeState.DOWN_KEPT}:
            made.lose_nodes(["n1"], self.now)
        else:
            made.cordon_nodes(["n1"], self.now)
        if run is RunState.EXPIRED:
            self.now += 60 * SECOND
        live = {RunState.PENDING, RunState.RUNNING, RunState.RECONNECTED, RunState.EXPIRED}
        if run in live:
            made.step(self.now)

    def seen(self) -> Action:
        """What has become of the job, in the words of the table."""
        row = self.row
        (run,) = (each for each in row.runs if each.id == self.run_id)
        assert self.made.check() == []
        if run.outcome is None or (run.outcome is Outcome.UNKNOWN and self.run is RunState.UNKNOWN):
            if self.run is RunState.RECONNECTED and self.made.nodes.get("n1").in_reach:
                return Action.RECONNECT
            away = not self.made.nodes.get("n1").in_reach and self.run is not RunState.UNKNOWN
            return Action.AWAIT if away else Action.KEEP
        return self.ended(row, run)

    def ended(self, row: Job, run: Run) -> Action:
        """The same of a run that has ended."""
        queued = row.state is JobState.QUEUED and row.retry_delay is None
        waits = row.state is JobState.BACKING_OFF and row.retry_delay is not None
        kept = queued and (row.tracker is not None or self.type is JobType.SYSBATCH)
        over = row.state is JobState.CANCELLED
        found = {
            (Outcome.SUCCEEDED, row.state is JobState.SUCCEEDED): Action.DONE,
            (Outcome.SUCCEEDED, queued and row.tracker is None): Action.RENEW,
            (Outcome.FAILED, waits): Action.BACK_OFF,
            (Outcome.FAILED, row.state is JobState.FAILED): Action.FAIL,
            (Outcome.PREEMPTED, kept): Action.REQUEUE,
            (Outcome.RETURNED, kept): Action.MIGRATE if run.reason == "drained" else Action.REQUEUE,
            (Outcome.RETURNED, waits): Action.STOP_BY_POLICY,
            (Outcome.CANCELLED, over): Action.CALL_OFF,
            # A system job whose node is lost is made anew with it.
            (Outcome.LOST, kept or (over and self.type in SYSTEM)): Action.LOSE,
            (Outcome.UNKNOWN, waits): Action.DISCONNECT,
        }
        return found[run.outcome, True]


@pytest.mark.parametrize("job_type", list(JobType), ids=lambda each: each.value)
def test_the_scheduler_does_what_the_table_says(job_type: JobType) -> None:
    """Cell by cell, for runs and nodes in each state that can come about."""
    wrong, looked_at = [], 0
    for run, at in product(RunState, NodeState):
        if not occurs(job_type, run, at):
            continue
        cell = Cell(job_type, run, at)
        cell.bring_run()
        cell.bring_node()
        looked_at += 1
        try:
            got: object = cell.seen()
        except KeyError as unknown:
            got = (unknown, cell.row.state, cell.row.tracker)
        if got is not action(job_type, run, at):
            wrong.append((run.value, at.value, action(job_type, run, at).value, got))
    assert wrong == []
    assert looked_at > 70
