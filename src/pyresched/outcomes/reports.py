"""What an executor says became of a run."""

from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pyresched.model import Instant, JobId, RunId

__all__ = ["FAILURES", "Report", "ReportKind", "why"]


class ReportKind(Enum):
    """The kinds of reports."""

    RUNNING = "running"  # its process has begun; said again, it renews the lease
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SETUP_FAILED = "setup_failed"  # it could not be started, so that no restart was tried
    RETURNED = "returned"  # it could not or need not run here: no blame


FAILURES: Final = frozenset({ReportKind.FAILED, ReportKind.SETUP_FAILED})
"""Those that a policy decides on."""


class Report(Struct, frozen=True, kw_only=True):
    """*kind* became of the run at `at`; `reason` is a code where there is more to say."""

    run_id: RunId
    job_id: JobId
    kind: ReportKind
    at: Instant
    reason: str = ""

    if TYPE_CHECKING:  # who makes one need not wrap its ids

        def __init__(
            self, *, run_id: str, job_id: str, kind: ReportKind, at: Instant, reason: str = ""
        ) -> None: ...


def why(report: Report) -> str:
    """The code of a failure; one that could not be started has one of its own."""
    if report.kind is ReportKind.SETUP_FAILED:
        return report.reason or ReportKind.SETUP_FAILED.value
    return report.reason
