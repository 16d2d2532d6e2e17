"""The picture of a job that fails again and again: its runs over time, and the attempts used.

Made from the steps of a timeline alone. Needs the extra `plot`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyresched.errors import MissingExtra
from pyresched.reschedule import Step

try:
    import altair as alt
    import vl_convert
except ImportError as missing:
    raise MissingExtra(
        "pictures need altair and vl-convert: pip install 'pyresched[plot]'"
    ) from missing

from pyresched.report.page import document

__all__ = ["chart", "rows", "write"]

WIDTH: Final = 760
_BAND: Final = 22  # pixels of a run
_TALLEST: Final = 520
_BLUE: Final = "#3b6ea5"
_RED: Final = "#c8553d"
_PALE: Final = "#c9d6e4"
_UNITS: Final = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
_NAMED: Final = 24  # runs up to which each one is numbered


class _Time(NamedTuple):
    """The axis that both pictures share."""

    title: str
    domain: tuple[float, float]

    def of(self, field: str) -> alt.X:
        scale = alt.Scale(domain=list(self.domain), nice=False)
        return alt.X(f"{field}:Q", title=self.title, scale=scale)


def rows(steps: Sequence[Step]) -> tuple[str, list[dict[str, Any]]]:
    """The unit of time, and a row a run: when it starts, fails and is tried again, in that unit."""
    longest = max((step.failed for step in steps), default=0) / 1e9
    unit, size = next((each for each in _UNITS if longest >= 5 * each[1]), _UNITS[-1])
    scale = size * 1e9
    return unit, [
        {
            "run": step.number,
            "top": step.number - 0.36,
            "low": step.number - 0.12,
            "high": step.number + 0.12,
            "bottom": step.number + 0.36,
            "started": step.started / scale,
            "failed": step.failed / scale,
            "next": (step.verdict.at if step.verdict.eligible else step.failed) / scale,
            "used": step.verdict.used,
            "attempted": step.verdict.attempted,
            "attempts": step.verdict.attempts,
            "follows": step.verdict.sentence(),
        }
        for step in steps
    ]


def chart(steps: Sequence[Step], *, title: str, subtitle: Sequence[str]) -> alt.TopLevelMixin:
    """Runs and the waits between them; below, the attempts in the window where there is a limit."""
    unit, values = rows(steps)
    data = alt.InlineData(values=values)
    # A mark at the very edge would be cut in half.
    reach = max((row["next"] for row in values), default=0.0) or 1.0
    time = _Time(f"{unit} since the first start", (-0.01 * reach, 1.02 * reach))
    runs = _runs(data, values, time)
    drawn: list[Any] = [runs.properties(width=WIDTH, height=min(_BAND * len(values) + 8, _TALLEST))]
    if any(row["attempts"] for row in values):
        drawn.append(_attempts(data, values, time).properties(width=WIDTH, height=110))
    both: alt.VConcatChart = (
        alt.vconcat(*drawn)
        .properties(title=alt.Title(title, subtitle=list(subtitle)))
        .configure_view(stroke=None)
        .configure_axis(gridColor="#eceff2")
        .configure_title(anchor="start", fontSize=14, subtitleColor="#59636e")
    )
    return both


def _runs(data: alt.InlineData, values: list[dict[str, Any]], time: _Time) -> alt.TopLevelMixin:
    """A bar a run, pale while the next one waits, a red tick where it fails."""
    count = len(values)
    band = min(_BAND, _TALLEST / max(count, 1))
    axis = alt.Axis(format="d", grid=False, tickMinStep=1)
    if count <= _NAMED:
        # The viewer thins given values out to the number of ticks it would draw itself.
        numbers = [row["run"] for row in values]
        axis = alt.Axis(values=numbers, tickCount=count, format="d", grid=False, labelOverlap=False)
    y = alt.Scale(domain=[0.5, max(count, 1) + 0.5], nice=False, reverse=True)
    base = alt.Chart(data).encode(
        tooltip=["run:Q", "started:Q", "failed:Q", "next:Q", "used:N", "follows:N"]
    )
    waits = base.mark_rect(color=_PALE).encode(
        x=alt.X("failed:Q"), x2="next:Q", y=alt.Y("low:Q", scale=y, axis=axis), y2="high:Q"
    )
    bars = base.mark_rect(color=_BLUE).encode(
        x=time.of("started"),
        x2="failed:Q",
        y=alt.Y("top:Q", scale=y, title="run", axis=axis),
        y2="bottom:Q",
    )
    ends = base.mark_tick(
        color=_RED, thickness=2, orient="vertical", size=max(3, 0.72 * band)
    ).encode(x=alt.X("failed:Q"), y=alt.Y("run:Q", scale=y))
    return alt.layer(waits, bars, ends)


def _attempts(data: alt.InlineData, values: list[dict[str, Any]], time: _Time) -> alt.TopLevelMixin:
    """At each failure, how many attempts lie in the window, below the line of how many may."""
    most = max(row["attempts"] for row in values)
    y = alt.Scale(domain=[0, most * 1.1], nice=False)
    axis = alt.Axis(format="d", tickMinStep=1, tickCount=min(most, 5))
    used = (
        alt.Chart(data)
        .mark_line(interpolate="step-after", point=True, color=_BLUE)
        .encode(
            x=time.of("failed"), y=alt.Y("attempted:Q", scale=y, axis=axis, title="attempts used")
        )
    )
    limit = (
        alt.Chart(alt.InlineData(values=[{"limit": most}]))
        .mark_rule(color=_RED, strokeDash=[5, 3])
        .encode(y=alt.Y("limit:Q", scale=y))
    )
    return alt.layer(limit, used)


def write(steps: Sequence[Step], path: Path, *, title: str, subtitle: Sequence[str]) -> None:
    """Draw *steps* into *path*: a page that opens without a network for .html, a PNG for .png.

    Raises OSError as opening the file does.
    """
    if path.suffix == ".png":
        spec = chart(steps, title=title, subtitle=subtitle).to_dict()
        path.write_bytes(vl_convert.vegalite_to_png(spec, scale=1.5))
    else:
        spec = chart(steps, title="", subtitle=()).to_dict()
        page = document(title, title, " ".join(subtitle), {"runs": spec})
        path.write_text(page, encoding="utf-8")
