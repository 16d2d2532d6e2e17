"""What grows when it should not: each cycle of use is run in an interpreter of its own.

`python -m kit.leaks NAME CYCLES` prints by how many bytes the heap has grown over that many
cycles. Run it with `PYTHONMALLOC=malloc`, so that objects of Python and
nodes of the core come from one heap, whose bytes in use the C library counts exactly.
"""

import ctypes
import gc
import pickle
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

from kit.crowded_worlds import crowded_world
from kit.jobs import backing_off, ended, gang, job, jobs, leased, requeued, requirements, run
from kit.nodes import Pairs, node, node_config
from pyresched.errors import Conflict, PyreschedError, ReadOnly, TxnClosed, WriterBusy
from pyresched.indices import IdIndex, OrderedIndex
from pyresched.jobdb import JobDb, Order
from pyresched.model import (
    Constraint,
    Gang,
    Job,
    Node,
    Operator,
    Outcome,
    RoundResult,
    Spread,
)
from pyresched.nodedb import NodeDb, NodeFork

__all__ = ["CYCLES", "can_count", "grown"]

WARM_UP = 6
SPANS = 4


class _MallInfo(ctypes.Structure):
    """What mallinfo2 of the GNU C library gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


_mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)


def can_count() -> bool:
    """Whether this C library tells how much of its heap is in use."""
    return _mallinfo is not None


def _bytes_in_use() -> int:
    """Of the heap, mapped blocks included, once what can be collected is gone."""
    assert _mallinfo is not None
    gc.collect()
    _mallinfo.restype = _MallInfo
    told = _mallinfo()
    return int(told.uordblks + told.hblkhd)


def _full(**how: int) -> JobDb:
    """A db with something in every index."""
    db = JobDb(seed=bytes(16), **how)  # type: ignore[arg-type]
    with db.write() as txn:
        txn.upsert_many(jobs(150, pools=("a", "b")))
        txn.upsert_many(map(leased, jobs(40, prefix="l" * 30)))
        txn.upsert_many(backing_off(leased(each)) for each in jobs(40, prefix="w"))
        txn.upsert_many(gang("g", size=9, validated=False))
    return db


def _stir(txn) -> None:
    """Some of every kind of change; twice is as good as once."""
    txn.upsert_many(leased(each) for each in list(txn.queued("queue-a", "a"))[::3])
    txn.upsert_many(
        backing_off(each, reason="again and again") for each in list(txn.leased())[::2] if each.runs
    )
    txn.upsert_many(requeued(leased(each)) for each in list(txn.queued("queue-a"))[1::9])
    txn.delete_many([each.id for each in list(txn)[::4]])
    txn.upsert_many(jobs(30, prefix="n" * 20, queue="queue-b", payload=bytearray(9)))


def whole_lives() -> Callable[[], None]:
    """Jobs that come, run, fail, wait, run, end and are deleted, one commit each."""
    db = _full()

    def cycle() -> None:
        one = job("life", queue="queue-c", gang=Gang("of-life", 2), payload={"a": [1]})
        for step in (
            one,
            one := leased(one),
            one := backing_off(one),
            one := requeued(one),
            one := leased(one),
            ended(one),
        ):
            with db.write() as txn:
                txn.upsert(step)
        with db.write() as txn:
            txn.delete_many(["life"])

    return cycle


def batches(**how: int) -> Callable[[], None]:
    """Many jobs in and out again."""
    db = _full(**how)

    def cycle() -> None:
        with db.write() as txn:
            txn.upsert_many(map(leased, jobs(100, prefix="in and out and in again")))
        with db.write() as txn:
            txn.delete_many(each.id for each in jobs(100, prefix="in and out and in again"))

    return cycle


def aborts() -> Callable[[], None]:
    """By hand, by an exception, and by letting go."""
    db = _full()
    warnings.simplefilter("ignore", ResourceWarning)

    def cycle() -> None:
        txn = db.write()
        _stir(txn)
        txn.abort()
        with suppress(ZeroDivisionError), db.write() as txn:
            _stir(txn)
            raise ZeroDivisionError
        txn = db.write()
        _stir(txn)
        del txn

    return cycle


def dry_runs() -> Callable[[], None]:
    """Ended in every way, beside commits and each other."""
    db = _full()

    def cycle() -> None:
        runs = [db.dry_run() for _ in range(3)]
        for dry in runs:
            _stir(dry)
        with db.write() as txn:
            txn.upsert(txn["w-000000"].replace(reason="beside"))
        runs[0].commit()
        runs[1].abort()

    return cycle


def snapshots() -> Callable[[], None]:
    """A window of versions held, let go out of order, while everything changes."""
    db = _full()
    held = [db.snapshot() for _ in range(4)]
    first = list(db.snapshot())

    def cycle() -> None:
        for n in (2, 0, 3, 1):
            with db.write() as txn:
                _stir(txn)
            held[n] = db.snapshot()
        with db.write() as txn:
            txn.delete_many([each.id for each in txn])
            txn.upsert_many(first)

    return cycle


def walks() -> Callable[[], None]:
    """Left half-way: of snapshots, of transactions that change or end meanwhile."""
    db = _full()

    def cycle() -> None:
        snap, txn = db.snapshot(), db.write()
        begun = [
            walk
            for reader in (snap, txn)
            for walk in (
                iter(reader),
                reader.leased(),
                reader.unvalidated(),
                reader.backing_off(5),
                reader.queued("queue-a"),
                reader.queued("queue-a", "a"),
                reader.queued("queue-a", "a", Order.MARKET),
            )
        ]
        for walk in begun:
            next(walk, None)
        _stir(txn)
        for walk in begun[::2]:
            next(walk, None)
        txn.abort()
        for walk in begun[1::2]:
            with suppress(TxnClosed):
                next(walk, None)

    return cycle


def reads() -> Callable[[], None]:
    """Every question, answered and refused."""
    db = _full()
    with db.write() as txn:
        old = db.snapshot()
        _stir(txn)

    def cycle() -> None:
        snap = db.snapshot()
        snap.get("l" * 30 + "-000001")
        snap.get_many([f"w-{n:06}" for n in range(300)])
        snap.by_run("w-000001/run-1")
        snap.gang("queue-a", "g")
        snap.queues()
        snap.queue_length("queue-a")
        diff = snap.diff(old)
        (diff.changed, diff.added, diff.removed, repr(diff))
        db.check(snap)
        for wrong in (7, None, "", "x" * 256, "\ud800"):
            with suppress(TypeError, ValueError):
                snap.get(wrong)
            with suppress(TypeError, ValueError):
                snap.get_many(["a", wrong])
            with suppress(TypeError, ValueError):
                snap.gang("queue-a", wrong)
        with suppress(KeyError):
            snap["nobody"]
        with suppress(ReadOnly):
            snap.upsert(job())
        with suppress(ValueError):
            snap.diff(_other.snapshot())

    return cycle


_other = JobDb()


def refusals() -> Callable[[], None]:
    """Batches that are refused at their end."""
    db = _full()
    bad = [
        "no job",
        job("x" * 256),
        job("\ud800"),
        job("b", priority_class="none"),
        job("b", runs=(run("r"), run("r"))),
        leased(job("b"), run_id="w-000001/run-1"),
        job("b", gang=Gang("\ud800", 2)),
        job("w-000001", gang=None),
        job("new-000001", priority=4),
    ]

    def cycle() -> None:
        txn = db.write()
        for each in bad:
            with suppress(TypeError, ValueError, PyreschedError):
                txn.upsert_many([*jobs(20, prefix="new"), each])
            with suppress(TypeError, ValueError, PyreschedError):
                txn.upsert(each)
        with suppress(TypeError, ValueError):
            txn.delete_many(["w-000001", 7])
        with suppress(WriterBusy):
            db.write(timeout=0)
        txn.abort()
        with suppress(TxnClosed):
            txn.upsert(job())

    return cycle


def applied() -> Callable[[], None]:
    """Dry runs that are applied, refused for what they wrote or depend on, and tried again."""
    db = _full()
    first = list(db.snapshot())

    def cycle() -> None:
        one, other, late = db.dry_run(), db.dry_run(), db.dry_run()
        for trial in (one, other):
            trial.depend_on(ids=["w-000000"], gang=("queue-a", "g"), queue="queue-b")
            _stir(trial)
        late.depend_on(queue=("queue-a", "a"))
        db.apply(one)
        for trial in (other, late, other):
            with suppress(Conflict):
                db.apply(trial)
        for bad in (one, db.snapshot(), _other.dry_run()):
            with suppress(TxnClosed, TypeError, ValueError):
                db.apply(bad)
        with db.write() as txn:
            txn.delete_many([each.id for each in txn])
            txn.upsert_many(first)

    return cycle


def columns() -> Callable[[], None]:
    """Columns in and out, as they should be and refused."""
    import numpy as np  # the others need not wait for it

    db = _full()
    ids = [f"of a column of its own {n}" for n in range(100)]
    cells = np.array(ids, dtype="S40")
    codes = np.arange(100, dtype=np.int32) % 2
    right: dict[str, Any] = {
        "ids": cells,
        "submitted_at": np.arange(100),
        "queue": (codes, ["a", "b"]),
        "requirements": job().requirements,
        "pools": (codes, [("p",), ("p", "q")]),
        "gang": (codes - 1, [Gang("in columns", 50)]),
        "payload": [[n] for n in range(100)],
    }
    wrong = [
        {"ids": [*ids[:99], ""]},
        {"ids": [*ids[:99], ids[0]]},
        {"ids": [*ids[:99], "w-000001"]},
        {"queue": (codes + 1, ["a", "b"])},
        {"submitted_at": np.arange(99)},
        {"payload": [1]},
    ]

    def cycle() -> None:
        with db.write() as txn:
            txn.upsert_columns(**right)
            txn.columns("state", "priority")
        snap = db.snapshot()
        snap.columns("state", "runs", "leased_at", ids=cells)
        with suppress(ValueError):
            snap.columns("none")
        with suppress(TypeError, ValueError):
            snap.columns("state", ids=[*ids, 7])
        with db.write() as txn:
            txn.delete_many(ids)
            for each in wrong:
                with suppress(TypeError, ValueError):
                    txn.upsert_columns(**{**right, **each})
            txn.delete_many(ids)

    return cycle


def whole_dbs() -> Callable[[], None]:
    """Made, filled and dropped, some with readers and writers that outlive their name."""
    warnings.simplefilter("ignore", ResourceWarning)

    def cycle() -> None:
        db = _full(hash_bits=3)
        snap, walk, dry = db.snapshot(), db.snapshot().leased(), db.dry_run()
        _stir(dry)
        txn = db.write()
        _stir(txn)
        next(walk)
        db.mine = snap
        del db, txn

    return cycle


def values() -> Callable[[], None]:
    """Jobs and runs by themselves."""

    def cycle() -> None:
        for _ in range(20):
            one = backing_off(leased(job("v", payload=[1], gang=Gang("g", 2)), at=3), reason="why")
            copy: Job = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own bytes
            assert copy == one
            assert hash(copy.runs[0]) == hash(one.runs[0])
            (repr(one), one.as_dict(), one.active_run, one.runs[0].replace(reason="other"))
            with suppress(TypeError, ValueError):
                one.replace(priority=-1)
            with suppress(TypeError, ValueError):
                job("v", runs=(1,), queue=None)  # type: ignore[arg-type]
            with suppress(TypeError, ValueError):
                run(ended_at=1, outcome=None)
            with suppress(TypeError, ValueError):
                run(outcome=Outcome.LOST)

    return cycle


def dead_writers() -> Callable[[], None]:
    """Threads that end with a transaction open."""
    db = _full()
    warnings.simplefilter("ignore", ResourceWarning)

    def cycle() -> None:
        left = []

        def leave() -> None:
            left.append(db.write())
            _stir(left[0])

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        with db.write() as txn:
            txn.upsert(txn["w-000000"].replace(reason="after"))

    return cycle


def indices() -> Callable[[], None]:
    """The two structures by themselves."""
    ids, order = IdIndex(), OrderedIndex()

    def cycle() -> None:
        keys = [f"a key that is long enough to lie elsewhere: {n}" for n in range(200)]
        with ids.write() as many, order.write() as ordered:
            many.set_many(keys, range(200))
            ordered.add_many([(n * 7 % 200, n) for n in range(200)], range(200))
        kept = ids.snapshot(), order.snapshot()
        with ids.write() as many, order.write() as ordered:
            many.delete_many(keys)
            ordered.remove_many([(n * 7 % 200, n) for n in range(200)])
        iter(kept[0]), iter(kept[1])
        kept[0].diff(ids.snapshot())

    return cycle


def _row(n: int, turn: int = 0) -> Node:
    """A node of a zone and a rack; the rack is another one at each turn."""
    return node(f"n-{n:03}", labels={"zone": f"z{n % 3}", "rack": f"r{(n + turn) % 7}"})


def _full_nodes() -> NodeDb:
    """Nodes and what runs hold of most of them, and of some that are not there."""
    db = NodeDb(node_config(0, 10, 1000, preemptible=[0, 10]), map(_row, range(120)))
    db.advance(Pairs.added(_runs(90)))
    return db


def _runs(count: int, start: int = 0) -> list[Job]:
    return [
        leased(
            job(f"held-{n}", priority_class="p10"), node_id=f"n-{n * 7 % 130:03}", priority=n % 4
        )
        for n in range(start, start + count)
    ]


_HOSTS = Constraint("", Operator.DISTINCT_HOSTS)
_ASKED = [
    requirements(n % 5 * 900 + 100, 512, priority_class="p10", scope=f"s{n % 4}", **how)
    for n in range(12)
    for how in (
        {},
        {"constraints": (_HOSTS, Constraint("zone", Operator.IN, ("z0", "z1")))},
        {"spread": (Spread("rack", 50), Spread("zone", 20, (("z1", 70),)))},
    )
]


def node_lives() -> Callable[[], None]:
    """Nodes that come, change and go; runs that follow them, end, or have no node meanwhile."""
    db = _full_nodes()

    def cycle() -> None:
        db.upsert_many(_row(n, 1) for n in range(0, 120, 9))
        db.upsert_many(node(f"late-{n}", 4000, 4000, max_jobs=n) for n in range(40))
        db.remove_many(f"n-{n:03}" for n in range(0, 120, 2))
        db.advance(Pairs.added(_runs(60, start=90)))
        db.fork("default").find(_ASKED[1], 1000)
        db.upsert_many(_row(n) for n in range(120))
        db.advance(Pairs(*((each, None) for each in _runs(60, start=90))))
        db.remove_many(f"late-{n}" for n in range(40))
        assert db.check() == []

    return cycle


def _decide(fork: NodeFork, prefix: str) -> None:
    """Attempts in attempts, kept and taken back, and every question."""
    for n, asked in enumerate(_ASKED):
        with fork.attempt() as attempt:
            mine = [job(f"{prefix}-{n}-{i}", priority_class="p10") for i in range(4)]
            attempt.place([each.replace(requirements=asked) for each in mine], priority=n)
            there = [(id, fork.binding(id)) for id in fork.bound(f"n-{n * 7 % 120:03}")]
            attempt.evict_many(id for id, held in there if held and not held.evicted)
            with fork.attempt() as inner:
                inner.unbind_many(each.id for each in mine[:2])
                inner.keep()
            found = fork.find(asked, 1000, avoid=[("n-001", 2)], only=["n-001", "n-002"])
            (
                bool(found),
                fork.place_many(asked, 9, 1000),
                fork.victims(asked, 1000, fork.bound("n-014")),
            )
            refused = fork.not_found(requirements(10**9, 1, priority_class="p10"), 0)
            (refused.reason, refused.excluded, repr(refused))
            if n % 2:
                attempt.keep()


def node_forks() -> Callable[[], None]:
    """Forks and forks of forks, each decided on and let go."""
    db = _full_nodes()

    def cycle() -> None:
        fork = db.fork("default")
        _decide(fork, "one")
        _decide(fork.fork(), "two")
        _decide(db.bare("default"), "three")

    return cycle


def node_tables() -> Callable[[], None]:
    """One table for all: levels, requirements and handles that come and are forgotten; refusals."""
    fork = _full_nodes().fork("default")
    table = fork.table

    def cycle() -> None:
        for n, asked in enumerate(_ASKED):
            table.hold(f"once-{n}", asked, f"n-{n:03}", n, preemptible=True, pool=f"pool-{n % 3}")
            table.find_for(asked, n)
            with suppress(PyreschedError):
                table.bind(f"once-{n}", asked, "n-000", n, preemptible=True)
            with suppress(PyreschedError):
                table.place_each(["twice", "twice"], [asked] * 2, n, preemptible=True)
            with suppress(PyreschedError):
                table.victims_for(asked, n, ["nobody"])
            with suppress(PyreschedError):
                table.bind("bad", requirements(1, 1, 1), "n-000", n, preemptible=True)
        table.set_kinds(table.matcher.types)
        for n in range(len(_ASKED)):
            table.drop(f"once-{n}")
        table.drop("twice")
        table.drop_unused_shapes()
        with suppress(PyreschedError):
            table.set_nodes(("b", "a"), [], b"")
        assert fork.check() == []

    return cycle


def _rounds(*seeds: int) -> list[Callable[[], RoundResult]]:
    """Rounds over crowded nodes: each over a snapshot, over a dry run and over plain rows."""
    made = []
    for seed in seeds:
        world = crowded_world(seed)
        nodes, db = world.node_db(), world.job_db()
        made += [
            partial(world.round, db.snapshot(), nodes),
            lambda world=world, nodes=nodes, db=db: world.round(db.dry_run(), nodes),
            partial(world.round, world.reader(), nodes),
        ]
    return made


def rounds() -> Callable[[], None]:
    """Rounds with victims, gangs and labels, read in every way or not at all."""
    decide = _rounds(151, 163, 170)

    def cycle() -> None:
        for each in decide:
            result = each()
            ids = list(result.scheduled)
            (result.to_dict(), result.shares, result.refused_by_code(), result.scheduled[:2], ids)
            pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
            each()

    return cycle


def rounds_without_memory() -> Callable[[], None]:
    """Rounds that run out of memory at one place after the other, where a build can do that."""
    decide = _rounds(151)[0]
    try:
        from pyresched._core import selftest  # not in every build
    except ImportError:
        return lambda: None

    def cycle() -> None:
        for after in range(150):
            selftest.let_allocations_fail(after)
            with suppress(MemoryError):
                decide()
            selftest.let_allocations_fail(-1)

    return cycle


def _keeps(make: Callable[[], object]) -> Callable[[], Callable[[], None]]:
    """A cycle that lets nothing go of what it makes."""
    kept: list[object] = []
    return lambda: lambda: kept.extend(make() for _ in range(20))


# What must be seen to grow, or no test of growth means a thing.
_CONTROLS = {
    "objects": _keeps(object),
    "jobs": _keeps(job),
    "snapshots": _keeps(_other.snapshot),
    "native memory": _keeps(lambda: ctypes.CDLL(None).malloc(16)),
}
CYCLES: dict[str, Callable[[], Callable[[], object]]] = {
    "whole lives": whole_lives,
    "batches": batches,
    "batches that collide": lambda: batches(hash_bits=2),
    "aborts": aborts,
    "dry runs": dry_runs,
    "snapshots": snapshots,
    "walks": walks,
    "reads": reads,
    "refusals": refusals,
    "applied": applied,
    "columns": columns,
    "whole dbs": whole_dbs,
    "values": values,
    "dead writers": dead_writers,
    "indices": indices,
    "node lives": node_lives,
    "node forks": node_forks,
    "node tables": node_tables,
    "rounds": rounds,
    "rounds without memory": rounds_without_memory,
    **{f"control: {name}": control for name, control in _CONTROLS.items()},
}


def grown(name: str, cycles: int) -> int:
    """By how many bytes the heap grows over *cycles* at least, of some such spans in a row.

    What leaks grows in each of them; caches and pools are full after the first few.
    """
    cycle = CYCLES[name]()
    sizes = []
    for _ in range(WARM_UP + SPANS):
        for _ in range(cycles):
            cycle()
        sizes.append(_bytes_in_use())
    return min(after - before for before, after in pairwise(sizes[WARM_UP - 1 :]))


def pinned(commits: int) -> list[int]:
    """Bytes of a db of 4,000 jobs, of it and a snapshot of it after *commits* that change all of
    them, and of it without the snapshot.
    """
    empty = _bytes_in_use()
    db = JobDb(seed=bytes(16))
    with db.write() as txn:
        txn.upsert_many(jobs(4000, pools=("p", "q")))
    sizes = [_bytes_in_use() - empty]
    snap = db.snapshot()
    for n in range(commits):
        with db.write() as txn:
            one = txn[f"job-{n * 7 % 4000:06}"]
            txn.upsert(one.replace(priority=n % 50, reason=f"for the {n}th time"))
    sizes.append(_bytes_in_use() - empty)
    del snap
    sizes.append(_bytes_in_use() - empty)
    return sizes


if __name__ == "__main__":
    if sys.argv[1] == "pinned":
        print(*pinned(int(sys.argv[2])))  # noqa: T201 - its answer
    else:
        print(grown(sys.argv[1], int(sys.argv[2])))  # noqa: T201 - its answer
