"""Limits of a round: what fractions and rates come to, what a round uses up."""

import msgspec
import pytest

from kit.jobs import job, leased
from pyresched.config import SchedulingConfig, config_from
from pyresched.durations import INT64_MAX
from pyresched.errors import ConfigError
from pyresched.model import (
    JobId,
    JobState,
    Node,
    NodeId,
    Placement,
    PoolName,
    Queue,
    QueueName,
    ReasonCode,
    ResourceVector,
    RoundResult,
    UnschedulableReason,
)
from pyresched.scheduling import RoundState
from pyresched.scheduling.limits import (
    QueueLimits,
    RoundLimits,
    lagging_nodes,
    limits_for,
    look_again,
    spent,
)
from pyresched.scheduling.state import handed_on

SECOND = 10**9
TOTAL = ResourceVector([100, 1000])
FRESH = RoundState()
A, B = QueueName("a"), QueueName("b")
PLAIN = {A: Queue(name="a"), B: Queue(name="b")}


def configured(**keys: object) -> SchedulingConfig:
    """Two resources counted in ones, two classes, two pools, and *keys*."""
    return config_from(
        {
            "resources": [{"name": "cpu"}, {"name": "memory"}],
            "priority_classes": [{"name": "default"}, {"name": "spot", "preemptible": True}],
            "pools": [{"name": "default"}, {"name": "other"}],
        }
        | keys
    )


def limits(config: SchedulingConfig, queues=PLAIN, state=FRESH, now=0, pool="default"):
    """Of a round over *pool*, which has TOTAL."""
    return limits_for(pool, queues, config, state, now, TOTAL)


def test_nothing_configured_limits_nothing() -> None:
    """No queue has an entry then."""
    assert limits(configured()) == RoundLimits()


def test_nothing_configured_keeps_nothing() -> None:
    """Whatever a round did."""
    assert spent("default", configured(), RoundState(), 5, {A: 3}, 2) == RoundState()


def test_a_round_gives_out_its_fraction_of_the_pool() -> None:
    """By resource, rounded down; the rest without limit."""
    config = configured(max_fraction_to_schedule={"cpu": 0.125})
    assert limits(config).most == ResourceVector([12, INT64_MAX])


def test_the_fractions_of_a_pool_replace_all_of_the_general_ones() -> None:
    """Also those of resources that it does not name, and in no other pool."""
    config = configured(
        max_fraction_to_schedule={"cpu": 0.5},
        pools=[
            {"name": "default", "max_fraction_to_schedule": {"memory": 0.25}},
            {"name": "other"},
            {"name": "free", "max_fraction_to_schedule": {}},
        ],
    )
    assert limits(config).most == ResourceVector([INT64_MAX, 250])
    assert limits(config, pool="other").most == ResourceVector([50, INT64_MAX])
    assert limits(config, pool="free").most is None


@pytest.mark.parametrize(
    ("amount", "fraction", "part"),
    [
        (10, 0.3, 3),
        (96, 1 / 3, 32),
        (10, 0.29, 2),
        (7, 0, 0),
        (0, 0.5, 0),
        (2**53 + 1, 1, 2**53 + 1),
        (INT64_MAX, 1.0, INT64_MAX),
        (INT64_MAX, 2, INT64_MAX),
        (1, 1e300, INT64_MAX),
        (3, 1.5, 4),
    ],
)
def test_a_fraction_is_rounded_toward_zero_and_never_past_what_can_be_counted(
    amount, fraction, part
) -> None:
    """All of it is all of it, to the last step."""
    config = configured(max_fraction_to_schedule={"cpu": fraction})
    found = limits_for("default", {}, config, RoundState(), 0, ResourceVector([amount, 0])).most
    assert found is not None
    assert found[0] == part


def test_the_closest_word_on_a_class_counts_resource_by_resource() -> None:
    """Class, class in the pool, queue, queue in the pool: each replaces what it names."""
    spot = {
        "name": "spot",
        "preemptible": True,
        "max_fraction_per_queue": {"cpu": 0.1, "memory": 0.1},
        "max_fraction_per_queue_by_pool": {"default": {"memory": 0.2}},
    }
    config = configured(priority_classes=[{"name": "default"}, spot])
    own = {"spot": {"cpu": 0.3}}
    here = {"spot": {"default": {"cpu": 0.4}, "other": {"memory": 0.5}}}
    queues = {
        A: Queue(name="a"),
        B: Queue(name="b", max_fraction_by_class=own),
        "c": Queue(name="c", max_fraction_by_class_by_pool=here),
        "d": Queue(name="d", max_fraction_by_class=own, max_fraction_by_class_by_pool=here),
    }

    def found(pool: str) -> dict[str, tuple[int, ...]]:
        classes = {
            name: each.classes for name, each in limits(config, queues, pool=pool).queues.items()
        }
        assert all(set(each) == {"spot"} for each in classes.values())
        return {name: each["spot"].to_tuple() for name, each in classes.items()}

    assert found("default") == {"a": (10, 200), "b": (30, 200), "c": (40, 200), "d": (40, 200)}
    assert found("other") == {"a": (10, 100), "b": (30, 100), "c": (10, 500), "d": (30, 500)}


