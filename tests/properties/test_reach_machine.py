"""Nodes that are lost, out of reach, back and draining in any order, with the runs on them.

After each command the checkers find nothing and the log alone tells the same; after each step
nothing is where it may not be. INV-J4, INV-J5, INV-J9, INV-J10.
"""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kit.driving import node, run_names
from kit.events import Replay
from kit.jobs import gang, job
from pyresched.config import SchedulingConfig
from pyresched.model import (
    NANOS,
    DisconnectRule,
    GroupRules,
    Intake,
    MigrateRule,
    Outcome,
    ReschedulePolicy,
)
from pyresched.model.reach import is_late
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal

SECOND = NANOS
NODES = ("n0", "n1", "n2")
POLICIES = [
    ReschedulePolicy(attempts=2, interval=90 * SECOND, delay=2 * SECOND),
    ReschedulePolicy(delay=SECOND, unlimited=True),
    ReschedulePolicy(),
]
DISCONNECTS = [
    None,
    DisconnectRule(lost_after=20 * SECOND),
    DisconnectRule(lost_after=20 * SECOND, replace=False),
    DisconnectRule(replace=False),
    DisconnectRule(stop_on_client_after=10 * SECOND),
    DisconnectRule(lost_after=60 * SECOND, reconcile="keep_replacement"),
    DisconnectRule(lost_after=60 * SECOND, reconcile="longest_running"),
]
PACE = MigrateRule(max_parallel=1, min_healthy_time=3 * SECOND)
seconds = st.sampled_from([0, 1, 3, 30])
numbers = st.integers(0, 50)
nodes = st.sampled_from(NODES)


