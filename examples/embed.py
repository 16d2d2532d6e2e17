"""Decide in your own program: jobs and nodes in memory, a round, its decisions written back."""

from itertools import count
from pathlib import Path

from pyresched.config import load_config, load_nodes
from pyresched.jobdb import JobDb
from pyresched.leasing import grant
from pyresched.model import Queue
from pyresched.nodedb import NodeDb
from pyresched.scheduling import RoundState, run_round
from pyresched.spec import expand, load_spec

here = Path(__file__).parent
config = load_config(here / "pyresched.toml")
jobs, nodes = JobDb(config), NodeDb(config, load_nodes(here / "nodes.yaml", config))
queues = {"research": Queue(name="research", weight=2.0), "web": Queue(name="web")}
numbers = count(1)

with jobs.write() as txn:  # published as one when the block ends, dropped if it raises
    for name in ("batch", "gang", "service"):
        spec = load_spec(here / f"{name}.yaml")
        made = expand(spec, config, ids=lambda: f"job-{next(numbers):02}", now=0)
        txn.upsert_many([job.replace(validated=True) for job in made])

before, state = jobs.snapshot(), RoundState()
result, state = run_round(before, nodes, queues, "default", config, state, now=0)
for placement in result.scheduled:
    print(f"{placement.job_id} starts on {placement.node_id}")
for job_id, reason in result.refused.items():
    print(f"{job_id} waits: {reason.sentence()}")

leases = grant(result, before, 0, lambda: f"run-{next(numbers)}", config)
with jobs.write() as txn:
    txn.upsert_many(leases.jobs)
nodes.advance(jobs.snapshot().diff(before))
total = config.spec.quantities(nodes.totals("default"))
print(f"{len(leases.jobs)} jobs leased on {len(nodes)} nodes with {total['cpu']} cores")
