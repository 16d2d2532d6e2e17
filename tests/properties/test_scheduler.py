"""The scheduler as a whole, driven by everything that can happen to it in any order."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from kit.events import Replay
from kit.jobs import gang, job
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import Conflict, DuplicateId
from pyresched.model import (
    NANOS,
    Changes,
    Job,
    JobId,
    Node,
    ReschedulePolicy,
    ResourceVector,
    RowKey,
)
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal

SECOND = NANOS
POLICIES = [
    None,
    ReschedulePolicy(attempts=2, interval=60 * SECOND, delay=5 * SECOND),
    ReschedulePolicy(
        attempts=3,
        interval=90 * SECOND,
        delay=2 * SECOND,
        delay_function="exponential",
        max_delay=8 * SECOND,
    ),
    ReschedulePolicy(delay=SECOND, unlimited=True),
    ReschedulePolicy(),
]


class FaultyJournal(MemoryJournal):
    """Refuses the next commit, or makes it and loses the answer, when told so."""

    fault: Callable[[], Exception] | None = None
    answer_lost = False

    def commit(self, changes: Changes, *, expect: Mapping[RowKey, int]) -> int:
        """As the journal does, unless told otherwise."""
        fault, self.fault = self.fault, None
        lost, self.answer_lost = self.answer_lost, False
        if fault is not None:
            raise fault()
        serial = super().commit(changes, expect=expect)
        if lost:
            raise ConnectionError("the answer was lost")
        return serial


class SchedulerMachine(RuleBasedStateMachine):
    """Commands, reports, losses and time in any order; INV-J3 to INV-J11 after each."""

    jobs = Bundle("jobs")
    reports = Bundle("reports")
    keep_ended = True
    leases: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.names = count(1)
        self.run_names = count(1)
        self.replay = Replay()
        self.cursor = 0
        self.submitted: dict[JobId, Job] = {}

    @initialize()
    def start(self) -> None:
        """An empty journal and two pools, one with nodes."""
        self.config = SchedulingConfig(
            pools=(PoolConfig(name="default"), PoolConfig(name="other")),
            lease_duration=self.leases,
        )
        self.journal = FaultyJournal(keep_ended=self.keep_ended)
        self.scheduler = self.rebuilt()
        self.scheduler.join_nodes([self.node(n) for n in range(3)], self.now)

    def rebuilt(self) -> Scheduler:
        """A scheduler from what the journal has."""
        return Scheduler(self.config, self.journal, ids=lambda: f"run-{next(self.run_names)}")

    def node(self, n: int, *, pool: str = "default", cores: int = 3) -> Node:
        """A node of three cores."""
        return Node(id=f"node-{n}", total=ResourceVector([1000 * cores, 4096]), pool=pool)

    # What users do

    @rule(
        target=jobs,
        cores=st.sampled_from([1, 2, 3, 9]),
        queue=st.sampled_from(["a", "b"]),
        pools=st.sampled_from([("default",), ("other",), ("default", "other")]),
        policy=st.sampled_from(POLICIES),
        job_type=st.sampled_from(["batch", "batch", "service", "system"]),
        preemptible=st.booleans(),
    )
    def submit(self, cores, queue, pools, policy, job_type, preemptible):  # noqa: PLR0917
        """One job, or one for each node of its pools."""
        new = job(
            f"job-{next(self.names)}",
            1000 * cores,
            1024,
            queue=queue,
            pools=pools,
            policy=None if job_type == "system" else policy,
            job_type=job_type,
            priority_class="best-effort" if preemptible else "default",
            submitted_at=self.now,
        )
        self.scheduler.submit([new], self.now)
        self.submitted[new.id] = new
        return new.id

    @rule(
        target=jobs,
        size=st.sampled_from([2, 3]),
        missing=st.sampled_from([0, 0, 0, 1]),
        policy=st.sampled_from(POLICIES),
        preemptible=st.booleans(),
    )
    def submit_gang(self, size, missing, policy, preemptible):
        """A gang, perhaps with a member that never comes."""
        members = gang(
            f"gang-{next(self.names)}",
            1000,
            512,
            size=size,
            policy=policy,
            priority_class="best-effort" if preemptible else "default",
            submitted_at=self.now,
        )[missing:]
        self.scheduler.submit(members, self.now)
        self.submitted.update((member.id, member) for member in members)
        return multiple(*(member.id for member in members))

    @rule(target=jobs, policy=st.sampled_from(POLICIES), gangs=st.booleans())
    def crowd(self, policy, gangs):
        """One queue takes all room with runs that may be preempted, and another wants its share."""
        settings = {"queue": "a", "policy": policy, "priority_class": "best-effort"}
        many = []
        for _ in range(5):
            id = f"crowd-{next(self.names)}"
            if gangs:
                many += gang(id, 1000, 512, submitted_at=self.now, **settings)
            else:
                many += [job(id, 2000, 512, submitted_at=self.now, **settings)]
        self.scheduler.submit(many, self.now)
        self.scheduler.step(self.now)
        late = job(f"late-{next(self.names)}", 2000, 512, queue="b", submitted_at=self.now)
        self.scheduler.submit([late], self.now)
        self.scheduler.step(self.now)
        self.submitted.update((each.id, each) for each in (*many, late))
        return multiple(*(each.id for each in (*many, late)))

    @rule(id=jobs)
    def submit_again(self, id):
        """A taken id is refused, and nothing of the request is done."""
        if id not in self.scheduler.snapshot():
            return
        with pytest.raises(DuplicateId):
            self.scheduler.submit([job("good"), self.submitted[id]], self.now)
        assert "good" not in self.scheduler.snapshot()

    @rule(id=consumes(jobs))
    def cancel(self, id):
        """With the gang and the run; asked again, nothing is left to do."""
        self.scheduler.cancel([id], self.now)
        assert not self.scheduler.cancel([id], self.now)

    # What time does

    @rule(seconds=st.sampled_from([0, 1, 3, 10, 45]))
    def step(self, seconds):
        """A cycle, at once or later."""
        self.now += seconds * SECOND
        wake = self.scheduler.step(self.now).next_wake
        waits = [row.eligible_at for row in self.scheduler.snapshot().backing_off()]
        if self.leases is None:
            first = min(waits, default=0)
            soon = [at for at in waits if at - first < 5 * SECOND]
            assert wake == max(soon, default=None)
        assert wake is None or wake > self.now

    # What executors and nodes do

    @rule(
        target=reports,
        n=st.integers(0, 50),
        kind=st.sampled_from(["running", "running", "succeeded", "failed", "failed", "returned"]),
    )
    def report(self, n, kind):
        """Of an active run."""
        runs = sorted(self.replay.runs.items())
        if not runs:
            return multiple()
        run_id, (job_id, _) = runs[n % len(runs)]
        news = Report(run_id=run_id, job_id=job_id, kind=ReportKind(kind), at=self.now)
        self.scheduler.report([news], self.now)
        return news

    def work(self, seconds, kinds):
        """A cycle, and then a batch of news of the active runs, whole or in parts."""
        self.now += seconds * SECOND
        self.scheduler.step(self.now)
        self.read_log()
        runs = sorted(self.replay.runs.items())
        news = [
            Report(run_id=run_id, job_id=job_id, kind=ReportKind(kind), at=self.now)
            for (run_id, (job_id, _)), kind in zip(runs, kinds * len(runs), strict=False)
            if kind
        ]
        self.scheduler.report(news, self.now)
        return multiple(*news)

    # Most of what happens to a scheduler is this.
    works = rule(
        target=reports,
        seconds=st.sampled_from([0, 1, 5, 10, 30]),
        kinds=st.lists(
            st.sampled_from(["running", "succeeded", "failed", "failed", "returned", ""]),
            min_size=1,
            max_size=5,
        ),
    )
    work_one, work_two, work_three, work_four = works(work), works(work), works(work), works(work)

    @rule(news=st.lists(reports, max_size=4))
    def report_again(self, news):
        """Late, repeated, several at once: what is about ended runs changes nothing."""
        alive = any(each.run_id in self.replay.runs for each in news)
        changes = self.scheduler.report(news, self.now)
        assert alive or not changes

    @rule(n=st.integers(0, 4), pool=st.sampled_from(["default", "other"]))
    def join(self, n, pool):
        """A node comes, or says that it is there."""
        known = self.scheduler.nodes.get(f"node-{n}")
        if known is not None:
            pool = known.pool
        self.scheduler.join_nodes([self.node(n, pool=pool)], self.now)

    @rule(n=st.integers(0, 4))
    def lose(self, n):
        """A node is out of reach."""
        if self.scheduler.nodes.get(f"node-{n}") is not None:
            self.scheduler.lose_nodes([f"node-{n}"], self.now)
            assert f"node-{n}" not in {node for _, node in self.active().values()}

    @rule(n=st.integers(0, 4))
    def back(self, n):
        """A node is in reach again."""
        if self.scheduler.nodes.get(f"node-{n}") is not None:
            self.scheduler.nodes_back([f"node-{n}"], self.now)

    # What goes wrong

    @rule(seconds=st.sampled_from([1, 10]))
    def a_refused_commit_changes_nothing(self, seconds):
        """Memory is as before, and the step can be taken again."""
        before = list(self.scheduler.snapshot()), self.journal.load()
        self.now += seconds * SECOND
        self.journal.fault = lambda: Conflict((("job", "any"),))
        with suppress(Conflict):
            self.scheduler.step(self.now)
            self.journal.fault = None
            return
        assert (list(self.scheduler.snapshot()), self.journal.load()) == before
        self.scheduler.step(self.now)

    @rule(seconds=st.sampled_from([1, 10]))
    def a_lost_answer_is_found_by_the_next_command(self, seconds):
        """What was committed is not decided again."""
        self.now += seconds * SECOND
        self.journal.answer_lost = True
        with suppress(ConnectionError):
            self.scheduler.step(self.now)
        self.journal.answer_lost = False
        self.scheduler.report([], self.now)

    @rule()
    def restart(self):
        """The program ends and starts again."""
        self.scheduler = self.rebuilt()

    @rule()
    def forget(self):
        """Everybody has read the log."""
        self.read_log()
        self.journal.forget(self.cursor)

    # What must hold

    def active(self) -> dict[str, tuple[JobId, str]]:
        """The active runs as memory has them."""
        return {
            row.active_run.id: (row.id, row.active_run.node_id)
            for row in self.scheduler.snapshot()
            if row.active_run is not None
        }

    def read_log(self) -> None:
        """Follow the log to its end, page by page."""
        while True:
            events, self.cursor = self.journal.events_since(self.cursor, limit=3)
            self.replay.read(events)
            if not events:
                return

    @invariant()
    def sound(self):
        """No checker finds a breach."""
        assert self.scheduler.check() == []

    @invariant()
    def rebuilding_gives_the_same(self):
        """Whatever memory knows, the journal knows."""
        other = self.rebuilt()
        assert list(other.snapshot()) == list(self.scheduler.snapshot())
        assert other.check() == []

    @invariant()
    def the_log_tells_all(self):
        """A reader of events alone knows each job's state and the active runs."""
        self.read_log()
        rows = {row.id: row.state for row in self.scheduler.snapshot()}
        states = self.replay.states
        if not self.keep_ended:
            states = {id: state for id, state in states.items() if not state.terminal}
        states = {
            id: rows[id] if id in rows and state.active and rows[id].active else state
            for id, state in states.items()
        }
        assert rows == states
        assert self.replay.runs == self.active()

    @invariant()
    def places_are_kept(self):
        """Queue and submit time never change."""
        for row in self.scheduler.snapshot():
            new = self.submitted[_submitted_as(row.id)]
            assert (row.queue, row.submitted_at) == (new.queue, new.submitted_at)

    @invariant()
    def budgets_are_kept(self):
        """Never more reschedules in a window than attempts, whatever the history kept."""
        for id, times in self.replay.rescheduled.items():
            new = self.submitted[_submitted_as(id)]
            if new.job_type == "system":
                continue  # has no budget
            policy = new.policy or self.config.policy_for(new.job_type)
            assert policy is not None
            for end in times:
                window = [time for time in times if end - policy.interval < time <= end]
                assert policy.unlimited or len(window) <= policy.attempts


def _submitted_as(id: str) -> JobId:
    """The id under which a user submitted the job *id*: of one on a node, that of its template."""
    return JobId(id.partition("@")[0])


class ForgetfulMachine(SchedulerMachine):
    """The same over a journal that keeps no ended jobs."""

    keep_ended = False


class LeasingMachine(SchedulerMachine):
    """The same with leases that end."""

    leases = 20 * SECOND


TestScheduler = SchedulerMachine.TestCase
TestForgetfulScheduler = ForgetfulMachine.TestCase
TestLeasingScheduler = LeasingMachine.TestCase
# The variants differ in little, so that a third of the examples do for each.
FEWER = max(settings.default.max_examples // 3, 1)
TestScheduler.settings = settings(stateful_step_count=40)
TestForgetfulScheduler.settings = settings(stateful_step_count=40, max_examples=FEWER)
TestLeasingScheduler.settings = settings(stateful_step_count=40, max_examples=FEWER)
