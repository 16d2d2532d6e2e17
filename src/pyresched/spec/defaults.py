"""Merging of blocks that may stand on the job and on a group, over defaults by job type.

Field by field, the last writer wins; written zeros, false and "" count as written. The order
and the rule `unlimited-alone` are in docs/reschedule.md.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, TypeVar

from immutables import Map
from msgspec import UNSET, Struct, UnsetType, structs

from pyresched.model import (
    Block,
    DisconnectBlock,
    DisconnectRule,
    JobType,
    MigrateBlock,
    MigrateRule,
    RescheduleBlock,
    ReschedulePolicy,
    RestartBlock,
    UpdateBlock,
    UpdateRule,
)
from pyresched.reschedule import RestartPolicy

__all__ = [
    "Origin",
    "merge_disconnect",
    "merge_migrate",
    "merge_reschedule",
    "merge_restart",
    "merge_update",
]

S = TypeVar("S", bound=Struct)
# Every field of it is zero, as for a job type that has no default to fill in.
_ZERO: Final = ReschedulePolicy(delay_function="")
_NEVER_RESCHEDULED: Final = (JobType.SYSTEM.value, JobType.SYSBATCH.value)


class Origin(Enum):
    """Where the value of a field comes from."""

    GROUP = "written in the group"
    JOB = "inherited from the job"
    DEFAULT = "default of the job type"
    UNUSED = "unused beside unlimited = true"  # rule `unlimited-alone`


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
    if default is None and job_block is None and group_block is None:
        return None, {}
    block, origins = _overlaid(RescheduleBlock, job_block, group_block)
    if block.unlimited is True:
        unused = {name for name in ("attempts", "interval") if origins[name] is Origin.DEFAULT}
        origins = {name: Origin.UNUSED if name in unused else origins[name] for name in origins}
    return block.over(_ZERO if default is None else default), origins


def merge_restart(
    group_block: RestartBlock | None, default: RestartPolicy
) -> tuple[RestartPolicy, Mapping[str, Origin]]:
    """The restart policy of a group, which alone may write one, over that of the job type."""
    return _merged(default, RestartBlock, None, group_block)


def merge_disconnect(
    group_block: DisconnectBlock | None,
) -> tuple[DisconnectRule | None, Mapping[str, Origin]]:
    """What becomes of runs out of reach; no block is None, which tolerates nothing."""
    if group_block is None:
        return None, {}
    return _merged(DisconnectRule(), DisconnectBlock, None, group_block)


def merge_migrate(
    job_block: MigrateBlock | None, group_block: MigrateBlock | None, job_type: str
) -> tuple[MigrateRule | None, Mapping[str, Origin]]:
    """How a group leaves draining nodes: a service by a rule in any case, others by none.

    A block on another type gives a rule, which validation refuses.
    """
    if job_type != JobType.SERVICE.value and job_block is None and group_block is None:
        return None, {}
    return _merged(MigrateRule(), MigrateBlock, job_block, group_block)


def merge_update(
    job_block: UpdateBlock | None, group_block: UpdateBlock | None
) -> tuple[UpdateRule | None, Mapping[str, Origin]]:
    """Until when a deployment must come up; no block is None, a group without deployments.

    What can only be refused (`canary`, `auto_promote`, `auto_revert`) is no part of the rule.
    """
    if job_block is None and group_block is None:
        return None, {}
    block, origins = _overlaid(UpdateBlock, job_block, group_block)
    known = UpdateRule.__struct_fields__
    fields: dict[str, Any] = {
        name: value for name, value in block.written().items() if name in known
    }
    return UpdateRule(**fields), {name: origins[name] for name in known}


def _merged(
    default: S, kind: type[Block], job_block: Block | None, group_block: Block | None
) -> tuple[S, Mapping[str, Origin]]:
    """*default* under what the two blocks write, and the origin of each field."""
    block, origins = _overlaid(kind, job_block, group_block)
    return structs.replace(default, **block.written()), origins


B = TypeVar("B", bound=Block)


def _overlaid(
    kind: type[B], job_block: Block | None, group_block: Block | None
) -> tuple[B, Mapping[str, Origin]]:
    """Both blocks as one, the group's over the job's, and the origin of each field."""
    written: Map[str, Any] = Map()
    origins: Map[str, Origin] = Map(dict.fromkeys(kind.__struct_fields__, Origin.DEFAULT))
    for origin, block in ((Origin.JOB, job_block), (Origin.GROUP, group_block)):
        if block is not None:
            fields = block.written()
            written = written.update(fields)
            origins = origins.update(dict.fromkeys(fields, origin))
    # In the order of the fields: that of a hash map differs from process to process.
    return kind(**written), {name: origins[name] for name in kind.__struct_fields__}


def _default_of(job_type: str) -> ReschedulePolicy | None:
    """What fills the gaps for *job_type*; zeros for a type that nobody knows."""
    if job_type in _NEVER_RESCHEDULED:
        return None
    known = [each.value for each in JobType]
    return ReschedulePolicy.default(job_type) if job_type in known else _ZERO
