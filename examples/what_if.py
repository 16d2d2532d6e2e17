"""What if: a hundred thousand jobs from columns, a change tried on a dry run, then applied.

The columns are `array`s here, so that nothing but pyresched is needed; NumPy arrays and Arrow
columns go in the same way.
"""

from array import array

from pyresched import JobDb, NodeDb, Queue, RoundState, SchedulingConfig, run_round
from pyresched.config import nodes_from_shape
from pyresched.errors import Conflict
from pyresched.jobdb import Reader
from pyresched.model import Requirements, Rounding

JOBS = 100_000
QUEUES = ("ada", "bob", "eve")

config = SchedulingConfig()
jobs, nodes = JobDb(config), NodeDb(config, nodes_from_shape("50x16", config))
queues = {name: Queue(name=name) for name in QUEUES}
sizes = [
    Requirements(config.spec.vector({"cpu": cpus}, rounding=Rounding.UP)) for cpus in (1, 2, 4)
]

with jobs.write() as txn:
    txn.upsert_columns(
        ids=[f"job-{n:06}" for n in range(JOBS)],
        submitted_at=array("q", range(JOBS)),
        priority=array("q", [100] * JOBS),
        queue=(array("i", [n % 3 for n in range(JOBS)]), QUEUES),
        requirements=(array("i", [n % 5 % 3 for n in range(JOBS)]), sizes),
        validated=True,
    )


def placed(reader: Reader) -> set[str]:
    """The ids of the jobs that one round would start."""
    result, _ = run_round(reader, nodes, queues, "default", config, RoundState(), now=0)
    return {placement.job_id for placement in result.scheduled}


before = placed(jobs.snapshot())
trial = jobs.dry_run()  # beside any writer; nobody else sees it
trial.upsert_many([trial[f"job-{n:06}"].replace(priority=0) for n in range(JOBS - 60, JOBS)])
after = placed(trial)
print(f"{len(before)} jobs would start, {len(after)} with the last 60 urgent:")
print(f"  {len(after - before)} that had to wait, {len(before - after)} would wait instead")

trial.depend_on(queue="ada")  # not worth it any more if that queue has changed meanwhile
try:
    print("published as version", jobs.apply(trial))
except Conflict as conflict:
    print("the world has moved on:", conflict)
