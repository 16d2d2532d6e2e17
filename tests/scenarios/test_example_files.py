"""The files in examples/ load, fit together, and have nothing wrong."""

import itertools
from pathlib import Path

import pytest

from pyresched.config import load_config, load_nodes
from pyresched.model import Job, JobState
from pyresched.reschedule import problems
from pyresched.scheduler import Scheduler
from pyresched.spec import expand, load_spec
from pyresched.store import MemoryJournal

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONFIG = load_config(EXAMPLES / "pyresched.toml")


def jobs_of(name: str) -> tuple[Job, ...]:
    """The jobs of an example."""
    numbers = itertools.count()
    spec = load_spec(EXAMPLES / name)
    return expand(spec, CONFIG, ids=lambda: f"{spec.name}-{next(numbers)}", now=0)


@pytest.mark.parametrize(
    ("name", "count", "gangs"),
    [
        ("service.yaml", 3, 0),
        ("batch.yaml", 24, 0),
        ("gang.yaml", 2, 1),
        ("system.yaml", 1, 0),
    ],
)
def test_each_job_spec_gives_jobs_that_fit_the_example_cluster(name, count, gangs) -> None:
    """Each job fits some node by itself, its queue exists, its policy has no problem."""
    jobs = jobs_of(name)
    assert len(jobs) == count
    assert len({job.gang for job in jobs if job.gang}) == gangs
    nodes = load_nodes(EXAMPLES / "nodes.yaml", CONFIG)
    for job in jobs:
        assert job.state is JobState.QUEUED
        assert job.queue in {queue.name for queue in CONFIG.queues}
        assert problems(job.policy, job_type=job.job_type) == ()
        wanted = job.requirements
        assert any(
            wanted.resources.fits_in(node.total)
            and all(node.labels.get(key) == value for key, value in wanted.selector)
            and all(any(t.tolerates(taint) for t in wanted.tolerations) for taint in node.taints)
            for node in nodes
        )


def test_the_system_job_is_on_each_node_without_a_taint() -> None:
    """Twelve workers and the front, but no node with GPUs; one that is lost takes its own along."""
    made = Scheduler(CONFIG, MemoryJournal(), ids=map("run-{}".format, itertools.count()).__next__)
    made.join_nodes(load_nodes(EXAMPLES / "nodes.yaml", CONFIG), 0)
    made.submit(jobs_of("system.yaml"), 0)
    made.step(0)
    running = {job.node_id for job in made.snapshot() if job.state.active}
    assert len(running) == 13
    assert {node.id for node in made.nodes} - running == {
        node.id for node in made.nodes if node.taints
    }
    made.lose_nodes(["front"], 1)
    made.step(1)
    assert {job.node_id for job in made.snapshot() if job.state.active} == running - {"front"}
    assert made.check() == []
