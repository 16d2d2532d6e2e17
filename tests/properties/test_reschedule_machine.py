"""Rescheduling as a whole, held against a small model that reads nothing but the log of events.

Failures, losses, drains, nodes out of reach and back, preemption, stops, force, changes of policy
and restarts of the program, in any order; INV-J5, INV-J7 and that only failures, stops and
replacements of runs out of reach use budget.
"""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kit.driving import node, run_names
from kit.events import Replay
from kit.jobs import gang, job
from pyresched.config import SchedulingConfig
from pyresched.model import (
    NANOS,
    DisconnectRule,
    Event,
    EventKind,
    GroupRules,
    JobState,
    LastReschedule,
    MigrateRule,
    Outcome,
    ReschedulePolicy,
    UpdateRule,
)
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal

SECOND = NANOS
POLICIES = [
    ReschedulePolicy(attempts=1, interval=60 * SECOND, delay=2 * SECOND),
    ReschedulePolicy(attempts=2, interval=60 * SECOND, delay=5 * SECOND),
    ReschedulePolicy(
        attempts=4,
        interval=90 * SECOND,
        delay=2 * SECOND,
        delay_function="exponential",
        max_delay=8 * SECOND,
    ),
    ReschedulePolicy(
        delay=SECOND, delay_function="fibonacci", max_delay=6 * SECOND, unlimited=True
    ),
    ReschedulePolicy(),
]
ENDS = {
    EventKind.FAILED,
    EventKind.RETURNED,
    EventKind.UNKNOWN,
    EventKind.LOST,
    EventKind.PREEMPTED,
}
PACE = MigrateRule(max_parallel=1, min_healthy_time=SECOND)
REPLACED = GroupRules(
    group="replaced", disconnect=DisconnectRule(lost_after=15 * SECOND), migrate=PACE
)
RULES = [
    None,
    REPLACED,
    REPLACED,
    GroupRules(group="kept", disconnect=DisconnectRule(replace=False), migrate=PACE),
    GroupRules(group="deployed", count=99, update=UpdateRule(progress_deadline=40 * SECOND)),
    GroupRules(group="stopped", disconnect=DisconnectRule(stop_on_client_after=3 * SECOND)),
]
policies, rules = st.sampled_from(POLICIES), st.sampled_from(RULES)
nodes = st.sampled_from(["n0", "n1"])
numbers = st.integers(0, 50)


class Model:
    """What the log says of one job's reschedules, under the policies that it had."""

    def __init__(self, policy: ReschedulePolicy, job_type: str, gang: list["Model"]) -> None:
        self.policy = policy
        self.job_type = job_type
        self.gang = gang  # itself and the others that wait with it
        gang.append(self)
        self.newest = ""  # the run leased last, or taken back since
        self.unknown: set[str] = set()  # runs given up that may go on
        self.counted: list[int] = []  # unforced ones since the policy, or the history, began
        self.last: int | None = None  # the newest one in the history
        self.failed_at: int | None = None  # of the run whose replacement waits
        self.waits = False
        self.forced = False
        self.leased_run = ""

    def new_policy(self, policy: ReschedulePolicy) -> None:
        """Counting begins again."""
        self.policy = policy
        self.counted = []

    def read(self, event: Event) -> None:
        """Follow *event*. Fails when it may not be."""
        kind = event.kind
        if kind is EventKind.RECONNECTED:
            self.unknown.remove(event.run_id)
            self.newest, self.failed_at, self.waits, self.forced = event.run_id, None, False, False
        elif event.run_id in self.unknown:
            self._settled(event)
        elif kind in ENDS:
            if kind is EventKind.UNKNOWN:
                self.unknown.add(event.run_id)
            blameless = kind in {EventKind.LOST, EventKind.PREEMPTED}
            self.failed_at = None if blameless else event.at
        elif kind is EventKind.BACKING_OFF:
            # Without a budget it waits for a node to stop its run: nothing is counted then.
            self.waits, self.forced = event.attempts_used != "", False
            self.failed_at = self.failed_at if self.waits else None
            assert not self.waits or self.failed_at is not None, "only what failed is counted"
        elif kind is EventKind.REQUEUED and event.reason == "forced":
            assert self.failed_at is not None, "only what failed is forced"
            self.waits = self.forced = True
        elif kind is EventKind.EXHAUSTED:
            self.waits = False
        elif kind is EventKind.SUCCEEDED and self.job_type == "service":
            self.counted, self.last = [], None
        elif kind is EventKind.LEASED:
            assert self.leased_run == "", "who waited is rescheduled"
            self.newest = event.run_id
            self.leased_run = event.run_id if self.waits else ""
        elif kind is EventKind.RESCHEDULED:
            self._rescheduled(event)

    def _settled(self, event: Event) -> None:
        """What became of an unknown run: what follows that was decided when it was given up."""
        self.unknown.remove(event.run_id)
        if event.kind is EventKind.LOST and event.run_id == self.newest:
            for each in self.gang:  # but who still waits for it is replaced uncounted
                each.failed_at, each.waits, each.forced = None, False, False

    def _rescheduled(self, event: Event) -> None:
        assert event.run_id == self.leased_run, "only who waited is rescheduled"
        assert (event.reason == "forced") is self.forced
        self.last = event.at
        if not self.forced:
            assert self.policy.enabled
            assert self.failed_at is not None
            assert event.at >= self.failed_at + self.policy.delay, "too early"
            self.counted.append(event.at)
            start = event.at - self.policy.interval
            within = sum(start < at <= event.at for at in self.counted)
            assert self.policy.unlimited or within <= self.policy.attempts, "too many"
        self.waits = self.forced = False
        self.leased_run = ""


