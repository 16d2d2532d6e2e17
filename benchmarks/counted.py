"""What `instructions.py` counts: each scenario prepares its input and returns the work to count.

A scenario is small (callgrind is about fifty times slower than the processor), fixed (no
clock, no seed of the process) and repeats its path often enough to drown what is around it.
Imports stand inside, so that a scenario that an older package cannot run is left out alone.
"""

from collections.abc import Callable

from workloads import histories, job_ids, jobs, nodes, queues, retry_policies, spread

__all__ = ["SCENARIOS"]

Work = Callable[[], object]


def vectors() -> Work:
    """2,000 sums and fit checks."""
    from pyresched.model import ResourceVector

    one, other = ResourceVector((1000, 2**34, 1)), ResourceVector((500, 2**33, 0))

    def work() -> None:
        for _ in range(2_000):
            (one + other).fits_in(one)

    return work


def costs() -> Work:
    """20 calls for the costs of 500 queues."""
    from pyresched.fairness import DominantResourceFairness
    from pyresched.model import ResourceVector

    total = (64_000_000, 2**48, 4_096)
    fairness = DominantResourceFairness(ResourceVector(total), (1.0, 1.0, 1.0))
    allocations = [ResourceVector([spread(n) % each for each in total]) for n in range(500)]

    def work() -> None:
        for _ in range(20):
            fairness.unweighted_costs(allocations)

    return work


def id_index_batches() -> Work:
    """4,000 ids in by one transaction, looked up in one call, half of them out by another."""
    from pyresched.indices import IdIndex

    ids = job_ids(4_000)

    def work() -> None:
        index = IdIndex(seed=(1, 2))
        with index.write() as txn:
            txn.set_many(ids, range(len(ids)))
        index.snapshot().get_many(ids)
        with index.write() as txn:
            txn.delete_many(ids[::2])

    return work


def id_index_versions() -> Work:
    """500 versions of one change each, every tenth kept, and the diff of the first and the last."""
    from pyresched.indices import IdIndex

    ids = job_ids(4_000)
    index = IdIndex(seed=(1, 2))
    with index.write() as txn:
        txn.set_many(ids, range(len(ids)))

    def work() -> None:
        kept = [index.snapshot()]
        for n, id in enumerate(ids[:500]):
            index.set(id, -n)
            if n % 10 == 0:
                kept.append(index.snapshot())
        index.snapshot().diff(kept[0])

    return work


def ordered_index() -> Work:
    """4,000 keys in by one transaction, a walk, then 500 versions that pop and put back."""
    from pyresched.indices import OrderedIndex

    keys = [(spread(n) % 3, spread(n + 1) % 100, n) for n in range(4_000)]

    def work() -> None:
        index = OrderedIndex()
        with index.write() as txn:
            txn.add_many(keys, range(len(keys)))
        for _ in index.snapshot():
            pass
        for _ in range(500):
            key, value = index.pop_first()
            index.add(key, value)

    return work


def job_rows() -> Work:
    """500 jobs moved on by one version."""
    from pyresched.config import SchedulingConfig
    from pyresched.model import JobState

    rows = jobs(500, in_queues=10, config=SchedulingConfig())

    def work() -> None:
        for job in rows:
            job.replace(state=JobState.LEASED)

    return work


def job_store() -> Work:
    """2,000 jobs in, 200 versions of one changed row, a walk of each queue."""
    from pyresched.config import SchedulingConfig
    from pyresched.jobdb import JobDb

    config = SchedulingConfig()
    rows = jobs(2_000, in_queues=10, config=config)
    changed = [job.replace(priority=7) for job in rows[:200]]

    def work() -> None:
        db = JobDb(config, seed=bytes(16))
        with db.write() as txn:
            txn.upsert_many(rows)
        for job in changed:
            with db.write() as txn:
                txn.upsert(job)
        snapshot = db.snapshot()
        for queue in snapshot.queues():
            for _ in snapshot.queued(queue):
                pass

    return work


def node_search() -> Work:
    """500 jobs of four shapes placed on 151 nodes in one call and one by one, and taken back."""
    from pyresched._core import use_portable_scan
    from pyresched.config import SchedulingConfig
    from pyresched.nodedb import NodeDb

    config = SchedulingConfig()
    table = NodeDb(config, nodes(151, config=config)).fork("default").table
    rows = jobs(500, in_queues=1, config=config)
    ids, requests = [job.id for job in rows], [job.requirements for job in rows]

    def work() -> None:
        use_portable_scan(portable=True)  # the other one depends on the processor
        mark = table.begin()
        table.place_each(ids, requests, 1000, preemptible=False)
        table.undo(mark)
        mark = table.begin()
        for job in rows[:200]:
            found = table.find_for(job.requirements, 1000)
            if found is not None:
                table.bind(job.id, job.requirements, found[0], 1000, preemptible=False)
        table.fork()
        table.undo(mark)
        use_portable_scan(portable=False)

    return work


def a_round() -> Work:
    """2,000 jobs of ten queues onto 100 nodes, of which most stay waiting."""
    from pyresched.config import SchedulingConfig
    from pyresched.jobdb import JobDb
    from pyresched.model import PoolName
    from pyresched.nodedb import NodeDb
    from pyresched.scheduling import RoundState, run_round

    config = SchedulingConfig()
    db = JobDb(config, seed=bytes(16))
    with db.write() as txn:
        txn.upsert_many(jobs(2_000, in_queues=10, config=config))
    snapshot, by_name = db.snapshot(), queues(10)
    node_db = NodeDb(config, nodes(100, config=config))

    def work() -> None:
        run_round(snapshot, node_db, by_name, PoolName("default"), config, RoundState(), now=0)

    return work


def retries() -> Work:
    """20 calls for the verdicts of 2,000 failed runs under three policies, and 2,000 histories."""
    from pyresched.model import RescheduleTracker
    from pyresched.reschedule import next_many

    trackers, policies = histories(2_000), retry_policies(2_000)
    failed_at = [10**12 + n for n in range(2_000)]

    def work() -> None:
        for _ in range(20):
            next_many(policies, trackers, failed_at)
        for policy, tracker in zip(policies, trackers, strict=True):
            (tracker or RescheduleTracker()).extended(
                policy, now=10**12, previous_run="run", previous_node="node", delay=5
            )

    return work


SCENARIOS: dict[str, Callable[[], Work]] = {
    "resource vectors": vectors,
    "costs of queues": costs,
    "id index, batches": id_index_batches,
    "id index, versions": id_index_versions,
    "ordered index": ordered_index,
    "job rows": job_rows,
    "job store": job_store,
    "node search": node_search,
    "round": a_round,
    "retries": retries,
}
