"""A reschedule storm, small: every job fails at once, again and again."""

import pytest

import storm as storms
from pyresched.reschedule import Prospect, outlook
from pyresched.simulator.tables import write_tables

CASES = [
    ("constant", "0s"),
    *((name, cap) for name in ("exponential", "fibonacci") for cap in (storms.CAP, storms.NO_CAP)),
]


@pytest.mark.parametrize(("function", "max_delay"), CASES)
def test_a_storm_ends_as_its_outlook_says(function: str, max_delay: str, tmp_path) -> None:
    """Where everybody has room: after so many runs, that late, and for that reason."""
    seen = storms.storm(function, max_delay, 100)
    said = outlook(seen.policy, runtime=storms.RUN_TIME * storms.NANOS)
    assert said.prospect is Prospect.GIVES_UP
    times = storms.reschedules(seen.result)
    failing = [job for job in seen.result.jobs if job.end.value == "failed"]
    # As many jobs as the log has would have to fail for all of them to fail for ever.
    assert len(failing) >= 85
    for job in failing:
        assert (job.runs, job.reschedules, len(times[job.id])) == (9, 8, 8)
        assert job.reason == "exhausted"
        # A cycle of the simulation may be as late as the time between two.
        assert 0 <= job.ended_at - said.after <= 9 * 10 * storms.NANOS
    last = [run for run in seen.result.runs if run.stopped]
    assert {run.attempts_used for run in last} == {"8/8 in 12h"}
    assert storms.fullest_window(seen.result, seen.policy.interval) == storms.ATTEMPTS
    again = storms.storm(function, max_delay, 100)
    for name, each in (("one", seen), ("other", again)):
        (tmp_path / name).mkdir()
        write_tables(each.result, tmp_path / name)
    for file in ("jobs.csv", "runs.csv", "summary.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


@pytest.mark.parametrize(("function", "max_delay"), CASES)
@pytest.mark.parametrize("interval", ["10m", "30m"])
def test_no_window_of_a_crowded_storm_holds_more_than_the_attempts(
    monkeypatch: pytest.MonkeyPatch, function: str, max_delay: str, interval: str
) -> None:
    """Ten cores for sixty jobs: replacements wait in their queues, and windows let go meanwhile."""
    monkeypatch.setattr(storms, "INTERVAL", interval)
    monkeypatch.setattr(storms, "ATTEMPTS", 3)
    seen = storms.storm(function, max_delay, 60, cores=10)
    assert seen.policy.attempts == 3
    assert 0 < storms.fullest_window(seen.result, seen.policy.interval) <= 3


def test_a_window_that_holds_too_much_is_seen() -> None:
    """Negative control: the same storm against a longer window."""
    result = storms.storm("constant", "0s", 20).result
    assert storms.fullest_window(result, 3600 * storms.NANOS) == 8
    assert storms.fullest_window(result, 90 * storms.NANOS) == 1
    assert storms.fullest_window(result, 91 * storms.NANOS) == 2
