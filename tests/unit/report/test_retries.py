"""The picture of a job that fails again and again: its rows, and edges that must be drawn too."""

from pathlib import Path

import pytest

from pyresched.model import NANOS, ReschedulePolicy
from pyresched.report import retries
from pyresched.reschedule import timeline

THREE = ReschedulePolicy(attempts=3, interval="1h", delay="30s")


def test_rows_are_the_steps_in_a_unit_that_suits_them() -> None:
    """The last one waits for nothing."""
    unit, rows = retries.rows(timeline(THREE, runtime=10 * NANOS))
    assert unit == "seconds"
    assert [(row["started"], row["failed"], row["next"]) for row in rows] == [
        (0, 10, 40),
        (40, 50, 80),
        (80, 90, 120),
        (120, 130, 130),
    ]
    assert [(row["attempted"], row["attempts"]) for row in rows] == [(n, 3) for n in range(4)]


@pytest.mark.parametrize(
    ("delay", "unit"), [("1s", "seconds"), ("100s", "minutes"), ("2h", "hours"), ("48h", "days")]
)
def test_the_unit_leaves_readable_figures(delay: str, unit: str) -> None:
    """At least five of it, but for seconds."""
    steps = timeline(ReschedulePolicy(unlimited=True, delay=delay), failures=4)
    assert retries.rows(steps)[0] == unit


@pytest.mark.parametrize(
    "policy", [None, ReschedulePolicy(), THREE, ReschedulePolicy(unlimited=True, delay="1s")]
)
def test_any_timeline_is_drawn(policy: ReschedulePolicy | None, tmp_path: Path) -> None:
    """One run, a few, a hundred, none at all; the attempts only where there is a limit."""
    for steps in (timeline(policy), []):
        spec = retries.chart(steps, title="a", subtitle=["b"]).to_dict()
        limited = policy == THREE and bool(steps)
        assert len(spec["vconcat"]) == 1 + limited
        path = tmp_path / "picture.png"
        retries.write(steps, path, title="a", subtitle=["b"])
        assert int.from_bytes(path.read_bytes()[16:20], "big") > 900


def test_the_page_fetches_nothing_and_runs_no_text(tmp_path: Path) -> None:
    """Markup in the title is shown."""
    path = tmp_path / "page.html"
    retries.write(timeline(THREE), path, title="<b>a", subtitle=["</script>"])
    text = path.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<b>a" not in text
