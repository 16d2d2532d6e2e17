"""Figures in words: nothing that is missing is invented."""

import msgspec
import pytest

from kit.results import result
from pyresched.report import figures
from pyresched.report.records import WaitSeconds
from pyresched.report.wording import span_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0.0s"),
        (41.54, "41.5s"),
        (59.99, "60.0s"),
        (60.0, "1m0s"),
        (7500.0, "2h5m"),
        (3 * 86400 + 4.6 * 3600, "3d4h"),
    ],
)
def test_spans_read_as_people_say_them(seconds: float | None, text: str) -> None:
    """Two units at most, a dash for what is not known."""
    assert span_text(seconds) == text


def test_unknown_figures_are_a_dash() -> None:
    """Nothing started: no mean is shown."""
    summary = msgspec.structs.replace(
        result(jobs=2).summary,
        wait_s=WaitSeconds(mean=None, median=None, p95=None),
        slowdown=None,
        slowdown_median=None,
        jain=None,
    )
    values = {name: value for name, value, _ in figures(summary)}
    assert values["wait"] == values["bounded slowdown"] == values["fairness"] == "-"
