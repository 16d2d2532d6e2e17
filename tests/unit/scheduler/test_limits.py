"""Limits over many steps: what each lets start, why the rest waits, and when it goes on."""

from typing import Any

import pytest

from kit.driving import node, report, scheduler
from kit.jobs import gang, job, jobs
from pyresched.config import config_from
from pyresched.model import NANOS, JobState, Node, PoolName, Queue, ResourceVector, RoundResult
from pyresched.scheduler import Scheduler

POOL = PoolName("default")


def running(made: Scheduler, *, queue: str | None = None) -> int:
    """How many jobs have a run, of one queue or of all."""
    return sum(queue in (None, each.queue) for each in made.snapshot().leased())


def step(made: Scheduler, now: int) -> tuple[int, dict[str, int]]:
    """How many jobs a step placed, and how many it refused for which reason."""
    results = made.step(now).results
    return (
        sum(len(each.scheduled) for each in results.values()),
        results[POOL].refused_by_code() if results else {},
    )


def test_a_rate_lets_a_burst_go_and_then_so_many_a_second() -> None:
    """Two a second, in bursts of five; without a limit all would start at once."""
    made = scheduler(node(cores=32), config=config_from({"rate": 2, "burst": 5}))
    made.submit(jobs(12), 0)
    assert step(made, 0) == (5, {"rate_limit": 7})
    assert made.step(0).next_wake == NANOS // 2
    assert [step(made, at * NANOS)[0] for at in (1, 2, 3, 3)] == [2, 2, 2, 0]
    assert step(made, 60 * NANOS) == (1, {})
    assert made.step(61 * NANOS).next_wake is None
    assert made.check() == []


def test_a_gang_past_the_burst_never_starts_and_the_rest_does() -> None:
    """It is refused for that at once, if not by the submit, then by the round."""
    made = scheduler(node(cores=32), config=config_from({"rate": 2, "burst": 4}))
    made.submit([*gang("g", size=6), *jobs(2)], 0)
    made.step(0)
    assert running(made) == 2
    assert not made.snapshot().get("g.0").state.active


def test_a_gang_waits_until_there_is_a_token_for_each_member() -> None:
    """Meanwhile the tokens are there for others."""
    made = scheduler(node(cores=32), config=config_from({"rate": 1, "burst": 4}))
    made.submit(jobs(2), 0)
    made.step(0)
    made.submit(gang("g", size=4), 0)
    assert step(made, 0) == (0, {"gang_rate_limit": 4})
    assert step(made, NANOS) == (0, {"gang_rate_limit": 4})
    assert step(made, 2 * NANOS) == (4, {})


def test_the_rate_of_a_queue_holds_back_that_queue() -> None:
    """Another one goes on."""
    made = scheduler(node(cores=32), config=config_from({"queue_rate": 1, "queue_burst": 2}))
    made.submit([*jobs(5, queue="a", prefix="a"), *jobs(2, queue="b", prefix="b")], 0)
    assert step(made, 0) == (4, {"queue_rate_limit": 3})
    assert (running(made, queue="a"), running(made, queue="b")) == (2, 2)
    assert step(made, NANOS) == (1, {"queue_rate_limit": 2})


@pytest.mark.parametrize(("scope", "placed"), [("all_pools", [3, 0]), ("pool", [3, 3])])
def test_pools_share_a_rate_unless_each_has_its_own(scope: str, placed: list[int]) -> None:
    """In one cycle, the first pool takes what there is."""
    config = config_from(
        {
            "pools": [{"name": "default"}, {"name": "other"}],
            "rate": 1,
            "burst": 3,
            "rate_scope": scope,
        }
    )
    made = scheduler(node("n", 8), node("o", 8, pool="other"), config=config)
    made.submit([*jobs(5), *jobs(5, prefix="other", pools=("other",))], 0)
    results = made.step(0).results
    assert [len(results[PoolName(name)].scheduled) for name in ("default", "other")] == placed


def rounds(made: Scheduler, now: int = 0) -> list[RoundResult]:
    """What step after step decides, until one asks for no other at once."""
    found = []
    for _ in range(100):
        stepped = made.step(now)
        found += stepped.results.values()
        if stepped.next_wake is None or stepped.next_wake > now:
            return found
    raise AssertionError("a step asks for another one for ever")


