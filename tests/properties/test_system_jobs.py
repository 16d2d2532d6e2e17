"""System jobs beside nodes that come, change, go and return in any order: INV-J12.

A plain model knows which node matches which template and what was done where, and says after
each step which jobs there must be: none is lost and none is doubled.
"""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kit.jobs import job, requirements
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import Node, ResourceVector, Taint, TaintEffect, Toleration
from pyresched.model.system import is_pinned
from pyresched.outcomes import Report, ReportKind
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal

CONFIG = SchedulingConfig(pools=(PoolConfig(name="default"), PoolConfig(name="other")))
TAINT = Taint("special", "", TaintEffect.NO_SCHEDULE)
NAMES = ("n1", "n@2", "n#2")


class Kind:
    """What a template asks for, and where it has been done."""

    def __init__(self, job_type, zone, tolerant, pools, cores) -> None:
        self.job_type, self.zone, self.tolerant = job_type, zone, tolerant
        self.pools, self.cores = pools, cores
        self.done: set[str] = set()

    def job(self, id, now):
        """As its user submits it."""
        asked = requirements(
            1000 * self.cores,
            64,
            selector={"zone": self.zone} if self.zone else {},
            tolerations=(Toleration("special", exists=True),) if self.tolerant else (),
            priority_class="best-effort",
        )
        return job(
            id,
            queue="system",
            requirements=asked,
            job_type=self.job_type,
            pools=self.pools,
            submitted_at=now,
        )

    def matches(self, node: Node) -> bool:
        """Whether a job of it that is on *node* may stay."""
        return (
            node.lost_at is None
            and node.pool in self.pools
            and self.zone in ("", node.labels.get("zone"))
            and (self.tolerant or not node.taints)
        )

    def belongs(self, node: Node) -> bool:
        """Whether there must be one on *node* that was not there before."""
        fits = 1000 * self.cores <= node.total[0]
        return self.matches(node) and fits and node.id not in self.done


