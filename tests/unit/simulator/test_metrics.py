"""The figures of a simulation on records small enough to work out by hand."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.model import NANOS
from pyresched.report.records import JobEnd, JobRecord, NodeRecord, Outage, RunRecord
from pyresched.simulator.metrics import (
    bounded_slowdown,
    jain_index,
    mean,
    quantile,
    rounded_mean,
    service_by_queue,
    utilisation,
    wait_seconds,
)

S = NANOS


def job(**fields: object) -> JobRecord:
    """A job of one core that came at 0, started at 10 s, ended at 70 s and ran 60 s."""
    plain: dict[str, object] = {
        "id": "1",
        "queue": "q",
        "submitted_at": 0,
        "started_at": 10 * S,
        "ended_at": 70 * S,
        "run_time": 60 * S,
        "end": JobEnd.SUCCEEDED,
    }
    return JobRecord(**(plain | fields))  # type: ignore[arg-type]


def run(start: int, end: int | None, *, node: str = "a", cores: int = 1) -> RunRecord:
    """A run from *start* to *end* seconds."""
    return RunRecord(
        id="r",
        job_id="1",
        node_id=node,
        started_at=start * S,
        ended_at=None if end is None else end * S,
        cores=cores,
    )


def test_waits_are_from_submit_to_first_start() -> None:
    """A job that never started has no wait."""
    jobs = [job(started_at=n * S) for n in (0, 1, 2, 7)] + [job(started_at=None)]
    waits = wait_seconds(jobs)
    assert (waits.mean, waits.median) == (2.5, 1.5)
    assert waits.p95 == pytest.approx(2 + 5 * 0.85)
    assert wait_seconds([]).mean is None


@given(st.lists(st.integers(0, 1000), min_size=1), st.fractions(0, 1))
def test_a_quantile_splits_the_values(values: list[int], share: Fraction) -> None:
    """About that share of them lies at or below it, and ends are least and most."""
    at = quantile(values, share)
    assert at is not None
    assert min(values) <= at <= max(values)
    below = sum(value <= at for value in values)
    assert below >= share * (len(values) - 1)
    assert quantile(values, Fraction(0)) == min(values)
    assert quantile(values, Fraction(1)) == max(values)


def test_nothing_has_no_figure() -> None:
    """None, not a division by zero."""
    assert mean([]) is None
    assert rounded_mean([]) is None
    assert quantile([], Fraction(1, 2)) is None
    assert jain_index([]) is None
    assert jain_index([Fraction(0)]) is None


def test_slowdown_is_bounded_on_both_sides() -> None:
    """A run below 10 s counts as 10 s, and nothing is faster than its run time."""
    assert bounded_slowdown(job()) == Fraction(7, 6)
    assert bounded_slowdown(job(run_time=1 * S)) == 7
    assert bounded_slowdown(job(run_time=1 * S, ended_at=2 * S)) == 1
    assert bounded_slowdown(job(started_at=None)) is None
    assert bounded_slowdown(job(ended_at=None, end=JobEnd.UNFINISHED)) is None
    assert bounded_slowdown(job(end=JobEnd.CANCELLED)) is None


def test_utilisation_leaves_out_nodes_that_are_away() -> None:
    """Two nodes of 2 cores for 100 s; one is away for 50 s, a run holds the other for 75."""
    nodes = [NodeRecord(id="a", cores=2), NodeRecord(id="b", cores=2)]
    outage = Outage(node_id="b", lost_at=20 * S, back_at=70 * S)
    share = utilisation([run(25, None, cores=2)], nodes, [outage], start=0, end=100 * S)
    assert share == 0.5
    forever = Outage(node_id="b", lost_at=0)
    assert utilisation([run(0, 100, cores=2)], nodes, [forever], start=0, end=100 * S) == 1.0
    after = Outage(node_id="b", lost_at=200 * S, back_at=300 * S)
    assert utilisation([run(0, 100)], nodes, [after], start=0, end=100 * S) == 0.25
    assert utilisation([], nodes, [], start=0, end=0) == 0.0


def test_service_is_weighted_by_work() -> None:
    """A wide job that waited tells more than a narrow one that did not."""
    served = service_by_queue(
        [
            job(queue="b", cores=3, run_time=35 * S),
            job(queue="b", cores=1, run_time=70 * S),
            job(queue="a", run_time=70 * S),
            job(queue="c", end=JobEnd.REFUSED),
            job(queue="d", run_time=0, ended_at=0),
        ]
    )
    assert list(served.items()) == [("a", Fraction(1)), ("b", Fraction(175, 280))]


def test_jain_is_one_when_equal_and_one_of_n_when_one_has_all() -> None:
    """The two ends of the scale."""
    assert jain_index([Fraction(1, 3)] * 5) == 1.0
    assert jain_index([Fraction(1), Fraction(0), Fraction(0), Fraction(0)]) == 0.25
