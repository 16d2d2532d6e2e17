"""The four pictures of a simulation as altair charts. Needs the extra `plot`.

Each chart is made from the rows of `series` alone, so what is drawn can be tested as data.
"""

from collections.abc import Mapping
from typing import Any, Final

from pyresched.errors import MissingExtra
from pyresched.report import series
from pyresched.report.records import SimulationResult

try:
    import altair as alt
except ImportError as missing:
    raise MissingExtra(
        "pictures need altair and vl-convert: pip install 'pyresched[plot]'"
    ) from missing

__all__ = ["PICTURES", "charts"]

WIDTH: Final = 920
PICTURES: Final = ("utilisation", "queues", "gantt", "waits")
"""Names of the pictures, in the order of the page; each is also the stem of its PNG."""

_BLUE: Final = "#3b6ea5"
_GREY: Final = "#d5d9de"
_HOURS: Final = (0, 0.1, 0.25, 0.5, 1, 2, 4, 8, 24, 48, 96, 168, 336, 720, 2160, 8760)
_OUTCOMES: Final = {
    "succeeded": "#4c9a6a",
    "running": "#8fb8de",
    "failed": "#c8553d",
    "preempted": "#e0a526",
    "lost": "#7b3f8c",
    "returned": "#b58fc4",
    "cancelled": "#8c8c8c",
}
_QUEUE_COLOURS: Final = (
    *("#3b6ea5", "#e0a526", "#4c9a6a", "#c8553d", "#7b3f8c", "#5bb5b0", "#a0704a", "#b9bec4"),
)


def charts(result: SimulationResult) -> Mapping[str, alt.TopLevelMixin]:
    """The chart of each of `PICTURES` by name."""
    drawn = (_utilisation(result), _queues(result), _gantt(result), _waits(result))
    return {
        name: chart.configure_view(stroke=None)
        .configure_axis(gridColor="#eceff2")
        .configure_title(anchor="start", fontSize=14, subtitleColor="#59636e")
        for name, chart in zip(PICTURES, drawn, strict=True)
    }


def _values(rows: list[Any]) -> alt.InlineData:
    # As inline data, rows pass altair's transformers and their limit on rows untouched.
    return alt.InlineData(values=rows)


def _days(field: str, *, title: str = "days since the first submit") -> alt.X:
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(nice=False))


def _utilisation(result: SimulationResult) -> alt.TopLevelMixin:
    base = alt.Chart(_values(series.utilisation_rows(result)))
    percent = alt.Y("used:Q", title="% of all cores", scale=alt.Scale(domain=[0, 100]))
    used = base.mark_area(interpolate="step-after", color=_BLUE, opacity=0.85).encode(
        x=_days("day"),
        y=percent,
        tooltip=[alt.Tooltip("day:Q", format=".2f"), alt.Tooltip("used:Q", format=".1f")],
    )
    there = base.mark_line(interpolate="step-after", color="#c8553d", strokeWidth=1.2).encode(
        x=_days("day"), y=alt.Y("there:Q")
    )
    mean = f"{100 * result.summary.utilisation:.1f} % in the mean"
    return alt.layer(used, there).properties(
        width=WIDTH,
        height=180,
        title=alt.Title(
            "Utilisation",
            subtitle=f"cores in use ({mean}); red line: cores of nodes that are there",
        ),
    )


def _queues(result: SimulationResult) -> alt.TopLevelMixin:
    rows = series.queue_rows(result)
    names = list(dict.fromkeys(row["queue"] for row in rows))
    chart: alt.Chart = (
        alt.Chart(_values(rows))
        .mark_area(interpolate="step-after")
        .encode(
            x=_days("day"),
            y=alt.Y("jobs:Q", title="waiting jobs", stack="zero"),
            color=alt.Color(
                "queue:N",
                title="queue",
                scale=alt.Scale(domain=names, range=list(_QUEUE_COLOURS[: len(names)])),
                sort=names,
            ),
            order=alt.Order("place:Q"),
            tooltip=["queue:N", alt.Tooltip("day:Q", format=".2f"), alt.Tooltip("jobs:Q")],
        )
        .properties(
            width=WIDTH,
            height=180,
            title=alt.Title("Queue lengths", subtitle="jobs that wait, the longest queues by name"),
        )
    )
    return chart