class ReachMachine(RuleBasedStateMachine):
    """A scheduler over three nodes that come and go."""

    @initialize(lease=st.sampled_from([None, 15 * SECOND]), keeps=st.booleans())
    def start(self, lease, keeps):
        """With leases, or without; with a memory for what ended, or without."""
        self.now = 0
        self.names, self.runs = count(1), run_names()
        self.config = SchedulingConfig(lease_duration=lease)
        self.journal = MemoryJournal(keep_ended=keeps)
        self.replay, self.cursor = Replay(), 0
        self.restart()
        self.scheduler.join_nodes([node(name, cores=3) for name in NODES], 0)
        for kind in ("batch", "service"):
            self.submit(POLICIES[1], DISCONNECTS[5], kind, 1)
        self.submit(POLICIES[0], DISCONNECTS[1], "batch", 2)
        self.quiet("")

    @rule()
    def restart(self):
        """The program ends and starts again."""
        self.scheduler = Scheduler(self.config, self.journal, ids=self.runs)

    @rule(
        policy=st.sampled_from(POLICIES),
        disconnect=st.sampled_from(DISCONNECTS),
        kind=st.sampled_from(["batch", "service", "service", "system"]),
        size=st.sampled_from([1, 1, 1, 2]),
    )
    def submit(self, policy, disconnect, kind, size):
        """Jobs of a group, a gang, or a job for each node."""
        id = f"job-{next(self.names)}"
        rules = GroupRules(group="group", count=3, disconnect=disconnect, migrate=PACE)
        fields = {"rules": rules, "job_type": kind, "submitted_at": self.now}
        if kind == "system":
            if len([1 for row in self.scheduler.snapshot() if not row.pools]) < 2:
                self.scheduler.submit([job(id, 500, 64, **fields)], self.now)
        elif size == 1:
            self.scheduler.submit([job(id, 1000, 64, policy=policy, **fields)], self.now)
        else:
            members = gang(id, 1000, 64, size=size, policy=policy, **fields)
            self.scheduler.submit(members, self.now)

    @rule(seconds=seconds)
    def step(self, seconds):
        """A cycle: whoever starts does so where it may, and nothing is left that time has ended."""
        self.now += seconds * SECOND
        before = self.active()
        self.scheduler.step(self.now)
        rows = {row.id: row for row in self.scheduler.nodes}
        for run_id, (row, run) in self.active().items():
            here = rows[run.node_id]
            assert run_id in before or here.takes_new_runs, (row, here)
            if here.disconnected_at is not None:
                assert not is_late(row, here.disconnected_at, self.now), (row, here)
            elif here.intake is Intake.DRAINING:
                over = here.drain_deadline is not None and here.drain_deadline <= self.now
                assert not over or (row.job_type == "system" and not here.drain_system), (row, here)
        for row, run in self.unknown().values():
            assert not is_late(row, run.ended_at, self.now), row
        wake = self.scheduler.step(self.now).next_wake
        assert wake is None or wake >= self.now

    @rule(name=nodes)
    def quiet(self, name):
        """All is well for a while, but on one node: what waits has begun, so that more can happen."""
        others = [each for each in NODES if each != name]
        self.scheduler.nodes_back(others, self.now)
        self.scheduler.uncordon_nodes(others, self.now)
        self.step(3)
        self.all_run()

    @rule(name=nodes, seconds=st.sampled_from([0, 3]))
    def away_for_a_while(self, name, seconds):
        """Out of reach, noticed, and back with all that it had."""
        self.disconnect(name)
        self.step(seconds)
        self.reported_back(name)

    @rule(n=numbers, kind=st.sampled_from(list(ReportKind)))
    def report(self, n, kind):
        """Of a run that is active, or unknown."""
        live = sorted({**self.active(), **self.unknown()}.items())
        if live:
            run_id, (row, _) = live[n % len(live)]
            self.tell([(run_id, row.id, kind)])

    @rule()
    def all_run(self):
        """Whatever was leased has begun."""
        self.tell([(id, row.id, ReportKind.RUNNING) for id, (row, _) in self.active().items()])

    @rule(name=nodes)
    def reported_back(self, name):
        """A node is back, and says of all that it has that it runs."""
        self.scheduler.nodes_back([name], self.now)
        there = {**self.active(), **self.unknown()}
        self.tell(
            [
                (run_id, row.id, ReportKind.RUNNING)
                for run_id, (row, run) in there.items()
                if run.node_id == name
            ]
        )

    def tell(self, news):
        """One batch of reports; the same again changes nothing but leases."""
        reports = [
            Report(run_id=run_id, job_id=job_id, kind=kind, at=self.now)
            for run_id, job_id, kind in news
        ]
        self.scheduler.report(reports, self.now)
        assert not self.scheduler.report(reports, self.now)

    @rule(name=nodes)
    def disconnect(self, name):
        """Out of reach; said again, nothing more."""
        self.scheduler.disconnect_nodes([name], self.now)
        assert not self.scheduler.disconnect_nodes([name], self.now)

    @rule(name=nodes)
    def lose(self, name):
        """Gone; said again, nothing more."""
        self.scheduler.lose_nodes([name], self.now)
        assert not self.scheduler.lose_nodes([name], self.now)

    @rule(name=nodes, joins=st.booleans())
    def back(self, name, joins):
        """In reach, without a word about runs."""
        if joins:
            self.scheduler.join_nodes([node(name, cores=3)], self.now)
        else:
            self.scheduler.nodes_back([name], self.now)
        assert self.scheduler.nodes.get(name).in_reach

    @rule(
        name=nodes,
        deadline=st.sampled_from([None, 0, 5 * SECOND]),
        ignore=st.booleans(),
        drains=st.booleans(),
    )
    def drain(self, name, deadline, ignore, drains):
        """A node drains, or no longer."""
        if drains:
            self.scheduler.drain_nodes([name], self.now, deadline=deadline, ignore_system=ignore)
        else:
            self.scheduler.undrain_nodes([name], self.now)

    @rule(n=numbers, what=st.sampled_from(["cancel", "stop", "force"]))
    def command(self, n, what):
        """A user wants something of a job."""
        if rows := sorted(row.id for row in self.scheduler.snapshot() if row.job_type != "system"):
            getattr(self.scheduler, what)([rows[n % len(rows)]], self.now)

    def active(self):
        """The active runs by id, with their jobs."""
        rows = ((row, row.active_run) for row in self.scheduler.snapshot())
        return {run.id: (row, run) for row, run in rows if run is not None}

    def unknown(self):
        """The unknown runs by id, with their jobs."""
        return {
            run.id: (row, run)
            for row in self.scheduler.snapshot()
            for run in row.runs
            if run.outcome is Outcome.UNKNOWN
        }

    @invariant()
    def sound(self):
        """No checker finds a breach; jobs with unknown runs are known."""
        assert self.scheduler.check() == []
        unsettled = {row.id for row, _ in self.unknown().values()}
        assert unsettled == self.scheduler.sync.unsettled

    @invariant()
    def the_log_tells_the_same(self):
        """States, runs, unknown runs and nodes out of reach."""
        events, self.cursor = self.journal.events_since(self.cursor)
        self.replay.read(events)
        assert set(self.replay.runs) == set(self.active())
        assert set(self.replay.unknown) == set(self.unknown())
        rows = self.scheduler.sync.node_rows.values()
        assert self.replay.lost == {row.id for row in rows if row.lost_at is not None}
        away = {row.id for row in rows if row.disconnected_at is not None}
        assert self.replay.disconnected == away
        for row in self.scheduler.snapshot():
            assert self.replay.states[row.id] is row.state, row
        for row in self.scheduler.snapshot():  # all that the log has but what a policy drops
            counted = self.replay.rescheduled.get(row.id, [])
            events = [] if row.tracker is None else [each.time for each in row.tracker.events]
            assert counted[len(counted) - len(events) :] == events, row


TestReach = ReachMachine.TestCase
TestReach.settings = settings(
    stateful_step_count=40, max_examples=max(settings.default.max_examples // 3, 1)
)
