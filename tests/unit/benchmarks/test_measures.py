"""Turns alternate, inputs are fresh, and both contenders do the same work."""

import gc
from contextlib import contextmanager
from itertools import pairwise

import pytest

from measures.idmaps import IdMaps, differences
from measures.jobdbs import JobDbs, loaded
from measures.jobs import KINDS, POOL, JobColumns, leased, tried_once
from measures.keys import Keys
from measures.orders import Orders
from measures.timing import REPETITIONS, medians, timed, turns
from pyresched.model import JobState
from rivals.jobs import PythonJob, native_job


@pytest.fixture(autouse=True)
def _no_checks(monkeypatch):
    """The checkers at each commit would take minutes."""
    monkeypatch.delenv("PYRESCHED_CHECK", raising=False)


def as_native(job):
    """The job as ours, whoever had it."""
    return native_job(job) if isinstance(job, PythonJob) else job


def test_everybody_goes_once_a_turn_and_first_in_turn():
    """With two, they swap; with three, each goes first as often."""
    assert list(turns({"a": None, "b": None}, 3)) == [
        *((0, "a"), (0, "b")),
        *((1, "b"), (1, "a")),
        *((2, "a"), (2, "b")),
    ]
    order = list(turns(dict.fromkeys("abc"), 6))
    assert [next(name for turn, name in order if turn == n) for n in range(6)] == list("abcabc")
    assert all(sorted(name for turn, name in order if turn == n) == list("abc") for n in range(6))


def test_a_task_runs_seven_turns_without_the_collector_and_seven_with_it():
    """Each contender gets a number of turn of its own, and its things back behind it."""
    seen = []

    def contender(name):
        @contextmanager
        def prepared(turn):
            yield lambda: seen.append((name, turn, gc.isenabled()))
            seen.append(("put back", turn, name))

        return prepared

    both = {"ours": contender("ours"), "rival": contender("rival")}
    task = timed("k", 1, both, warm=False)
    task.measure(REPETITIONS)
    work, after = seen[::2], seen[1::2]
    assert REPETITIONS >= 7
    assert [collecting for _, _, collecting in work] == [False] * 14 + [True] * 14
    for name in ("ours", "rival"):
        assert [turn for who, turn, _ in work if who == name] == list(range(14))
    assert [(name, turn) for name, turn, _ in work] == [(name, turn) for _, turn, name in after]
    # No contender goes three times in a row, and none always goes first.
    firsts = [name for (name, turn, _), (_, before, _) in pairwise(reversed(work)) if turn > before]
    assert {"ours", "rival"} == set(firsts)
    assert gc.isenabled()


def test_a_warm_turn_follows_one_of_other_input_that_is_not_counted():
    """By the same contender, with a number of turn that no counted one has."""
    seen = []

    def contender(name):
        @contextmanager
        def prepared(turn):
            work = (lambda: None) if turn >= 0 else (lambda: sum(range(200_000)))
            yield lambda: (seen.append((name, turn)), work())

        return prepared

    both = {"ours": contender("ours"), "rival": contender("rival")}
    (reading,) = timed("k", 1, both).measure(3)
    assert [name for name, _ in seen[::2]] == [name for name, _ in seen[1::2]]
    assert [turn for _, turn in seen[::2]] == [-1 - turn for _, turn in seen[1::2]]
    assert max(reading.ours, reading.theirs) < 1e-4


def test_medians_are_of_the_timed_work_alone():
    """What is prepared and put back costs nobody anything."""

    @contextmanager
    def idle(_):
        sum(range(300_000))
        yield lambda: None
        sum(range(300_000))

    @contextmanager
    def busy(_):
        yield lambda: sum(range(300_000))

    taken = medians({"idle": idle, "busy": busy}, repetitions=3, collecting=False)
    assert taken["idle"] * 10 < taken["busy"]


def test_keys_are_new_objects_each_time():
    """Equal text, no object twice, not even within one batch."""
    keys = Keys(100)
    batches = [keys.fresh(range(100)) for _ in range(3)]
    assert batches[0] == batches[1] == batches[2]
    assert len(set(batches[0])) == 100
    assert len({id(key) for batch in batches for key in batch}) == 300
    assert keys.buffer(slice(10, 12)).decode() == "".join(batches[0][10:12])


def test_picks_move_on():
    """Turn by turn through all numbers, round at the end, any size up to all."""
    keys = Keys(10)
    picks = [keys.pick(turn, 4, below=10) for turn in range(5)]
    assert sorted(n for pick in picks for n in pick) == sorted(2 * [*range(10)])
    assert all(len(set(pick)) == 4 for pick in picks)
    assert sorted(keys.pick(3, 10, below=10)) == list(range(10))


