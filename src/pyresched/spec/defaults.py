"""Merging of blocks that may stand on the job and on a group, over defaults by job type.

Field by field, the last writer wins; written zeros, false and "" count as written. The order
and the rule `unlimited-alone` are in docs/reschedule.md.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from immutables import Map
from msgspec import UNSET, UnsetType

from pyresched.model import JobType, RescheduleBlock, ReschedulePolicy

__all__ = ["Origin", "merge_reschedule"]

# Every field of it is zero, as for a job type that has no default to fill in.
_ZERO: Final = ReschedulePolicy(delay_function="")
_NEVER_RESCHEDULED: Final = (JobType.SYSTEM.value, JobType.SYSBATCH.value)


class Origin(Enum):
    """Where the value of a field comes from."""

    GROUP = "written in the group"
    JOB = "inherited from the job"
    DEFAULT = "default of the job type"


def merge_reschedule(
    job_block: RescheduleBlock | None,
    group_block: RescheduleBlock | None,
    job_type: str,
    *,
    default: ReschedulePolicy | UnsetType | None = UNSET,
) -> tuple[ReschedulePolicy | None, Mapping[str, Origin]]:
    """The effective policy of a group, and the origin of each of its fields in their order.

    *default* fills what neither block writes; when it is not given, that of the job type does
    (zeros for a type that has none). No block on a system or sysbatch job is no policy; a block
    there gives one, which validation refuses.
    """
    if default is UNSET:
        default = _default_of(job_type)
    blocks = ((Origin.JOB, job_block), (Origin.GROUP, group_block))
    if default is None and job_block is None and group_block is None:
        return None, {}
    written: Map[str, Any] = Map()
    origins: Map[str, Origin] = Map(
        dict.fromkeys(RescheduleBlock.__struct_fields__, Origin.DEFAULT)
    )
    for origin, block in blocks:
        if block is not None:
            fields = block.written()
            written = written.update(fields)
            origins = origins.update(dict.fromkeys(fields, origin))
    policy = RescheduleBlock(**written).over(_ZERO if default is None else default)
    # In the order of the fields: that of a hash map differs from process to process.
    return policy, {name: origins[name] for name in RescheduleBlock.__struct_fields__}


def _default_of(job_type: str) -> ReschedulePolicy | None:
    """What fills the gaps for *job_type*; zeros for a type that nobody knows."""
    if job_type in _NEVER_RESCHEDULED:
        return None
    known = [each.value for each in JobType]
    return ReschedulePolicy.default(job_type) if job_type in known else _ZERO