def _gantt(result: SimulationResult) -> alt.TopLevelMixin:
    part = series.gantt_slice(result)
    count = len(part["nodes"])
    every = max(1, -(-count // 32))
    labels = {i + 0.5: node for i, node in enumerate(part["nodes"]) if i % every == 0}
    axis = alt.Axis(
        values=list(labels),
        labelExpr=_label_expression(labels),
        ticks=False,
        domain=False,
        grid=False,
    )
    y = alt.Y(
        "bottom:Q",
        title=None,
        axis=axis,
        scale=alt.Scale(domain=[count, 0], nice=False),
    )
    x = alt.X(
        "start:Q",
        title="days since the first submit",
        scale=alt.Scale(domain=[part["start"], part["end"]], nice=False),
    )
    outcomes = [name for name in _OUTCOMES if any(bar["outcome"] == name for bar in part["bars"])]
    outages = (
        alt.Chart(_values(list(part["outages"])))
        .mark_rect(color="#2b2b2b", opacity=0.8)
        .encode(x=x, x2="end:Q", y=y, y2="top:Q", tooltip=["node:N", "start:Q", "end:Q"])
    )
    bars = (
        alt.Chart(_values(list(part["bars"])))
        .mark_rect(stroke="white", strokeWidth=0.15, clip=True)
        .encode(
            x=x,
            x2="end:Q",
            y=y,
            y2="top:Q",
            color=alt.Color(
                "outcome:N",
                title="run",
                scale=alt.Scale(domain=outcomes, range=[_OUTCOMES[name] for name in outcomes]),
            ),
            tooltip=["job:N", "queue:N", "node:N", "cores:Q", "attempt:Q", "outcome:N"],
        )
    )
    return alt.layer(bars, outages).properties(
        width=WIDTH,
        height=max(120, min(26 * count, 620)),
        title=alt.Title(
            part["title"],
            subtitle="a band is a node, its height its cores; black: the node was lost",
        ),
    )


def _label_expression(labels: Mapping[float, str]) -> str:
    """A Vega expression from the middle of a band to the name of its node."""
    names = ", ".join(f"'{at}': '{node}'" for at, node in sorted(labels.items()))
    return f"{{{names}}}['' + datum.value]"


def _waits(result: SimulationResult) -> alt.TopLevelMixin:
    rows = series.wait_rows(result)
    order = [row["queue"] for row in rows]
    base = alt.Chart(_values(list(rows))).encode(
        y=alt.Y("queue:N", title=None, sort=order),
        tooltip=["queue:N", "started:Q", "low:Q", "median:Q", "high:Q", "p95:Q"],
    )
    hours = alt.Scale(type="symlog", constant=0.1)
    longest = max((row["p95"] for row in rows), default=0.0)
    reach = base.mark_rule(color=_BLUE).encode(
        x=alt.X(
            "low:Q",
            title="wait in hours (bar: quartiles, tick: median, dot: 95 %)",
            scale=hours,
            axis=alt.Axis(values=[tick for tick in _HOURS if tick <= longest], format="~g"),
        ),
        x2="p95:Q",
    )
    box = base.mark_bar(color=_BLUE, opacity=0.6, height={"band": 0.6}).encode(
        x=alt.X("low:Q", scale=hours), x2="high:Q"
    )
    middle = base.mark_tick(color="black", thickness=2).encode(x=alt.X("median:Q", scale=hours))
    last = base.mark_point(color=_BLUE, filled=True).encode(x=alt.X("p95:Q", scale=hours))
    many = len({job.queue for job in result.jobs})
    shown = "" if many <= len(rows) else f": the {len(rows)} of {many} queues with the most jobs"
    return alt.layer(reach, box, middle, last).properties(
        width=WIDTH,
        height=max(60, 18 * len(rows)),
        title=alt.Title("Wait by queue", subtitle=f"from submit to first start{shown}"),
    )
