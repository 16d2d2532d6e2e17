"""Whole rounds over a store: from an empty cluster, and over one that is full."""

import pytest

from pyresched.config import SchedulingConfig
from pyresched.jobdb import JobDb
from pyresched.model import PoolName
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round
from workloads import jobs, nodes, queues

CONFIG = SchedulingConfig()
POOL = PoolName("default")


def cluster(job_count, node_count, queue_count):
    db = JobDb(CONFIG)
    with db.write() as txn:
        txn.upsert_many(jobs(job_count, in_queues=queue_count, config=CONFIG))
    return db.snapshot(), NodeDb(CONFIG, nodes(node_count, config=CONFIG)), queues(queue_count)


@pytest.mark.benchmark(group="round: from an empty cluster")
@pytest.mark.parametrize("shape", [(1_000, 100, 10), (10_000, 1_000, 50)], ids=str)
def test_round(benchmark, shape):
    """As many jobs placed as there is room for; the last shape leaves some waiting."""
    snapshot, node_db, by_name = cluster(*shape)
    result, _ = benchmark(run_round, snapshot, node_db, by_name, POOL, CONFIG, RoundState(), now=0)
    assert len(result.scheduled) + len(result.refused) == shape[0]
