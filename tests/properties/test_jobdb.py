"""The job db against a plain dict: every operation, every answer, several versions at once."""

import gc
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kit.faulty_dbs import StandIn
from kit.job_model import JobModel, refusals
from kit.job_strategies import (
    BAD_KEYS,
    CHANGES,
    GANGS,
    IDS,
    POOLS,
    QUEUES,
    Hostile,
    few,
    ids_of,
    new_jobs,
    same_answers,
)
from kit.jobs import job, requirements, run
from pyresched.errors import Conflict, RunBelongsToOtherJob, TxnClosed, WriterBusy
from pyresched.jobdb import DryRun, JobDb, Order, Reader, Txn
from pyresched.model import Gang, Job, JobState


class Compared(Exception):
    """Somebody asked whether two payloads are equal."""


class Payload:
    """What a user hangs on a job: the same object or another, never equal or unequal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        raise Compared(self.name)

    __hash__ = None  # type: ignore[assignment]


payloads = st.sampled_from([None] * 4 + [Payload(name) for name in "xy"])
# Jobs that the store can never take, whatever it holds, and what each is.
BAD_JOBS: list[tuple[Any, type[Exception]]] = [
    (None, TypeError),
    ("job", TypeError),
    (7, TypeError),
    (job("\ud800"), UnicodeEncodeError),
    (job("x" * 256), ValueError),
    (job("odd", runs=(run("\ud800"),)), UnicodeEncodeError),
    (job("odd", runs=(run("r" * 256),)), ValueError),
    (job("odd", gang=Gang("\ud800", 2)), UnicodeEncodeError),
]


def all_is_well(db: JobDb, reader: Reader, model: JobModel) -> None:
    """The answers of a dict, those that no dict can give, and no breach."""
    same_answers(reader, model)
    assert [reader.get(Hostile(id)) for id in IDS] == [model.jobs.get(id) for id in IDS]
    for queue in QUEUES:
        for pool in (*POOLS, None):
            assert ids_of(reader.queued(queue, pool, Order.MARKET)) == ids_of(
                model.queued(queue, pool, market=True)
            )
    for key, error in BAD_KEYS:
        with pytest.raises(error):
            reader.get(key)
    assert db.check(reader) == []


# What a dry run may depend on: (what, name).
Watch = tuple[str, Any]
watches: st.SearchStrategy[Watch] = st.one_of(
    st.tuples(st.just("ids"), st.sampled_from(IDS)),
    st.tuples(st.just("gang"), st.tuples(st.sampled_from(QUEUES), st.sampled_from(GANGS))),
    st.tuples(st.just("queue"), st.sampled_from(QUEUES)),
    st.tuples(st.just("queue"), st.tuples(st.sampled_from(QUEUES), st.sampled_from(POOLS))),
)


def seen(model: JobModel, watch: Watch) -> object:
    """What may not change."""
    kind, name = watch
    if kind == "ids":
        return model.jobs.get(name)
    if kind == "gang":
        return model.gang(*name)
    return ids_of(model.queued(*((name,) if isinstance(name, str) else name)))


def members(model: JobModel, watch: Watch) -> list[str]:
    """The jobs that are part of it now."""
    found = seen(model, watch)
    if isinstance(found, Job):
        return [found.id]
    return [each if isinstance(each, str) else each.id for each in found or ()]  # type: ignore[attr-defined]


class JobDbMachine(RuleBasedStateMachine):
    """One writer, dry runs, snapshots and walks, each with the dict that it should equal."""

    make_db: Callable[..., Any] = JobDb

    def __init__(self) -> None:
        super().__init__()
        self.committed = JobModel()
        self.writer: tuple[Txn, JobModel] | None = None
        self.dry_runs: list[tuple[DryRun, JobModel]] = []
        # By identity: what each is over and what it depends on, as its version has it.
        self.bases: dict[int, tuple[JobModel, list[Watch]]] = {}
        self.left: list[tuple[DryRun, JobModel]] = []
        self.snapshots: list[tuple[Reader, JobModel]] = []
        self.walks: list[tuple[Any, list[Job], Reader]] = []
        self.version = 0
        self.turn = 0

    @initialize(
        bits=st.sampled_from([0, 1, 3, 32]),
        seed=st.binary(min_size=16, max_size=16),
        leaf=st.sampled_from([4, 5, 32]),
        fanout=st.sampled_from([4, 8, 32]),
    )
    def make(self, bits: int, seed: bytes, leaf: int, fanout: int) -> None:
        """A db whose ids collide in all, many or no bits, and whose nodes hold few things, so
        that a handful of jobs makes deep trees.
        """
        self.db = type(self).make_db(hash_bits=bits, seed=seed, leaf=leaf, fanout=fanout)

    def open_txns(self) -> list[tuple[Txn, JobModel]]:
        """What can be written to."""
        return [*([self.writer] if self.writer else []), *self.dry_runs]

    def readers(self) -> list[tuple[Reader, JobModel]]:
        """All that can be read."""
        return [*self.open_txns(), *self.snapshots]

    @precondition(lambda self: self.writer is None)
    @rule()
    def write(self) -> None:
        """Open the writer."""
        self.writer = (self.db.write(), self.committed.copy())

    @precondition(lambda self: self.writer is not None)
    @rule()
    def another_writer(self) -> None:
        """There is only one."""
        with pytest.raises(WriterBusy):
            self.db.write()
        for trial, _ in self.left:
            with pytest.raises(WriterBusy):
                self.db.apply(trial)

    @precondition(lambda self: len(self.dry_runs) < 3)
    @rule(n=st.integers(0, 99), kind=few)
    def dry_run(self, n: int, kind: int) -> None:
        """Begin an overlay on what is committed, often for the sake of something there."""
        trial = self.db.dry_run()
        self.dry_runs.append((trial, self.committed.copy()))
        self.bases[id(trial)] = (self.committed.copy(), [])
        if kind:
            self.depend_on_what_is_there(-1, n, kind)

    @precondition(lambda self: self.dry_runs)
    @rule(which=few, watch=watches)
    def depend_on(self, which: int, watch: Watch) -> None:
        """Say what else may not change."""
        self.watch(self.dry_runs[which % len(self.dry_runs)][0], watch)

    def depend_on_what_is_there(self, which: int, n: int, kind: int) -> None:
        """A job, its gang, its queue."""
        trial = self.dry_runs[which % len(self.dry_runs)][0]
        there = self.bases[id(trial)][0].all()
        if there:
            job = there[n % len(there)]
            around: list[Watch] = [("ids", job.id), ("queue", job.queue)]
            around += [("queue", (job.queue, pool)) for pool in job.pools]
            around += [("gang", (job.queue, job.gang.id))] * 2 if job.gang else []
            self.watch(trial, around[kind % len(around)])

    def watch(self, trial: DryRun, watch: Watch) -> None:
        """Let *trial* depend on something."""
        trial.depend_on(**{watch[0]: [watch[1]] if watch[0] == "ids" else watch[1]})
        self.bases[id(trial)][1].append(watch)

    @precondition(lambda self: (self.dry_runs or self.left) and self.writer is None)
    @rule(
        which=few,
        n=st.integers(0, 99),
        change=st.sampled_from([*sorted(CHANGES), "delete"]),
        apply=st.booleans(),
    )
    def overtake(self, which: int, n: int, change: str, *, apply: bool) -> None:
        """Change a job that a dry run saw, in one commit, while it may still be applied."""
        trials = [*self.left, *self.dry_runs]
        trials = [each for each in trials if self.bases[id(each[0])][1]] or trials
        trial, overlay = trials[which % len(trials)]
        _, watched = self.bases[id(trial)]
        saw = sorted({id for each in watched for id in members(self.committed, each)})
        if not saw:
            return
        job = self.committed.jobs[saw[n % len(saw)]]
        self.writer = (self.db.write(), self.committed.copy())
        if change == "delete":
            assert self.writer[0].delete_many([job.id]) == self.writer[1].delete_many([job.id])
        else:
            self.put(0, [CHANGES[change](job, n)])
        self.commit()
        if apply:
            self.apply_one(trial, overlay, again=False)

    @precondition(lambda self: self.dry_runs and len(self.left) < 3)
    @rule(which=few)
    def leave_dry_run(self, which: int) -> None:
        """For later."""
        trial, model = self.dry_runs.pop(which % len(self.dry_runs))
        trial.commit()
        self.ended(trial)
        self.left.append((trial, model))

    @precondition(lambda self: (self.dry_runs or self.left) and self.writer is None)
    @rule(which=few, again=st.booleans())
    def apply(self, which: int, *, again: bool) -> None:
        """Open or left: a conflict if it must be, else its changes and no others."""
        there = self.left if which % 2 and self.left else self.dry_runs or self.left
        self.apply_one(*there[which % len(there)], again=again)

    def apply_one(self, trial: DryRun, overlay: JobModel, *, again: bool) -> None:
        """It is as before, or it has ended."""
        self.dry_runs = [each for each in self.dry_runs if each[0] is not trial]
        self.left = [each for each in self.left if each[0] is not trial]
        with suppress(Compared):  # payloads that nobody can compare: it may be asked to
            self.apply_to(trial, overlay, again=again)
        if trial.closed:
            self.ended(trial)
        else:
            self.dry_runs.append((trial, overlay))
        assert self.db.version == self.version

    def apply_to(self, trial: DryRun, overlay: JobModel, *, again: bool) -> None:
        """A conflict exactly if there must be one."""
        base, watched = self.bases[id(trial)]
        written = [(old or new).id for old, new in overlay.diff(base)]  # type: ignore[union-attr]
        now = self.committed
        merged = JobModel({id: job for id, job in now.jobs.items() if id not in written})
        merged.jobs.update((id, overlay.jobs[id]) for id in written if id in overlay.jobs)
        expected: type[Exception] | None = None
        if any(
            seen(base, each) != seen(now, each)
            for each in [*watched, *(("ids", id) for id in written)]
        ):
            expected = Conflict
        elif RunBelongsToOtherJob in refusals({}, merged.all()):
            expected = RunBelongsToOtherJob
        try:
            self.version = self.db.apply(trial)
        except (Conflict, RunBelongsToOtherJob) as error:
            assert type(error) is expected  # noqa: PT017 - either may be right
        else:
            assert expected is None
            self.committed = merged
        if again and expected is None:
            with pytest.raises(TxnClosed):
                self.db.apply(trial)
        elif expected is not None:
            self.left.append((trial, overlay))

    @precondition(lambda self: self.writer is not None)
    @rule()
    def commit(self) -> None:
        """Publish."""
        assert self.writer is not None
        txn, model = self.writer
        self.version += 1
        assert txn.commit() == self.version == self.db.version
        self.committed, self.writer = model, None
        self.ended(txn)

    @precondition(lambda self: self.writer is not None)
    @rule()
    def abort(self) -> None:
        """Drop."""
        assert self.writer is not None
        txn = self.writer[0]
        txn.abort()
        self.writer = None
        self.ended(txn)

    @precondition(lambda self: self.dry_runs)
    @rule(which=few, commit=st.booleans())
    def end_dry_run(self, which: int, *, commit: bool) -> None:
        """Either end publishes nothing."""
        txn, _ = self.dry_runs.pop(which % len(self.dry_runs))
        if commit:
            txn.commit()
        else:
            txn.abort()
        assert self.db.version == self.version
        self.ended(txn)

    def ended(self, txn: Txn) -> None:
        """It says so, and so do its walks."""
        with pytest.raises(TxnClosed):
            txn.get("a")
        with pytest.raises(TxnClosed):
            txn.upsert_many([])
        for walk, _, reader in self.walks:
            if reader is txn:
                with pytest.raises(TxnClosed):
                    next(walk)
        self.walks = [each for each in self.walks if each[2] is not txn]

    @precondition(lambda self: len(self.snapshots) < 5)
    @rule()
    def snapshot(self) -> None:
        """Pin the version of now."""
        self.snapshots.append((self.db.snapshot(), self.committed.copy()))

    @precondition(lambda self: self.snapshots)
    @rule(which=few)
    def drop_snapshot(self, which: int) -> None:
        """In any order."""
        del self.snapshots[which % len(self.snapshots)]

    def put(self, which: int, batch: list[Job]) -> None:
        """All or none, and the error that the model expects."""
        txn, model = self.open_txns()[which % len(self.open_txns())]
        try:
            expected = refusals(model.jobs, batch)
        except Compared:  # one id twice, alike but for a payload: nobody can tell
            expected = [Compared]
        try:
            if len(batch) == 1:
                txn.upsert(batch[0])
            else:
                txn.upsert_many(batch)
        except tuple({*expected}) as error:
            assert type(error) in expected  # noqa: PT017 - one of several is right
        else:
            assert expected == []
            model.upsert_many(batch)

    @precondition(lambda self: self.open_txns())
    @rule(which=few, batch=st.lists(st.tuples(new_jobs, payloads), min_size=1, max_size=4))
    def upsert(self, which: int, batch: list[tuple[Job, object]]) -> None:
        """Rows out of the blue: new, or in place of whatever is there."""
        self.put(
            which,
            [each.replace(payload=payload, version=each.version) for each, payload in batch],
        )

    @precondition(lambda self: self.open_txns())
    @rule(
        which=few,
        batch=st.lists(new_jobs, min_size=8, max_size=25, unique_by=lambda job: job.id),
    )
    def fill(self, which: int, batch: list[Job]) -> None:
        """Many jobs that break no rule, so that structures grow and split."""
        self.put(
            which,
            [
                job.replace(
                    requirements=requirements(),
                    state=JobState.QUEUED,
                    runs=(),
                    version=99,
                )
                for job in batch
                if job.id not in self.open_txns()[which % len(self.open_txns())][1].jobs
            ],
        )

    @precondition(lambda self: self.open_txns())
    @rule(
        which=few,
        changes=st.lists(
            st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 99)), min_size=1, max_size=3
        ),
    )
    def change(self, which: int, changes: list[tuple[str, int]]) -> None:
        """What happens to jobs that are there, some of it twice in a batch."""
        _, model = self.open_txns()[which % len(self.open_txns())]
        jobs = model.all()
        if jobs:
            self.put(which, [CHANGES[name](jobs[n % len(jobs)], n) for name, n in changes])

    @precondition(lambda self: self.open_txns())
    @rule(which=few, bad=st.sampled_from(BAD_JOBS), good=new_jobs, alone=st.booleans())
    def upsert_no_job(
        self, which: int, bad: tuple[Any, type[Exception]], good: Job, *, alone: bool
    ) -> None:
        """Refused whole: what is no job, and jobs with an id, run or gang that has no bytes."""
        txn, model = self.open_txns()[which % len(self.open_txns())]
        one, error = bad
        if alone:
            with pytest.raises(error):
                txn.upsert(one)
        else:
            with pytest.raises((error, *refusals(model.jobs, [good]))):
                txn.upsert_many([good, one])
        assert len(txn) == len(model.jobs)

    @precondition(lambda self: self.open_txns())
    @rule(which=few, at=few, batch=st.lists(st.sampled_from(IDS), max_size=12))
    def upsert_columns(self, which: int, at: int, batch: list[str]) -> None:
        """Jobs by columns, or none of them: an id may be there, or twice."""
        txn, model = self.open_txns()[which % len(self.open_txns())]
        fields: dict[str, Any] = {
            "queue": "beta",
            "requirements": requirements(),
            "submitted_at": at,
            "pools": ("p", "q"),
            "gang": Gang("h", 2),
            "validated": True,
        }
        made = [Job(id=id, **fields) for id in batch]
        expected = refusals(model.jobs, made)
        if expected:
            with pytest.raises(tuple(expected)):
                txn.upsert_columns(ids=batch, **fields)
            assert len(txn) == len(model.jobs)
        else:
            assert txn.upsert_columns(ids=batch, **fields) == len(set(batch))
            model.upsert_many(made)

    @precondition(lambda self: self.open_txns())
    @rule(which=few, ids=st.lists(st.sampled_from(IDS), max_size=8), hostile=st.booleans())
    def delete(self, which: int, ids: list[str], *, hostile: bool) -> None:
        """Known, unknown, twice."""
        txn, model = self.open_txns()[which % len(self.open_txns())]
        given = map(Hostile, ids) if hostile else ids
        assert txn.delete_many(given) == model.delete_many(ids)

    @precondition(lambda self: self.open_txns())
    @rule(which=few, ids=st.lists(st.sampled_from(IDS)), bad=st.sampled_from(BAD_KEYS))
    def delete_bad_key(self, which: int, ids: list[str], bad: tuple[Any, type[Exception]]) -> None:
        """Nothing goes."""
        txn, model = self.open_txns()[which % len(self.open_txns())]
        with pytest.raises(bad[1]):
            txn.delete_many([*ids, bad[0]])
        assert len(txn) == len(model.jobs)

    @precondition(lambda self: self.readers() and len(self.walks) < 6)
    @rule(which=st.integers(0, 9), queue=st.sampled_from(QUEUES), step=few, kind=few)
    def begin_walk(self, which: int, queue: str, step: int, kind: int) -> None:
        """Of the moment, whatever is written later."""
        reader, model = self.readers()[which % len(self.readers())]
        walk, expected = [
            (iter(reader), model.all()),
            (reader.queued(queue), model.queued(queue)),
            (reader.queued(queue, "p"), model.queued(queue, "p")),
            (reader.backing_off(2), model.backing_off(2)),
            (reader.leased(), model.leased()),
        ][kind]
        assert list(islice(walk, step)) == expected[:step]
        self.walks.append((walk, expected[step:], reader))

    @precondition(lambda self: self.walks)
    @rule(which=few)
    def end_walk(self, which: int) -> None:
        """It gives the rest of what there was."""
        walk, expected, _ = self.walks.pop(which % len(self.walks))
        assert list(walk) == expected
        assert list(walk) == []

    @precondition(lambda self: len(self.readers()) > 1)
    @rule(new=st.integers(0, 9), old=st.integers(0, 9))
    def compare_versions(self, new: int, old: int) -> None:
        """A diff of any two, transactions and dry runs among them."""
        newer, new_model = self.readers()[new % len(self.readers())]
        older, old_model = self.readers()[old % len(self.readers())]
        try:
            pairs = new_model.diff(old_model)
        except Compared:  # two payloads at one version: a diff may look, and raise, or need not
            with suppress(Compared):
                newer.diff(older)
            return
        diff = newer.diff(older)
        assert list(diff.pairs()) == pairs
        assert len(diff) == len(pairs)
        assert list(diff.added) == [n.id for o, n in pairs if n and not o]
        assert list(diff.removed) == [o.id for o, n in pairs if o and not n]
        assert list(diff.changed) == [n.id for o, n in pairs if o and n]

    @invariant()
    def one_reader_agrees(self) -> None:
        """In turn, one after each step."""
        readers = [(self.db.snapshot(), self.committed), *self.readers()]
        self.turn += 1
        all_is_well(self.db, *readers[self.turn % len(readers)])

    def teardown(self) -> None:
        """All agree at the end, and nothing is left behind."""
        if not hasattr(self, "db"):
            return
        for each in range(len(self.readers())):
            all_is_well(self.db, *self.readers()[each])
        for txn, _ in self.open_txns():
            txn.abort()
        self.walks.clear()
        self.snapshots.clear()
        self.left.clear()
        all_is_well(self.db, self.db.snapshot(), self.committed)
        memory = self.db.memory()
        assert memory["pinned"] == []
        assert memory["lane_slots"] == len(
            {
                (job.queue, pool)
                for job in self.committed.jobs.values()
                if job.state is JobState.QUEUED
                for pool in job.pools or (None,)
            }
        )
        assert memory["id_slots"] == len(self.committed.jobs)
        assert memory["run_slots"] == sum(len(job.runs) for job in self.committed.jobs.values())


def test_the_job_db_answers_as_a_dict_does() -> None:
    """INV-D1 to INV-D18, through every operation in any order."""
    run_state_machine_as_test(JobDbMachine, settings=settings(deadline=None))


def test_control_small_nodes_make_deep_trees() -> None:
    """What the machine is run over: as many nodes for its few jobs as thousands have elsewhere."""
    nodes = []
    for size in (4, 32):
        db = JobDb(leaf=size, fanout=size)
        with db.write() as txn:
            txn.upsert_many(job(id, submitted_at=n) for n, id in enumerate(IDS))
        memory = db.memory()
        nodes.append((memory["id_nodes"], memory["tree_nodes"]))
        assert db.check(db.snapshot()) == []
    (small_ids, small_trees), (ids, trees) = nodes
    assert small_ids > 3 * ids
    assert small_trees > 5 * trees


def machine_over(kind: type[StandIn]) -> type[JobDbMachine]:
    """The machine, over dbs of *kind*."""
    return type(f"Over{kind.__name__}", (JobDbMachine,), {"make_db": kind})


GENERATED = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # who fails half-way ends nothing
@pytest.mark.parametrize("kind", StandIn.__subclasses__(), ids=lambda kind: kind.__name__)
def test_control_the_machine_finds_what_is_broken(kind: type[StandIn]) -> None:
    """INV-D10 to INV-D18, each broken once, where no checker of one version can see it."""
    # What fails half-way may fail again, of another kind, while it is cleared away.
    with pytest.raises((AssertionError, pytest.fail.Exception, TxnClosed)):
        run_state_machine_as_test(machine_over(kind), settings=GENERATED)
    gc.collect()


def test_control_the_machine_finds_nothing_in_what_is_whole() -> None:
    """The stand-in by itself is a job db."""
    run_state_machine_as_test(machine_over(StandIn), settings=settings(GENERATED, max_examples=20))
