"""Limits against models that know no integers and no short cuts."""

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyresched.config import config_from
from pyresched.durations import INT64_MAX
from pyresched.model import Queue, QueueName, ResourceVector
from pyresched.scheduling import RoundState
from pyresched.scheduling.buckets import Bucket, Rate, next_token, taken, tokens
from pyresched.scheduling.limits import limits_for

rates = st.builds(Rate, st.integers(1, 10**12) | st.just(333_333_333), st.integers(1, 50))
# Times go back now and then; counts overdraw now and then.
visits = st.lists(
    st.tuples(st.integers(-(10**10), 3 * 10**10) | st.integers(0, 3), st.integers(0, 60)),
    max_size=30,
)


@given(rates, visits)
def test_a_bucket_holds_what_an_exact_one_holds(rate: Rate, visits: list[tuple[int, int]]) -> None:
    """However often one looks and takes, nothing is lost or gained, wherever the clock goes."""
    bucket: Bucket | None = None
    left, since, now = Fraction(rate.burst), 0, 0
    for step, count in visits:
        now += step
        waited = max(0, now - since)
        held = min(left + waited * Fraction(rate.nanos, 10**18), Fraction(rate.burst))
        assert tokens(bucket, rate, now) == held // 1
        again = next_token(bucket, rate, now)
        assert (again is None) == (held == rate.burst)
        if again is not None:
            assert tokens(bucket, rate, again - 1) < tokens(bucket, rate, again)
        bucket = taken(bucket, rate, now, count)
        if count:  # a look alone is not written down
            since = now if left == rate.burst else max(now, since)
            left = held - count
            assert bucket is not None
            assert Fraction(bucket.nanos * 10**9 + bucket.part, 10**18) == left
        elif held == rate.burst:
            assert bucket is None
            left = held


NAMES = ("cpu", "memory", "gpu")
CLASSES = ("default", "spot")
POOLS = ("default", "other")
fraction = st.sampled_from([0, 0.1, 0.25, 0.5, 1, 1.5])
fractions = st.dictionaries(st.sampled_from(NAMES), fraction, max_size=2)
by_class = st.dictionaries(st.sampled_from(CLASSES), fractions, max_size=2)
by_class_by_pool = st.dictionaries(
    st.sampled_from(CLASSES), st.dictionaries(st.sampled_from(POOLS), fractions, max_size=2)
)
classes = st.fixed_dictionaries(
    {
        "max_fraction_per_queue": fractions,
        "max_fraction_per_queue_by_pool": st.dictionaries(st.sampled_from(POOLS), fractions),
    }
)


@given(st.tuples(classes, classes), by_class, by_class_by_pool, st.sampled_from(POOLS))
def test_a_class_limit_is_the_last_of_four_words_on_each_resource(
    written: tuple[dict[str, Any], dict[str, Any]],
    own: dict[str, dict[str, float]],
    own_here: dict[str, dict[str, dict[str, float]]],
    pool: str,
) -> None:
    """Asked one by one, the closest first; where none says anything there is no limit."""
    config = config_from(
        {
            "resources": [{"name": name} for name in NAMES],
            "priority_classes": [
                {"name": name, **keys} for name, keys in zip(CLASSES, written, strict=True)
            ],
            "pools": [{"name": name} for name in POOLS],
        }
    )
    queue = Queue(name="q", max_fraction_by_class=own, max_fraction_by_class_by_pool=own_here)
    total = ResourceVector([100, 1000, 7])
    name = QueueName("q")
    found = limits_for(pool, {name: queue}, config, RoundState(), 0, total).queues
    for at, keys in zip(CLASSES, written, strict=True):
        amounts = []
        for resource, amount in zip(NAMES, total, strict=True):
            words = (
                own_here.get(at, {}).get(pool, {}),
                own.get(at, {}),
                keys["max_fraction_per_queue_by_pool"].get(pool, {}),
                keys["max_fraction_per_queue"],
            )
            said = [word[resource] for word in words if resource in word]
            amounts.append(int(Fraction(str(said[0])) * amount) if said else INT64_MAX)
        limit = found[name].classes.get(at) if name in found else None
        if all(amount == INT64_MAX for amount in amounts):
            assert limit is None
        else:
            assert limit == ResourceVector(amounts)