@pytest.mark.parametrize(
    "make",
    [
        lambda: IdMaps(1_000, lookups=512, inserts=20, loads=True),
        lambda: JobDbs(1_000, lookups=512, singles=20),
    ],
    ids=["ids", "jobs"],
)
def test_contenders_never_see_a_key_object_twice(monkeypatch, make):
    """Every turn of every task cuts its keys anew, and at least as many as it uses."""
    given = []

    def fresh(self, numbers):
        texts = plain(self, numbers)
        given.extend(texts)  # kept alive, so that no address comes back
        return texts

    plain = Keys.fresh
    monkeypatch.setattr(Keys, "fresh", fresh)
    for task in make().tasks():
        if "snapshot" in task.kind or task.kind.split()[-1] == "commit" or "walk" in task.kind:
            continue
        task.measure(1)
        before = len(given)
        task.measure(2)
        turns_of_all = 2 * 2 * (1 + len(task.rivals))
        assert len(given) - before >= turns_of_all * 20, task.kind
    assert len({id(text) for text in given}) == len(given)


def test_both_kinds_of_job_are_the_same_jobs():
    """Field by field, and after the same changes."""
    columns = JobColumns(400)
    ours, python = (columns.of(who, range(400)) for who in KINDS)
    assert [native_job(job) for job in python] == ours
    assert [as_native(leased(job, 3)) for job in python] == [leased(job, 3) for job in ours]
    tried = [[as_native(tried_once(j, "run", "node")) for j in jobs] for jobs in (ours, python)]
    assert tried[0] == tried[1]
    assert {job.state for job in tried[0]} == {JobState.QUEUED}


def test_the_columns_are_the_same_jobs():
    """What the rival makes of the buffers is what it gets as values."""
    columns = JobColumns(400)
    made = columns.python_from_buffers(columns.buffers())
    assert made == columns.of("python", range(400))


def test_jobs_are_as_announced():
    """Three resources, one in ten in a gang, whose members are of one queue."""
    jobs = JobColumns(4_000).of("ours", range(4_000))
    gangs = {}
    for job in jobs:
        if job.gang:
            gangs.setdefault(job.gang, []).append(job)
    assert {len(tuple(job.requirements.resources)) for job in jobs} == {3}
    assert len(jobs) == 10 * sum(map(len, gangs.values()))
    assert all(len(members) == gang.cardinality for gang, members in gangs.items())
    assert all(len({job.queue for job in members}) == 1 for members in gangs.values())
    assert {job.pools for job in jobs} == {(POOL,), (POOL, "gpu"), ("gpu",)}


def test_gangs_of_two_are_half_as_many():
    """Every job is in one."""
    jobs = JobColumns(400, gang_size=2).of("ours", range(400))
    assert len({job.gang.id for job in jobs}) == 200


def test_both_dbs_walk_the_same_queues():
    """The walk that is timed meets the same jobs in the same order."""
    columns = JobColumns(2_000)
    ours, python = (loaded(who, columns).snapshot() for who in KINDS)
    filtering = python.queue_lanes()
    for queue in columns.queues:
        ids = [job.id for job in ours.queued(queue, POOL)]
        assert ids
        assert ids == [job.id for job in python.queued(queue, POOL)]
        assert ids == [job.id for job in filtering.queued(queue, POOL)]


def test_tasks_leave_the_dbs_as_they_were():
    """What a turn changes is put back behind it."""
    dbs = JobDbs(1_000, lookups=512, singles=20)
    before = list(dbs.full["ours"].snapshot())
    for task in dbs.tasks():
        task.measure(1)
    for db in dbs.full.values():
        assert [as_native(job) for job in db.snapshot()] == before


def test_the_rival_finds_the_same_differences():
    """As does the structural diff of ours."""
    maps = IdMaps(1_000, lookups=256, inserts=10, loads=True)
    index, persistent = maps.full["ours"], maps.full["immutables"]
    old = index.snapshot()
    ids, new = maps.keys.fresh(range(1_010)), persistent
    with index.write() as txn:
        txn.set_many(ids[5:9], [-1] * 4)
        txn.set_many(ids[1_000:1_002], [1, 2])
        txn.delete_many(ids[:3])
    new = persistent.update(dict.fromkeys(ids[5:9], -1)).update({ids[1_000]: 1, ids[1_001]: 2})
    for id in ids[:3]:
        new = new.delete(id)
    expected = [sorted(each) for each in differences(new, persistent)]
    assert [sorted(each) for each in index.snapshot().diff(old)] == expected
    assert list(map(len, expected)) == [4, 2, 3]


def test_ordered_structures_are_as_they_were_after_each_turn():
    """Keys added are taken out, keys taken out are put back."""
    orders = Orders(200, changes=20)
    before = {
        name: list(full if name != "ours" else full.snapshot().items())
        for name, full in orders.full.items()
    }
    for task in orders.tasks():
        if task.kind == "ordered remove":
            continue  # adds first and removes the same
        task.measure(2)
    after = {
        name: list(full if name != "ours" else full.snapshot().items())
        for name, full in orders.full.items()
    }
    assert after == before
