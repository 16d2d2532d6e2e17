"""When a failed run is tried again, what its history keeps, and what is wrong with a policy.

Owns policies and verdicts and knows no job; merging of what users wrote lies in `spec`. Pure
functions on integer nanoseconds that saturate at the ends of int64; the rules and where they
differ from Nomad's are in docs/reschedule.md.
"""

from pyresched._core import next_many
from pyresched.reschedule.followups import followups
from pyresched.reschedule.history import extended
from pyresched.reschedule.policy import JobType, ReschedulePolicy, refusals
from pyresched.reschedule.restarts import (
    Exit,
    RestartAction,
    RestartPolicy,
    RestartVerdict,
    next_restart,
    restart_bits,
    restarts_on_success,
)
from pyresched.reschedule.timeline import Outlook, Prospect, Step, outlook, timeline
from pyresched.reschedule.validation import (
    Dialect,
    Problem,
    ProblemCode,
    Severity,
    problems,
)
from pyresched.reschedule.verdicts import (
    Verdict,
    VerdictReason,
    attempted,
    next_delay,
    next_reschedule,
)

__all__ = [
    "Dialect",
    "Exit",
    "JobType",
    "Outlook",
    "Problem",
    "ProblemCode",
    "Prospect",
    "ReschedulePolicy",
    "RestartAction",
    "RestartPolicy",
    "RestartVerdict",
    "Severity",
    "Step",
    "Verdict",
    "VerdictReason",
    "attempted",
    "extended",
    "followups",
    "next_delay",
    "next_many",
    "next_reschedule",
    "next_restart",
    "outlook",
    "problems",
    "refusals",
    "restart_bits",
    "restarts_on_success",
    "timeline",
]
