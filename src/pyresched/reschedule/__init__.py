"""When a failed run is tried again, what its history keeps, and what is wrong with a policy.

Owns policies and verdicts and knows no job; merging of what users wrote lies in `spec`. Pure
functions on integer nanoseconds that saturate at the ends of int64; the rules and where they
differ from Nomad's are in docs/reschedule.md.
"""

from pyresched._core import next_many
from pyresched.reschedule.followups import followups
from pyresched.reschedule.history import extended
from pyresched.reschedule.policy import JobType, ReschedulePolicy, Verdict, VerdictReason
from pyresched.reschedule.validation import Dialect, Problem, ProblemCode, Severity, problems
from pyresched.reschedule.verdicts import attempted, next_delay, next_reschedule

__all__ = [
    "Dialect",
    "JobType",
    "Problem",
    "ProblemCode",
    "ReschedulePolicy",
    "Severity",
    "Verdict",
    "VerdictReason",
    "attempted",
    "extended",
    "followups",
    "next_delay",
    "next_many",
    "next_reschedule",
    "problems",
]
