"""The scheduler: every command and every step is decided on memory, then committed, then seen.

Owns the order of stages; relies on stages that know neither each other nor the journal, and
on `sync` to bring in what was committed. No clock, no thread. Keeps INV-J1 to INV-J12.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct, structs

from pyresched import fleet, leasing, outcomes, submit
from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.jobdb import Reader, Snapshot
from pyresched.model import (
    Changes,
    Duration,
    Instant,
    Job,
    JobId,
    JobType,
    Node,
    PoolName,
    Queue,
    QueueName,
    ReschedulePolicy,
    RoundResult,
)
from pyresched.model.changes import composed
from pyresched.model.system import is_template
from pyresched.nodedb import NodeDb, NodesAhead
from pyresched.outcomes import Report
from pyresched.scheduler.arguments import instant, several
from pyresched.scheduler.check import breaches, facts
from pyresched.scheduler.journal import Journal
from pyresched.scheduler.queues import changes as queues_changed
from pyresched.scheduler.sync import Sync
from pyresched.scheduler.wake import away, next_wake
from pyresched.scheduling import (
    Arguments,
    Explanation,
    RoundState,
    explain,
    run_round,
    save_round,
)
from pyresched.scheduling.check import SubmitCheck
from pyresched.scheduling.limits import look_again
from pyresched.scheduling.penalties import ShortRun
from pyresched.scheduling.state import handed_on

__all__ = ["Scheduler", "StepResult"]


class StepResult(Struct, frozen=True, kw_only=True):
    """What a step did.

    `results` has the round of each pool that had one; without news since a round that changed
    nothing, there is none. `next_wake` is when the next jobs are due (the
    last of those within `reschedule_window` of the first), the next lease ends, a run has been
    out of reach for too long, a node may let the next runs go or must let them all go, a limit
    that held jobs back may let one go or, while jobs are queued, the next short run has paid
    its time.
    """

    results: Mapping[PoolName, RoundResult]
    next_wake: Instant | None


class Scheduler:
    """Jobs, nodes and queues over *journal*, which is the truth: this is rebuilt from it.

    *ids* gives ids for runs that no run has had. Each command is one commit, or none when it
    changes nothing, and returns what it committed; if it raises, nothing has changed. Not for
    several threads at once. Events are read from the journal. `now` is in whole ns on the caller's
    clock. Raises TypeError for arguments of another kind.
    """

    def __init__(
        self, config: SchedulingConfig, journal: Journal, *, ids: Callable[[], str]
    ) -> None:
        self._config = config
        self._journal = journal
        self._ids = ids
        self._sync = Sync(config, journal)
        self._check = SubmitCheck(self._sync.nodes, config, self._sync.queues)
        self._system = fleet.SystemJobs(config)
        self._tended: int | None = None  # the serial at which system jobs were as they should be
        self._states: dict[PoolName, RoundState] = {}
        # The serial and the penalties with which a step found nothing to do.
        self._settled: tuple[int, tuple[ShortRun, ...]] | None = None
        # Jobs to be tried again of which no round has said yet whether there is a place.
        self._due_again: set[JobId] = set()
        # Queued to be tried again, unless their deployment fails first.
        self._deployed: set[JobId] = set()
        for job in self._sync.snapshot:
            if leasing.is_due(job):
                self._due_again.add(job.id)
            if outcomes.awaits_deployment(job):
                self._deployed.add(job.id)
        self._again_at: Instant | None = None  # when a limit that held jobs back may let go

    @property
    def config(self) -> SchedulingConfig:
        """What the operator set."""
        return self._config

    @property
    def journal(self) -> Journal:
        """The truth, for readers of events."""
        return self._journal

    @property
    def nodes(self) -> NodeDb:
        """The nodes and what is bound to them, for readers."""
        return self._sync.nodes

    @property
    def queues(self) -> Mapping[QueueName, Queue]:
        """The queues by name."""
        return self._sync.queues

    @property
    def sync(self) -> Sync:
        """The memory behind this, for checks."""
        return self._sync

    def snapshot(self) -> Snapshot:
        """The jobs as of the last command; immutable."""
        return self._sync.snapshot

    def check(self) -> list[str]:
        """Every breach of an invariant between journal, memory and nodes; none when all is well."""
        found = list(breaches(facts(self._config, self._sync, self._journal)))
        found += self._sync.db.check(self._sync.snapshot)
        return found + self._sync.nodes.check()

    # Commands

    def submit(self, jobs: Sequence[Job], now: Instant) -> Changes:
        """Admit new jobs, all or none.

        A job that no node could ever hold ends at once: its row is failed and says why. Raises
        DuplicateId, or InputError that names job and field of everything wrong. A system job
        is a template: the next step makes a job for each node.
        """
        jobs, now = several(jobs, Job, "jobs"), instant(now)
        for job in jobs:
            # What ended is known by its row, and would be done again without it.
            if job.job_type == JobType.SYSBATCH.value and not self._journal.keeps_ended:
                raise InputError(
                    f"job {job.id!r}: job_type sysbatch needs a journal that keeps ended jobs; "
                    "give this scheduler one"
                )
        self._sync.catch_up()
        try:
            changes = submit.admit(
                jobs,
                self._sync.snapshot,
                queues=self._sync.queues,
                pools=self._sync.pools,
                reached=self._check.pools,
                check=self._check,
                config=self._config,
                now=now,
            )
            # Memory cannot refuse what is committed, so what it cannot hold is refused before.
            with self._sync.db.dry_run() as trial:
                trial.upsert_many(changes.jobs)
        except InputError:
            raise
        except UnicodeEncodeError as bad:
            raise InputError(
                f"{bad.object!r} is no text that UTF-8 can hold; name it anew"
            ) from bad
        except ValueError as bad:  # an id that is too long
            raise InputError(str(bad)) from bad
        return self._commit(changes)

    def cancel(self, job_ids: Iterable[str], now: Instant, *, reason: str = "") -> Changes:
        """Take jobs back, with their gangs; a system job on all nodes.

        Unknown and ended ones stay as they are. One job of a system job comes back.
        """
        job_ids, now = several(job_ids, str, "job_ids"), instant(now)
        self._sync.catch_up()
        snapshot, nodes = self._sync.snapshot, self._sync.node_rows
        whole = list(job_ids)
        for job in filter(None, snapshot.get_many(job_ids)):
            if is_template(job):
                whole += self._system.of(job, snapshot, nodes)
        return self._commit(submit.cancel(whole, snapshot, now=now, reason=reason))

    def report(self, reports: Sequence[Report], now: Instant) -> Changes:
        """Take in what executors say of runs. What is late or repeated changes nothing."""
        reports, now = several(reports, Report, "reports"), instant(now)
        self._sync.catch_up()
        return self._commit(outcomes.apply(reports, self._sync.snapshot, self._config, now))

    def stop(self, job_ids: Iterable[str], now: Instant, *, reason: str = "") -> Changes:
        """End the active runs of jobs, with their gangs: users stop runs and keep the jobs.

        A service is back at its place at once; a batch job goes by its policy, as if its run had
        failed, and where nothing follows it is cancelled. Jobs without a run stay as they are.
        """
        job_ids, now = several(job_ids, str, "job_ids"), instant(now)
        self._sync.catch_up()
        snapshot = self._sync.snapshot
        return self._commit(outcomes.stop(job_ids, snapshot, self._config, now=now, reason=reason))

    def force(self, job_ids: Iterable[str], now: Instant) -> Changes:
        """Put jobs that back off, or failed for good, back to their places, with their gangs.

        Whatever limit, delay and policy say; such a reschedule is never counted. Other jobs stay
        as they are. Raises InputError, also for a job that this journal has forgotten.
        """
        job_ids, now = several(job_ids, str, "job_ids"), instant(now)
        self._sync.catch_up()
        keeps = self._journal.keeps_ended
        snapshot = self._sync.snapshot
        changes = outcomes.force(job_ids, snapshot, self._config, now=now, keeps_ended=keeps)
        self._due_again.update(job.id for job in changes.jobs)
        return self._commit(changes)

    def set_policy(
        self, job_ids: Iterable[str], policy: ReschedulePolicy | None, now: Instant
    ) -> Changes:
        """Give jobs, with their gangs, another policy; None is that of their type.

        It counts from now on for all their runs: the verdict on those that back off or ended
        for their failures is made anew. Raises InputError for what a submit would refuse.
        """
        job_ids, now = several(job_ids, str, "job_ids"), instant(now)
        self._sync.catch_up()
        snapshot = self._sync.snapshot
        return self._commit(outcomes.set_policy(job_ids, policy, snapshot, self._config, now=now))

    def join_nodes(self, nodes: Iterable[Node], now: Instant) -> Changes:
        """Take in nodes, new ones and known ones with other figures.

        Raises DuplicateId, InputError, or ConfigError for an unknown pool.
        """
        nodes, now = several(nodes, Node, "nodes"), instant(now)
        self._sync.catch_up()
        snapshot, lease = self._sync.snapshot, self._config.lease_duration
        changes = fleet.join(nodes, self._sync.node_rows, now=now, jobs=snapshot, lease=lease)
        for node in changes.nodes:
            self._config.pool(node.pool)
        # Memory cannot refuse what is committed, so what it cannot hold is refused before.
        NodeDb(self._config, changes.nodes)
        return self._commit(changes)

    def lose_nodes(self, node_ids: Iterable[str], now: Instant) -> Changes:
        """Nodes are gone, and so are their runs, which are replaced by the next step.

        Leases do not hold that up: where a run may go on out of reach until its lease ends,
        call this when that is over, or `disconnect_nodes`. Runs that their group does not want
        replaced (`replace = false`) are waited for: their node is disconnected. Raises
        UnknownNode.
        """
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        sync = self._sync
        sync.catch_up()
        jobs, unsettled = sync.snapshot, sync.unsettled
        return self._commit(
            fleet.lose(node_ids, sync.node_rows, jobs=jobs, now=now, unsettled=unsettled)
        )

    def disconnect_nodes(self, node_ids: Iterable[str], now: Instant) -> Changes:
        """Nodes are out of reach, and may come back with their runs.

        What becomes of a run is up to the `disconnect` rule of its group: lost at once without
        one; replaced by its policy meanwhile, and lost after `lost_after`; or waited for. A node
        without such a run is lost. Raises UnknownNode.
        """
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        self._sync.catch_up()
        jobs, nodes = self._sync.snapshot, self._sync.node_rows
        verdict = outcomes.judge(jobs, self._config)
        return self._commit(fleet.disconnect(node_ids, nodes, jobs=jobs, now=now, verdict=verdict))

    def nodes_back(self, node_ids: Iterable[str], now: Instant) -> Changes:
        """Nodes are in reach again: lost ones empty, disconnected ones with what still runs there.

        Of a run that is unknown a report decides, whether it or its replacement goes on. Raises
        UnknownNode.
        """
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        self._sync.catch_up()
        jobs, lease = self._sync.snapshot, self._config.lease_duration
        return self._commit(
            fleet.back(node_ids, self._sync.node_rows, now=now, jobs=jobs, lease=lease)
        )

    def cordon_nodes(self, node_ids: Iterable[str], now: Instant) -> Changes:
        """Nodes take nothing new. Raises UnknownNode."""
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        self._sync.catch_up()
        return self._commit(fleet.cordon(node_ids, self._sync.node_rows, now=now))

    def uncordon_nodes(self, node_ids: Iterable[str], now: Instant) -> Changes:
        """Nodes take runs again. Raises UnknownNode."""
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        self._sync.catch_up()
        return self._commit(fleet.uncordon(node_ids, self._sync.node_rows, now=now))

    def drain_nodes(
        self,
        node_ids: Iterable[str],
        now: Instant,
        *,
        deadline: Duration | None = None,
        ignore_system: bool = False,
    ) -> Changes:
        """Nodes take nothing new, and what runs there goes, step by step, without budget.

        Services go first, of a group as many at once as its `migrate` rule allows; batch jobs
        may end until *deadline* ns have passed (None: whenever), when all that is left goes;
        then system jobs, unless *ignore_system*. Raises UnknownNode, InputError for a deadline
        that is no time.
        """
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        self._sync.catch_up()
        return self._commit(
            fleet.drain(
                node_ids,
                self._sync.node_rows,
                now=now,
                deadline=deadline,
                ignore_system=ignore_system,
            )
        )

    def undrain_nodes(self, node_ids: Iterable[str], now: Instant) -> Changes:
        """Nodes that drain take runs again; others stay as they are. Raises UnknownNode."""
        node_ids, now = several(node_ids, str, "node_ids"), instant(now)
        self._sync.catch_up()
        return self._commit(fleet.undrain(node_ids, self._sync.node_rows, now=now))

    def put_queues(self, queues: Iterable[Queue], now: Instant) -> Changes:
        """Make queues, or give them other settings.

        Raises DuplicateId, InputError, or ConfigError for limits on what is not configured.
        """
        queues, now = several(queues, Queue, "queues"), instant(now)
        for queue in queues:
            self._config.check_queue(queue)
        self._sync.catch_up()
        return self._commit(queues_changed(queues, self._sync.queue_rows, now=now))

    # The cycle

    def save_round(
        self, path: str | Path, pool: str, now: Instant, *, anonymous: bool = False
    ) -> None:
        """Write the round over *pool* that is due at *now* to a file, to replay or explain it.

        Nothing is decided and nothing changes. With *anonymous*, names that people chose are
        replaced by pseudonyms. Raises InputError for a place that cannot be written to and
        ConfigError for an unknown pool.
        """
        save_round(path, *self._due(pool, now), anonymous=anonymous)

    def explain(self, job_id: str, pool: str, now: Instant) -> Explanation:
        """Why a job is where it is after the round over *pool* that is due, and what would start it.

        Nothing is decided and nothing changes; runs rounds. Raises InputError for an unknown
        job and ConfigError for an unknown pool.
        """
        return explain(job_id, *self._due(pool, now))

    def _due(self, pool: str, now: Instant) -> Arguments:
        """What the round over *pool* takes that is due at *now*."""
        now = instant(now)
        self._sync.catch_up()
        before = self._states.get(self._config.pools[-1].name)
        penalties = self._sync.penalties(now)
        return self._taken(self._sync.snapshot, PoolName(pool), before, penalties, now)

    def step(
        self, now: Instant, *, on_round: Callable[[Arguments], None] | None = None
    ) -> StepResult:
        """One cycle: what time has brought, then a round for each pool, then leases.

        *on_round* is called with what each round takes, before it runs.
        """
        now = instant(now)
        # 1. Follow what others have committed.
        self._sync.catch_up()
        # 2. Leases that nobody renewed: their runs are out of reach.
        if self._config.lease_duration is not None:
            self._commit(leasing.expire(self._sync.snapshot, now, away=away(self._sync)))
        # 3. Runs out of reach for too long are lost; runs on draining nodes go.
        jobs, unsettled = self._sync.snapshot, self._sync.unsettled
        self._commit(fleet.expire(self._sync.timed_nodes, jobs=jobs, now=now, unsettled=unsettled))
        self._commit(fleet.migrate(self._sync.timed_nodes, jobs=self._sync.snapshot, now=now))
        # 4. Jobs whose delay is over go back to their places.
        due = self._commit(outcomes.due(self._sync.snapshot, now, self._config))
        self._due_again.update(job.id for job in due.jobs)
        self._deployed.update(job.id for job in due.jobs if outcomes.awaits_deployment(job))
        # 5. Jobs that could not be checked against the nodes before.
        if reached := self._check.pools:
            self._commit(
                submit.validate(
                    self._sync.snapshot,
                    pools=self._sync.pools,
                    reached=reached,
                    check=self._check,
                    now=now,
                )
            )
        # 6. System jobs follow the nodes: what is called off, then what takes its place.
        self._tend(now)
        # 7. A round for each pool, and leases for what it placed; nothing when nothing is new.
        #    Before it ends who may not be tried again any more.
        results: dict[PoolName, RoundResult] = {}
        penalties = self._sync.penalties(now)
        let_go = self._again_at is not None and self._again_at <= now
        if self._settled != (self._sync.serial, penalties) or let_go:
            self._drop_past_deadline(now)
            results = self._rounds(now, penalties, on_round)
            if not any(results.values()):
                self._settled = (self._sync.serial, penalties)
        return StepResult(
            results=results,
            next_wake=next_wake(self._sync, self._config, now, again_at=self._again_at),
        )

    def _tend(self, now: Instant) -> None:
        """Let system jobs follow the nodes until there is nothing left to change."""
        while self._tended != self._sync.serial:
            snapshot, nodes = self._sync.snapshot, self._sync.node_rows
            leaving = fleet.cleared(self._sync.timed_nodes, jobs=snapshot)
            changes, expect = self._system(snapshot, nodes, now, leaving=leaving)
            if not self._commit(changes, expect=expect):
                self._tended = self._sync.serial

    def _drop_past_deadline(self, now: Instant) -> None:
        """End who is queued to be tried again, but whose deployment has failed meanwhile."""
        if self._deployed:
            ids = sorted(self._deployed)
            self._commit(outcomes.past_deadline(ids, self._sync.snapshot, now, self._config))
            rows = filter(None, self._sync.snapshot.get_many(ids))
            self._deployed = {job.id for job in rows if outcomes.awaits_deployment(job)}

    def _rounds(
        self,
        now: Instant,
        penalties: Sequence[ShortRun],
        on_round: Callable[[Arguments], None] | None,
    ) -> dict[PoolName, RoundResult]:
        """Decide pool by pool, each on top of the pools before it, and commit all at once."""
        results: dict[PoolName, RoundResult] = {}
        states = dict(self._states)
        decided: list[Changes] = []
        again: list[Instant | None] = []
        last = self._config.pools[-1].name
        # Else no round sees a node that another one gives out.
        shares_nodes = any(pool.away_pools for pool in self._config.pools)
        before = states.get(last)
        with ExitStack() as ends:
            reader: Reader = self._sync.snapshot
            nodes = self._sync.nodes
            overlay = None
            for pool in self._config.pools:
                name = pool.name
                taken = self._taken(reader, name, before, penalties, now)._replace(nodes=nodes)
                if on_round is not None:
                    on_round(taken)
                results[name], before = run_round(*taken)
                states[name] = before
                again.append(look_again(results[name], self._config, before, now))
                changes = leasing.grant(results[name], reader, now, self._ids, self._config)
                decided.append(changes)
                if changes.jobs and name != last:
                    if overlay is None:
                        reader = overlay = ends.enter_context(self._sync.db.dry_run())
                    overlay.upsert_many(changes.jobs)
                    if shares_nodes:
                        jobs = (job for each in decided for job in each.jobs)
                        nodes = NodesAhead(self._sync.nodes, jobs)
        changes, expect = composed(decided)
        self._commit(changes, expect=expect)
        if self._due_again:
            self._commit(leasing.unplaced(sorted(self._due_again), self._sync.snapshot))
            self._due_again.clear()
        self._states = states
        self._again_at = min((each for each in again if each is not None), default=None)
        return results

    def _taken(
        self,
        reader: Reader,
        pool: PoolName,
        before: RoundState | None,
        penalties: Iterable[ShortRun],
        now: Instant,
    ) -> Arguments:
        """What a round over *pool* takes, after one over any pool that left the state *before*."""
        charged = tuple(each for each in penalties if each.pool == pool)
        state = structs.replace(self._states.get(pool, RoundState()), penalties=charged)
        state = handed_on(state, before, self._config)
        sync = self._sync
        return Arguments(reader, sync.nodes, sync.queues, pool, self._config, state, now)

    def _commit(
        self, changes: Changes, *, expect: Mapping[tuple[str, str], int] | None = None
    ) -> Changes:
        """Write *changes*, if any, to the journal, and then let memory follow."""
        if changes:
            guards = changes.expected() if expect is None else expect
            self._journal.commit(changes, expect=guards)
            self._sync.catch_up()
        return changes
