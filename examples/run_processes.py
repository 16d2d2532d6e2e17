"""Run commands as jobs on this machine: queues, fair share and retries, without a server."""

import secrets
import sys

from pyresched.config import SchedulingConfig
from pyresched.executors import Command, ProcessExecutor
from pyresched.model import Job, Node, Requirements, ReschedulePolicy, Rounding, parse_duration
from pyresched.scheduler import Scheduler
from pyresched.service import Service
from pyresched.store import MemoryJournal

config = SchedulingConfig()
one_core = config.spec.vector({"cpu": 1, "memory": "256Mi"}, rounding=Rounding.UP)
two_cores = config.spec.vector({"cpu": 2, "memory": "1Gi"}, rounding=Rounding.DOWN)
retry = ReschedulePolicy(attempts=2, interval=parse_duration("1h"), delay=parse_duration("200ms"))
scripts = {
    "hello": "print('hello')",
    "slow": "import time; time.sleep(0.5)",
    "broken": "raise SystemExit(3)",
}

scheduler = Scheduler(config, MemoryJournal(), ids=lambda: secrets.token_hex(16))
service = Service(scheduler, ProcessExecutor())
with service.locked() as locked:
    now = service.now()
    locked.join_nodes([Node(id="here", total=two_cores)], now)
    locked.submit(
        [
            Job(
                id=name,
                queue="examples",
                requirements=Requirements(one_core),
                submitted_at=now,
                policy=retry,
                payload=Command(argv=(sys.executable, "-c", script)),
            )
            for name, script in scripts.items()
        ],
        now,
    )
service.run_until_idle()
for job in scheduler.snapshot():
    runs = ", ".join(f"{run.outcome.value} {run.reason}".strip() for run in job.runs if run.outcome)
    print(f"{job.id}: {job.state.name.lower()} {job.reason} ({runs})")
