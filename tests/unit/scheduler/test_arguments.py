"""Commands that are given another thing than they take: told at once, nothing is committed."""

from collections.abc import Callable

import numpy as np
import pytest

from kit.driving import node, scheduler
from kit.jobs import job
from pyresched.model import Queue
from pyresched.scheduler import Scheduler

WRONG: dict[str, tuple[Callable[[Scheduler], object], str]] = {
    "one job": (lambda made: made.submit(job("b"), 0), r"jobs is several Jobs, got Job\("),
    "ids for jobs": (lambda made: made.submit(["b"], 0), r"jobs\[0\] is a Job, got 'b'"),
    "no list": (lambda made: made.submit(None, 0), "jobs is several Jobs, got None"),
    "one id": (lambda made: made.cancel("a", 0), r"job_ids is several ids, got 'a'; write \["),
    "an id": (lambda made: made.cancel([3], 0), r"job_ids\[0\] is a str, got 3"),
    "one report": (lambda made: made.report([1], 0), r"reports\[0\] is a Report, got 1"),
    "one node": (lambda made: made.join_nodes(node("n"), 0), r"nodes is several Nodes, got Node\("),
    "a lost node": (lambda made: made.lose_nodes("node-1", 0), "node_ids is several ids"),
    "a node that is back": (lambda made: made.nodes_back("node-1", 0), "node_ids is several ids"),
    "a cordon": (lambda made: made.cordon_nodes("node-1", 0), "node_ids is several ids"),
    "its end": (lambda made: made.uncordon_nodes("node-1", 0), "node_ids is several ids"),
    "a queue": (lambda made: made.put_queues(["q"], 0), r"queues\[0\] is a Queue, got 'q'"),
    "a step in words": (lambda made: made.step("now"), "now is a whole number of ns, got 'now'"),
    "seconds": (lambda made: made.step(1.5), "now is a whole number of ns, got 1.5"),
}
AT = {
    "submit": lambda made, now: made.submit([job("b")], now),
    "cancel": lambda made, now: made.cancel(["a"], now),
    "report": lambda made, now: made.report([], now),
    "join_nodes": lambda made, now: made.join_nodes([node("n")], now),
    "lose_nodes": lambda made, now: made.lose_nodes(["node-1"], now),
    "nodes_back": lambda made, now: made.nodes_back(["node-1"], now),
    "cordon_nodes": lambda made, now: made.cordon_nodes(["node-1"], now),
    "uncordon_nodes": lambda made, now: made.uncordon_nodes(["node-1"], now),
    "put_queues": lambda made, now: made.put_queues([Queue(name="q")], now),
    "step": lambda made, now: made.step(now),
}


def started() -> Scheduler:
    """A node and a job."""
    made = scheduler(node())
    made.submit([job("a")], 0)
    return made


@pytest.mark.parametrize(("use", "told"), WRONG.values(), ids=WRONG)
def test_an_argument_of_another_kind_is_named(use, told) -> None:
    """With what was given; memory and journal stay as they were."""
    made = started()
    serial = made.sync.serial
    with pytest.raises(TypeError, match=told):
        use(made)
    assert made.sync.serial == serial
    assert made.check() == []


@pytest.mark.parametrize("command", AT.values(), ids=AT)
def test_every_command_takes_whole_nanoseconds_only(command) -> None:
    """A time in words would stand in every event; one past int64 in no row."""
    made = started()
    serial = made.sync.serial
    with pytest.raises(TypeError, match="now is a whole number of ns, got None"):
        command(made, None)
    with pytest.raises(OverflowError, match=r"now must be within 2\*\*63 - 1 ns of 0"):
        command(made, 2**63)
    assert made.sync.serial == serial
    command(made, np.int64(1))
    assert made.check() == []
    assert all(type(event.at) is int for event in made.journal.events_since(0)[0])