def test_what_a_queue_says_of_the_unknown_counts_for_nothing() -> None:
    """Its row may be older than the configuration."""
    odd = Queue(name="a", max_fraction_by_class={"gone": {"cpu": 0}, "spot": {"gpu": 0}})
    assert limits(configured(), {A: odd}).queues == {A: QueueLimits()}


def test_a_queue_made_with_what_is_not_configured_can_be_refused() -> None:
    """By name, where it is put."""
    with pytest.raises(ConfigError, match="unknown class; did you mean 'spot'"):
        configured().check_queue(Queue(name="a", max_fraction_by_class={"spott": {"cpu": 0.5}}))


def test_rates_are_told_in_whole_jobs_as_of_now() -> None:
    """Of all queues, of each queue, of preemptions; one that was never used is full."""
    config = configured(
        rate=2,
        burst=5,
        queue_rate=0.5,
        queue_burst=3,
        pools=[{"name": "default", "preemption_rate": 1, "preemption_burst": 4}],
    )
    state = spent("default", config, RoundState(), 0, {A: 2, B: 0}, 6)
    before, after = limits(config), limits(config, state=state, now=3 * SECOND // 2)
    assert (before.tokens, before.burst, before.preemption_tokens) == (5, 5, 4)
    assert before.queues == dict.fromkeys((A, B), QueueLimits(tokens=3, burst=3))
    assert (after.tokens, after.burst, after.preemption_tokens) == (5, 5, -1)
    assert (after.queues[A].tokens, after.queues[B].tokens) == (1, 3)


def test_a_round_that_starts_nothing_leaves_the_state_as_it_was() -> None:
    """So that a round without news has the same bytes."""
    config = configured(rate=1, burst=5, queue_rate=1, queue_burst=5)
    state = spent("default", config, RoundState(), 0, {A: 4}, 0)
    assert spent("default", config, state, SECOND, {}, 0) == state


def test_buckets_that_have_filled_up_are_dropped() -> None:
    """A queue that is gone is not remembered for ever."""
    config = configured(rate=1, burst=5, queue_rate=1, queue_burst=5)
    state = spent("default", config, RoundState(), 0, {A: 4}, 0)
    assert spent("default", config, state, 4 * SECOND, {}, 0) == RoundState()


def test_a_state_is_written_down_in_one_way() -> None:
    """Whatever the order in which queues were counted, and it reads back to the same."""
    config = configured(
        rate=1,
        burst=9,
        queue_rate=1 / 3,
        queue_burst=9,
        pools=[{"name": "default", "preemption_rate": 1e-9, "preemption_burst": 2**31 - 1}],
    )
    one = spent("default", config, RoundState(), 0, {A: 2, B: 1}, 10**6)
    other = spent("default", config, RoundState(), 0, {B: 1, A: 2}, 10**6)
    later = spent("default", config, other, 7, {QueueName("0"): 1}, 10**6)
    assert msgspec.json.encode(one) == msgspec.json.encode(other)
    assert list(later.rates.queues) == ["0", "a", "b"]
    assert msgspec.json.decode(msgspec.json.encode(later), type=RoundState) == later


def test_pools_share_rates_unless_each_has_its_own() -> None:
    """What one pool started leaves less to the next; preemptions are always the pool's."""
    keys = {"rate": 1, "burst": 5, "queue_rate": 1, "queue_burst": 5}
    pools = [
        {"name": name, "preemption_rate": 1, "preemption_burst": 5} for name in ("default", "other")
    ]
    for scope, left in (("all_pools", 2), ("pool", 5)):
        config = configured(**keys, pools=pools, rate_scope=scope)
        before = spent("default", config, RoundState(), 0, {A: 3}, 3)
        found = limits(config, state=handed_on(RoundState(), before, config), pool="other")
        assert (found.tokens, found.queues[A].tokens) == (left, left)
        assert found.preemption_tokens == 5


def result(*codes: ReasonCode, started: bool = False) -> RoundResult:
    """Of a round that refused jobs for these reasons, and perhaps placed one."""
    placed = Placement(JobId("j"), NodeId("n"), 0)
    return RoundResult(
        pool=PoolName("default"),
        scheduled=(placed,) if started else (),
        refused={code.value: UnschedulableReason(code) for code in codes},
    )


RATED = configured(
    rate=1,
    burst=9,
    queue_rate=2,
    queue_burst=9,
    pools=[{"name": "default", "preemption_rate": 4, "preemption_burst": 2}],
)
CAPACITY = ReasonCode.INSUFFICIENT_RESOURCES


@pytest.mark.parametrize(
    ("codes", "victims", "again"),
    [
        ([ReasonCode.RATE_LIMIT], 0, SECOND),
        ([ReasonCode.GANG_RATE_LIMIT], 0, SECOND),
        ([ReasonCode.QUEUE_RATE_LIMIT], 0, SECOND // 2),
        ([ReasonCode.RATE_LIMIT, ReasonCode.GANG_QUEUE_RATE_LIMIT], 0, SECOND // 2),
        ([ReasonCode.GANG_EXCEEDS_BURST, ReasonCode.CLASS_LIMIT], 0, None),
        ([CAPACITY], 0, None),
        ([CAPACITY], 2, SECOND // 4),
        ([], 2, None),
    ],
)
def test_a_rate_asks_for_a_round_when_it_allows_one_more(codes, victims, again) -> None:
    """If it held somebody back; preemptions may have, once none was left to make."""
    state = spent("default", RATED, RoundState(), 0, {A: 1}, victims)
    assert look_again(result(*codes), RATED, state, 0) == again


@pytest.mark.parametrize(
    "code",
    [
        ReasonCode.ROUND_LIMIT,
        ReasonCode.ROUND_BUDGET,
        ReasonCode.QUEUE_BUDGET,
        ReasonCode.PAST_LOOKBACK,
    ],
)
def test_a_limit_on_one_round_asks_for_another_one_that_has_other_work(code) -> None:
    """At once after a round that changed something; after another it would do the same."""
    assert look_again(result(code, started=True), RATED, RoundState(), 5) == 5
    assert look_again(result(code), RATED, RoundState(), 5) is None


def test_full_buckets_ask_for_nothing() -> None:
    """There will never be more in them."""
    codes = (ReasonCode.RATE_LIMIT, ReasonCode.QUEUE_RATE_LIMIT)
    assert look_again(result(*codes), RATED, RoundState(), 0) is None


def test_budgets_are_told_as_they_are_set() -> None:
    """In candidates, 0 is none."""
    found = limits(configured(max_tries_per_round=7, max_tries_per_queue=3))
    assert (found.tries, found.tries_per_queue) == (7, 3)


def test_floating_resources_are_those_of_the_pool() -> None:
    """A pool that names none has none of them; others have no such limit."""
    config = configured(
        resources=[{"name": "cpu"}, {"name": "licence", "unit": "2", "floating": True}],
        pools=[{"name": "default", "floating": {"licence": 5}}, {"name": "other"}],
    )
    assert limits(config).floating == ResourceVector([INT64_MAX, 2])
    assert limits(config, pool="other").floating == ResourceVector([INT64_MAX, 0])
    assert config.on_nodes(ResourceVector([3, 4])) == ResourceVector([3, 0])
    assert limits(configured()).floating is None


@pytest.mark.parametrize(("most", "closed"), [(0, set()), (1, {"n1", "n2"}), (2, set())])
def test_an_executor_that_takes_up_no_leases_gets_nothing_new(most, closed) -> None:
    """All of its nodes, once more than so many leases wait; runs that it knows do not count."""
    nodes = [
        Node(id=id, total=TOTAL, executor=executor)
        for id, executor in (("n1", "e"), ("n2", "e"), ("n3", "f"))
    ]
    jobs = [
        leased(job("j1"), node_id="n1"),
        leased(job("j2"), node_id="n2"),
        leased(job("j3"), node_id="n3"),
        leased(job("j4"), node_id="n1").replace(state=JobState.RUNNING),
        leased(job("j5"), node_id="gone"),
        leased(job("j6"), node_id="gone"),
    ]
    config = configured(max_unacknowledged_runs=most)
    assert lagging_nodes(nodes, jobs, config) == closed