class SystemMachine(RuleBasedStateMachine):
    """Templates, nodes, reports and restarts."""

    keep_ended = True
    types = ("system", "sysbatch")

    @initialize()
    def start(self) -> None:
        """A node of each pool and a template of each type, so that something happens soon."""
        self.now = 0
        self.numbers, self.run_numbers = count(1), count(1)
        self.journal = MemoryJournal(keep_ended=self.keep_ended)
        self.kinds: dict[str, Kind] = {}
        self.restart()
        for name, pool in zip(NAMES, ("default", "other"), strict=False):
            self.join(name, "a", (), 4, pool)
        for kind in range(len(self.types)):
            self.submit(kind, "a", tolerant=False, pools=("default", "other"), cores=1, name="t")

    @rule()
    def restart(self) -> None:
        """From what the journal has."""
        self.scheduler = Scheduler(
            CONFIG, self.journal, ids=lambda: f"run-{next(self.run_numbers)}"
        )

    @rule(
        kind=st.integers(0, 1),
        zone=st.sampled_from(["", "a"]),
        tolerant=st.booleans(),
        pools=st.sampled_from([("default",), ("default", "other")]),
        cores=st.sampled_from([1, 3]),
        name=st.sampled_from(["t", "t@n"]),
    )
    def submit(self, kind, zone, tolerant, pools, cores, name) -> None:  # noqa: PLR0917
        """A template, of which there are three at most."""
        if len(self.kinds) < 3:
            id = f"{name}-{next(self.numbers)}"
            made = Kind(self.types[kind % len(self.types)], zone, tolerant, pools, cores)
            self.scheduler.submit([made.job(id, self.now)], self.now)
            self.kinds[id] = made

    @rule(
        name=st.sampled_from(NAMES),
        zone=st.sampled_from(["a", "a", "b"]),
        taints=st.sampled_from([(), (), (TAINT,)]),
        cores=st.sampled_from([2, 4]),
        pool=st.sampled_from(["default", "other"]),
    )
    def join(self, name, zone, taints, cores, pool) -> None:
        """A node comes, comes back, or has changed."""
        total = ResourceVector([1000 * cores, 4096])
        node = Node(id=name, total=total, labels={"zone": zone}, taints=taints, pool=pool)
        self.scheduler.join_nodes([node], self.now)

    @rule(
        name=st.sampled_from(NAMES), what=st.sampled_from(["lose", "lose", "back", "close", "open"])
    )
    def node(self, name, what) -> None:
        """A node is lost, back, cordoned or not."""
        if name in self.scheduler.nodes:
            commands = {
                "lose": self.scheduler.lose_nodes,
                "back": self.scheduler.nodes_back,
                "close": self.scheduler.cordon_nodes,
                "open": self.scheduler.uncordon_nodes,
            }
            commands[what]([name], self.now)

    @precondition(lambda self: self.kinds)
    @rule(n=st.integers(0, 2))
    def cancel(self, n) -> None:
        """A template, and with it all that it has anywhere."""
        id = sorted(self.kinds)[n % len(self.kinds)]
        del self.kinds[id]
        self.scheduler.cancel([id], self.now)

    @rule(n=st.integers(0, 9))
    def cancel_one(self, n) -> None:
        """One on one node, by hand."""
        if live := sorted(self.live().items()):
            (id, node_id), job_id = live[n % len(live)]
            self.scheduler.cancel([job_id], self.now)
            self.ended(id, node_id)

    @rule(
        kinds=st.lists(
            st.sampled_from(["running", "succeeded", "failed", "returned", ""]),
            min_size=1,
            max_size=3,
        )
    )
    def work(self, kinds) -> None:
        """A step, and what became of the runs."""
        self.step(0)
        for ((id, node_id), job_id), kind in zip(
            sorted(self.live().items()), kinds * len(self.kinds) * len(NAMES), strict=False
        ):
            run = self.scheduler.snapshot().get(job_id).active_run
            if run is not None and kind:
                news = Report(run_id=run.id, job_id=job_id, kind=ReportKind(kind), at=self.now)
                self.scheduler.report([news], self.now)
                if kind in ("succeeded", "failed"):
                    self.ended(id, node_id)

    def ended(self, id, node_id) -> None:
        """What ends for good is done there, for a sysbatch job."""
        if self.kinds[id].job_type == "sysbatch":
            self.kinds[id].done.add(node_id)

    @rule(seconds=st.sampled_from([0, 1, 60, 7200]))
    def step(self, seconds) -> None:
        """Afterwards each is where it belongs, and on no other node."""
        self.now += seconds * 10**9
        before = self.live()
        self.scheduler.step(self.now)
        live = self.live()
        for id, kind in self.kinds.items():
            for node in self.scheduler.nodes:
                here = (id, node.id)
                stays = here in before and kind.matches(node)
                moved = here in before and self.pool_of(before[here]) != node.pool
                wanted = kind.belongs(node) or (stays and not moved)
                assert (here in live) is wanted, (here, before, live)
        self.scheduler.step(self.now)
        assert self.live() == live, "the same again changes nothing"

    def pool_of(self, job_id) -> str:
        """In which pool a job was pinned."""
        job = self.scheduler.snapshot().get(job_id)
        return "" if job is None else job.pools[0]

    def live(self) -> dict[tuple[str, str], str]:
        """The pinned jobs that have not ended, by template and node."""
        found = {}
        for row in self.scheduler.snapshot():
            if is_pinned(row) and not row.state.terminal:
                (node_id,) = row.requirements.nodes
                owners = [
                    id for id in self.kinds if row.id.startswith(f"{id.replace('@', '%40')}@")
                ]
                assert len(owners) == 1, row.id
                assert (owners[0], node_id) not in found, "one of each"
                found[owners[0], node_id] = row.id
        return found

    @invariant()
    def sound(self) -> None:
        """No checker finds a breach, and no run is anywhere but where it is pinned to."""
        assert self.scheduler.check() == []
        self.live()
        for row in self.scheduler.snapshot():
            if row.active_run is not None:
                assert row.requirements.nodes == (row.active_run.node_id,)


class ForgetfulSystemMachine(SystemMachine):
    """The same over a journal that keeps no ended jobs, which takes no sysbatch jobs."""

    keep_ended = False
    types = ("system",)


TestSystemJobs = SystemMachine.TestCase
TestForgetfulSystemJobs = ForgetfulSystemMachine.TestCase
FEWER = max(settings.default.max_examples // 3, 1)
TestSystemJobs.settings = settings(stateful_step_count=40)
TestForgetfulSystemJobs.settings = settings(stateful_step_count=40, max_examples=FEWER)
