"""Rounds over readers of jobs that are no job db: made on the fly, repeating, gone meanwhile."""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator

import pytest

from kit.crowded_worlds import crowded_world
from kit.jobs import job, jobs, leased
from kit.rounds import CONFIG, POOL, Reader, World, node
from pyresched._core import DominantResourceFairness, RoundWalk
from pyresched.errors import TxnClosed
from pyresched.jobdb import JobDb
from pyresched.model import Job, Requirements, RoundResult
from pyresched.scheduling import RoundState, run_round


class OnTheFly(Reader):
    """Makes each job when it is looked at, and keeps none."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        super().__init__([])
        self.kept = [pickle.dumps(each) for each in jobs]

    def leased(self) -> Iterator[Job]:  # type: ignore[override]
        return (pickle.loads(each) for each in self.kept)  # noqa: S301 - our own bytes


class Twice(Reader):
    """Names what runs twice."""

    def leased(self) -> list[Job]:
        return super().leased() * 2


def decided(world: World, reader: object) -> RoundResult:
    """A round over *world* as *reader* tells it."""
    nodes = world.node_db()
    result, _ = run_round(
        reader,  # type: ignore[arg-type]
        nodes,
        world.queues,
        POOL,
        CONFIG,
        RoundState(),
        world.now,
    )
    return result


def test_what_a_run_asks_for_is_not_mistaken_for_another_that_took_its_place() -> None:
    """Jobs that nobody keeps leave their memory to others; each is still counted as what it is."""
    count = 2000
    world = World().with_nodes(node("n", count * 100, 8192)).with_queues("a")
    runs = (
        leased(job(f"r{n}", 1 + n * 7919 % count, 1, queue="a"), node_id="gone")
        for n in range(count)
    )
    (share,) = decided(world, OnTheFly(runs)).shares
    assert share.actual_share == sum(range(1, count + 1)) / (count * 100)


def test_a_run_that_is_named_twice_is_refused() -> None:
    """It could give its room away twice."""
    world = World().with_nodes(node("n")).with_queues("a", "b")
    world.running(job("r", 4000, 1024, queue="a", priority_class="spot"), "n")
    world.with_jobs(job("u", 4000, 1024, queue="b", priority_class="urgent"))
    with pytest.raises(ValueError, match="job 'r' is twice among those that run"):
        decided(world, Twice(world.jobs.values()))


@pytest.mark.parametrize("kind", ["snapshot", "dry run", "transaction", "rows"])
def test_a_result_outlives_what_it_was_decided_from(kind: str) -> None:
    """Read for the first time when the db has changed, and is gone: the same to the byte."""
    world = crowded_world(151)
    expected = json.dumps(world.round().to_dict())
    db, nodes = world.job_db(), world.node_db()
    reader = {
        "snapshot": db.snapshot,
        "dry run": db.dry_run,
        "transaction": db.write,
        "rows": world.reader,
    }[kind]()
    result = world.round(reader, nodes)
    if kind in {"dry run", "transaction"}:
        with reader:
            reader.delete_many([each.id for each in reader])
    with db.write() as txn:
        txn.delete_many([each.id for each in txn])
        txn.upsert_many(leased(job(f"other-{n}")) for n in range(100))
    del reader, db, nodes, txn
    world.jobs.clear()
    copy = pickle.dumps(result)
    assert json.dumps(result.to_dict()) == expected
    assert json.dumps(pickle.loads(copy).to_dict()) == expected  # noqa: S301 - our own bytes


def walk_of(variants_of: Callable[[Requirements], tuple[()]]) -> RoundWalk:
    """A round that asks *variants_of* once for each kind of request, while it reads."""
    fairness = DominantResourceFairness(node("n").total, [1, 1])
    classes = {each.name: (each.priority, each.preemptible) for each in CONFIG.priority_classes}
    table = World().with_nodes(node("n")).node_db().fork(POOL).table
    return RoundWalk(table, fairness, classes, POOL, variants_of=variants_of)


def test_a_transaction_that_changes_while_it_is_read_is_read_as_it_was() -> None:
    """What was queued when the walk began, to the last job."""
    with JobDb(CONFIG).write() as txn:
        txn.upsert_many(jobs(1000, queue="a"))

        def change(_: Requirements) -> tuple[()]:
            txn.delete_many([each.id for each in txn])
            return ()

        assert walk_of(change).add_queue("a", 1.0, txn.queued("a", POOL)) == 1000
        assert len(txn) == 0


def test_a_transaction_that_ends_while_it_is_read_is_missed() -> None:
    """With the error that whoever reads it on gets."""
    txn = JobDb(CONFIG).write()
    txn.upsert_many(jobs(1000, queue="a"))

    def end(_: Requirements) -> tuple[()]:
        txn.abort()
        return ()

    with pytest.raises(TxnClosed):
        walk_of(end).add_queue("a", 1.0, txn.queued("a", POOL))