class RescheduleMachine(RuleBasedStateMachine):
    """A scheduler over two nodes on which much goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.names = count(1)
        self.runs = run_names()
        self.journal = MemoryJournal()
        self.models: dict[str, Model] = {}
        self.replay = Replay()
        self.cursor = 0
        self.scheduler = self.started()
        self.scheduler.join_nodes([node("n0", cores=3), node("n1", cores=3)], 0)

    def started(self) -> Scheduler:
        """A program that begins with what the journal has."""
        return Scheduler(SchedulingConfig(), self.journal, ids=self.runs)

    def active(self) -> list:
        """The jobs that have a run."""
        return [row for row in self.scheduler.snapshot() if row.active_run is not None]

    @rule(
        policy=policies,
        job_type=st.sampled_from(["batch", "batch", "service"]),
        low=st.booleans(),
        rules=rules,
    )
    def submit(self, policy, job_type, low, rules):
        """A job, perhaps one that others may preempt."""
        kind = "best-effort" if low else "default"
        id = f"job-{next(self.names)}"
        self.models[id] = Model(policy, job_type, [])
        new = job(
            id,
            2000,
            512,
            policy=policy,
            job_type=job_type,
            rules=rules,
            priority_class=kind,
            submitted_at=self.now,
        )
        self.scheduler.submit([new], self.now)

    @rule(policy=policies, rules=rules)
    def submit_gang(self, policy, rules):
        """Two that fail as one."""
        id, now = f"gang-{next(self.names)}", self.now
        members = gang(id, 1000, 512, policy=policy, rules=rules, submitted_at=now)
        whole = []
        self.models.update((each.id, Model(policy, "batch", whole)) for each in members)
        self.scheduler.submit(members, self.now)

    @rule(seconds=st.sampled_from([0, 1, 4, 20]))
    def step(self, seconds):
        """A cycle, now or later."""
        self.now += seconds * SECOND
        self.scheduler.step(self.now)

    @rule(seconds=st.sampled_from([0, 1, 7]), n=numbers, kind=st.sampled_from(list(ReportKind)))
    def report(self, seconds, n, kind):
        """Of one active run."""
        self.now += seconds * SECOND
        if rows := self.active():
            row = rows[n % len(rows)]
            self.scheduler.report(
                [Report(run_id=row.active_run.id, job_id=row.id, kind=kind, at=self.now)], self.now
            )

    @rule()
    def fail_and_wait(self):
        """Every run fails, and what waits does so yet."""
        self.now += SECOND
        self.scheduler.step(self.now)
        self.scheduler.report(
            [
                Report(run_id=row.active_run.id, job_id=row.id, kind=ReportKind.FAILED, at=self.now)
                for row in self.active()
            ],
            self.now,
        )

    def fail_all(self):
        """Every run fails; then what is due is placed."""
        self.fail_and_wait()
        self.now = max(self.now, self.scheduler.step(self.now).next_wake or 0)
        self.scheduler.step(self.now)

    # Most of what happens here is this.
    fail_one, fail_two = rule()(fail_all), rule()(fail_all)

    @rule(n=nodes)
    def lose(self, n):
        """A node is gone, and back before the next cycle."""
        self.scheduler.lose_nodes([n], self.now)
        self.scheduler.nodes_back([n], self.now)

    @rule(n=nodes)
    def disconnect(self, n):
        """Whatever has begun on a node may go on there, out of reach."""
        self.scheduler.report(
            [
                Report(run_id=run.id, job_id=row.id, kind=ReportKind.RUNNING, at=self.now)
                for row in self.active()
                if (run := row.active_run).node_id == n
            ],
            self.now,
        )
        self.scheduler.disconnect_nodes([n], self.now)

    @rule(n=nodes)
    def away_for_a_while(self, n):
        """A node is out of reach until what waits for it is due, and back."""
        self.disconnect(n)
        self.now = max(self.now, self.scheduler.step(self.now).next_wake or 0)
        self.scheduler.step(self.now)
        self.back(n, ReportKind.RUNNING)

    @rule(n=nodes, kind=st.sampled_from([None, ReportKind.RUNNING, *ReportKind]))
    def back(self, n, kind):
        """A node is in reach, and perhaps says what became of its unknown runs."""
        self.scheduler.nodes_back([n], self.now)
        news = [
            Report(run_id=run.id, job_id=row.id, kind=kind, at=self.now)
            for row in self.scheduler.snapshot()
            for run in row.runs
            if run.outcome is Outcome.UNKNOWN and run.node_id == n and kind is not None
        ]
        self.scheduler.report(news, self.now)

    @rule(n=nodes, deadline=st.sampled_from([None, 0, 5 * SECOND]), drains=st.booleans())
    def drain(self, n, deadline, drains):
        """A node's runs leave; or it takes new ones again."""
        if drains:
            self.scheduler.drain_nodes([n], self.now, deadline=deadline)
        else:
            self.scheduler.undrain_nodes([n], self.now)

    @rule(n=nodes, opens=st.booleans())
    def close(self, n, opens):
        """A node takes nothing new, or does again."""
        by = self.scheduler.uncordon_nodes if opens else self.scheduler.cordon_nodes
        by([n], self.now)

    @rule(n=numbers)
    def stop(self, n):
        """A user stops a run."""
        if rows := self.active():
            self.scheduler.stop([rows[n % len(rows)].id], self.now)

    @rule(n=numbers)
    def force(self, n):
        """By hand, whatever it is."""
        if self.models:
            self.scheduler.force([sorted(self.models)[n % len(self.models)]], self.now)

    @rule(n=numbers, policy=policies)
    def set_policy(self, n, policy):
        """Another policy for a job, perhaps ended, and its gang."""
        if not self.models:
            return
        self.read_log()
        changes = self.scheduler.set_policy(
            [sorted(self.models)[n % len(self.models)]], policy, self.now
        )
        for row in changes.jobs:
            self.models[row.id].new_policy(policy)

    @rule()
    def restart(self):
        """The program ends and starts again."""
        self.scheduler = self.started()

    def read_log(self) -> None:
        """Let the models follow the log to its end."""
        events, self.cursor = self.journal.events_since(self.cursor)
        self.replay.read(events)
        for event in events:
            if event.job_id:
                self.models[event.job_id].read(event)

    @invariant()
    def the_log_keeps_the_rules(self):
        """Windows, delays and causes, as each event comes."""
        self.read_log()
        assert not any(model.leased_run for model in self.models.values())

    @invariant()
    def histories_survive(self):
        """The newest reschedule of the log is the newest of the row, whatever happened since."""
        self.read_log()
        for row in self.scheduler.snapshot():
            model = self.models[row.id]
            events = () if row.tracker is None else row.tracker.events
            assert (events[-1].time if events else None) == model.last, row
            assert row.policy == model.policy
            assert {run.id for run in row.runs if run.outcome is Outcome.UNKNOWN} == model.unknown
            if row.state is JobState.BACKING_OFF and model.waits:
                assert row.retry_delay >= row.policy.delay
                if row.policy.delay_function != "constant":
                    assert row.retry_delay <= row.policy.max_delay
            if row.state.active and events and row.runs[-1].leased_at == events[-1].time:
                assert row.tracker.last is LastReschedule.OK

    @invariant()
    def sound(self):
        """No checker finds a breach."""
        assert self.scheduler.check() == []


TestRescheduling = RescheduleMachine.TestCase
TestRescheduling.settings = settings(
    stateful_step_count=40, max_examples=max(settings.default.max_examples // 3, 1)
)
