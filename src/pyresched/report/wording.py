"""A summary in words and figures for people: the table of the terminal and the page's tiles."""

from pyresched.durations import format_duration
from pyresched.model import NANOS
from pyresched.report.records import Summary

__all__ = ["figures", "span_text"]


def span_text(seconds: float | None) -> str:
    """*seconds* as people say it: `3d4h`, `2h5m`, `41.5s`; a dash for None."""
    if seconds is None:
        return "-"
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f}s"
    days, rest = divmod(round(seconds), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds_left = divmod(rest, 60)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return format_duration((minutes * 60 + seconds_left) * NANOS)


def figures(summary: Summary) -> list[tuple[str, str, str]]:
    """(name, value, detail) of each figure, most wanted first; an empty detail says nothing."""
    jobs, wait = summary.jobs, summary.wait_s
    ends = [
        f"{count:,} {name}"
        for name, count in (
            ("failed", jobs.failed),
            ("cancelled", jobs.cancelled),
            ("refused", jobs.refused),
            ("unfinished", jobs.unfinished),
        )
        if count
    ]
    return [
        ("jobs succeeded", f"{jobs.succeeded:,} of {jobs.total:,}", ", ".join(ends)),
        ("makespan", span_text(summary.makespan_s), "first submit to last end"),
        ("utilisation", f"{100 * summary.utilisation:.1f} %", "core time in use of that there"),
        (
            "wait",
            span_text(wait.mean),
            f"mean; median {span_text(wait.median)}, 95 % {span_text(wait.p95)}",
        ),
        (
            "bounded slowdown",
            "-" if summary.slowdown is None else f"{summary.slowdown:,.1f}",
            ""
            if summary.slowdown_median is None
            else f"mean; median {summary.slowdown_median:,.2f}",
        ),
        (
            "runs",
            f"{summary.runs:,}",
            f"{summary.runs_failed:,} failed, {summary.runs_lost:,} lost",
        ),
        ("reschedules", f"{summary.reschedules:,}", "of failed jobs, by their policy"),
        *(
            [("restarts", f"{summary.restarts:,}", "of processes, within their runs")]
            if summary.restarts
            else []
        ),
        ("preemptions", f"{summary.preemptions:,}", ""),
        ("node losses", f"{summary.nodes_lost:,}", ""),
        (
            "fairness",
            "-" if summary.jain is None else f"{summary.jain:.3f}",
            "Jain's index of service over queues",
        ),
    ]