@pytest.mark.parametrize(
    ("keys", "code", "most"),
    [
        ({"max_fraction_to_schedule": {"cpu": 0.25}}, "round_limit", 9),
        ({"max_tries_per_round": 7}, "round_budget", 7),
        ({"max_tries_per_queue": 7}, "queue_budget", 7),
        ({"max_queue_lookback": 7}, "past_lookback", 7),
    ],
)
def test_a_limit_on_one_round_spreads_the_work_over_rounds(
    keys: dict[str, Any], code: str, most: int
) -> None:
    """Each starts as many as it may and says why not the others; none waits for news."""
    made = scheduler(node(cores=32), config=config_from(keys))
    made.submit(jobs(20), 0)
    found = rounds(made)
    assert [len(each.scheduled) for each in found if each] == [most, most, 20 - 2 * most]
    assert found[0].refused_by_code() == {code: 20 - most}
    assert running(made) == 20


def test_a_class_limit_counts_what_runs_and_what_starts() -> None:
    """By queue, in its class alone; a run that ends makes room."""
    config = config_from(
        {"priority_classes": [{"name": "default", "max_fraction_per_queue": {"cpu": 0.25}}]}
    )
    made = scheduler(node(cores=16), config=config)
    made.put_queues([Queue(name="b", max_fraction_by_class={"default": {"cpu": 0.5}})], 0)
    made.submit([*jobs(9, queue="a", prefix="a"), *jobs(9, queue="b", prefix="b")], 0)
    assert step(made, 0) == (12, {"class_limit": 6})
    assert (running(made, queue="a"), running(made, queue="b")) == (4, 8)
    assert step(made, 0) == (0, {"class_limit": 6})
    report(made, "a-000000", kind="succeeded", now=1)
    assert step(made, 1) == (1, {"class_limit": 5})


def test_what_floats_is_counted_by_the_pool() -> None:
    """Whatever node a job runs on; those that need none of it go on."""
    config = config_from(
        {
            "resources": [
                {"name": "cpu", "unit": "1m"},
                {"name": "memory", "unit": "1Mi"},
                {"name": "licence", "floating": True},
            ],
            "pools": [{"name": "default", "floating": {"licence": 10}}],
        }
    )
    total = ResourceVector([32_000, 32 * 1024, 0])
    made = scheduler(*(Node(id=id, total=total) for id in ("n1", "n2")), config=config)
    made.submit([job(f"l{n}", 1000, 1, 6) for n in range(2)], 0)
    made.submit([job("free", 1000, 1, 0)], 0)
    assert step(made, 0) == (2, {"floating_resources": 1})
    report(made, "l0", kind="succeeded", now=1)
    assert step(made, 1) == (1, {})
    assert made.check() == []


@pytest.mark.parametrize(("most", "placed"), [(16, 48), (15, 32)])
def test_an_executor_that_lags_gets_nothing_new(most: int, placed: int) -> None:
    """Two of 32 cores, one with 16 leases that it has not taken up, 48 jobs queued."""
    config = config_from({"max_unacknowledged_runs": most})
    made = scheduler(node("n1", 32, executor="one"), config=config)
    made.submit(jobs(16, prefix="first"), 0)
    made.step(0)
    made.join_nodes([node("n2", 32, executor="two")], 1)
    made.submit(jobs(48), 1)
    assert step(made, 1)[0] == placed
    lagging = [each.id for each in made.snapshot().leased() if each.state is JobState.LEASED]
    assert len(lagging) == 16 + placed


def test_fair_share_takes_no_more_runs_than_its_rate_allows() -> None:
    """One token a run; what is left to take is taken as tokens come, without news."""
    config = config_from(
        {
            "priority_classes": [{"name": "default", "preemptible": True}],
            "pools": [{"name": "default", "preemption_rate": 2, "preemption_burst": 5}],
        }
    )
    made = scheduler(node(cores=32), config=config)
    made.submit(jobs(32, queue="a", prefix="a"), 0)
    assert step(made, 0)[0] == 32
    made.submit(jobs(32, queue="b", prefix="b"), 1)
    result = made.step(1)
    assert len(result.results[POOL].preempted) == 5
    assert running(made, queue="b") == 5
    assert result.next_wake == 1 + NANOS // 2
    for second in range(1, 20):
        made.step(1 + second * NANOS)
    assert (running(made, queue="a"), running(made, queue="b")) == (16, 16)
    assert made.step(60 * NANOS).next_wake is None
