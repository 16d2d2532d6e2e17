"""What a user writes of a job: job, groups, tasks; typed, and complete by default.

A file is YAML, TOML or JSON of the same model. Every fault names the file, the key and what
would be right.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from pyresched.config.reading import Fault, decode, read_mapping, refuse
from pyresched.durations import INT64_MAX, NANOS, WrittenDuration, short_duration
from pyresched.errors import InputError
from pyresched.model import (
    Constraint,
    DisconnectBlock,
    JobType,
    MigrateBlock,
    Preference,
    QueueName,
    RescheduleBlock,
    RestartBlock,
    Spread,
    Toleration,
    UpdateBlock,
)

__all__ = ["GangBlock", "GroupSpec", "JobSpec", "TaskSpec", "load_spec", "spec_from"]

_UINT32_MAX: Final = 2**32 - 1
_MOST_JOBS: Final = 1_000_000
_NOWHERE_ELSE: Final = (JobType.SYSTEM, JobType.SYSBATCH)


class TaskSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program. A `command` that is text goes to `/bin/sh -c`, a list is started as it is.

    It may take `kill_timeout` to end when it is asked to.
    """

    name: str = "main"
    command: str | tuple[str, ...]
    env: dict[str, str | int] = {}
    resources: dict[str, str | int | float] = {}
    kill_timeout: WrittenDuration = 5 * NANOS

    @property
    def words(self) -> tuple[str, ...]:
        """The command as a list of words."""
        text = self.command
        return ("/bin/sh", "-c", text) if isinstance(text, str) else text


class GangBlock(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members placed all or none; `uniformity` is a label whose value their nodes share."""

    uniformity: str = ""


class GroupSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`count` instances alike, each of them one job.

    An instance asks for `resources` and for those of its tasks together, of nodes with the
    labels of `selector` that meet all `constraints` and one of the terms of `affinity`; of
    these it likes some better by `preferences` and `spread`. `nodes` names the only ones that
    it may use. No `scope` is all instances of the group. `gang: true` is a gang without
    uniformity.
    """

    name: str
    count: int = 1
    gang: bool | GangBlock = False
    resources: dict[str, str | int | float] = {}
    selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    affinity: tuple[tuple[Constraint, ...], ...] = ()
    preferences: tuple[Preference, ...] = ()
    spread: tuple[Spread, ...] = ()
    scope: str = ""
    nodes: tuple[str, ...] = ()
    tasks: tuple[TaskSpec, ...] = ()
    reschedule: RescheduleBlock | UnsetType = UNSET
    restart: RestartBlock | UnsetType = UNSET
    disconnect: DisconnectBlock | UnsetType = UNSET
    migrate: MigrateBlock | UnsetType = UNSET
    update: UpdateBlock | UnsetType = UNSET


class JobSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job as written. `priority` orders jobs in their queue, lower first.

    No `priority_class` is the configured default, no `pools` the first configured pool, no
    `job_set` the job's name. The jobs of one `version` are one deployment. Blocks hold for every
    group, which may write fields of its own.
    """

    name: str
    groups: tuple[GroupSpec, ...]
    type: JobType = JobType.SERVICE
    queue: QueueName = QueueName("default")
    job_set: str = ""
    priority: int = 0
    priority_class: str = ""
    pools: tuple[str, ...] = ()
    meta: dict[str, str] = {}
    version: int = 0
    reschedule: RescheduleBlock | UnsetType = UNSET
    migrate: MigrateBlock | UnsetType = UNSET
    update: UpdateBlock | UnsetType = UNSET


def load_spec(path: str | Path) -> JobSpec:
    """The job in a YAML, TOML or JSON file. Raises InputError, one line."""
    return spec_from(read_mapping(path), source=str(path))


def spec_from(written: Mapping[str, Any], *, source: str = "") -> JobSpec:
    """The job of *written* keys; *source* names where they come from in errors."""
    spec = decode(written, JobSpec, source=source)
    if faults := list(_faults(spec)):
        raise refuse(faults, source=source, error=InputError)
    return spec


def _faults(spec: JobSpec) -> Iterator[Fault]:
    """Each value that no job can have."""
    for key, name in (("name", spec.name), ("queue", spec.queue)):
        if not name:
            yield Fault(key, "is empty; write a name")
    if not 0 <= spec.priority <= _UINT32_MAX:
        yield Fault("priority", f"{spec.priority} is out of range; write 0 to {_UINT32_MAX}")
    if not 0 <= spec.version <= INT64_MAX:
        yield Fault("version", f"{spec.version} is out of range; write 0 or more")
    yield from _canary_faults(spec.update, "update")
    if not spec.groups:
        yield Fault("groups", "none is left; write at least one")
    names = [group.name for group in spec.groups]
    for i, group in enumerate(spec.groups):
        path = f"groups[{i}]"
        if not group.name:
            yield Fault(f"{path}.name", "is empty; write a name")
        if group.name in names[:i]:
            yield Fault(f"{path}.name", f"{group.name!r} is there twice; rename one")
        yield from _group_faults(group, path)
    yield from _misplaced_blocks(spec)


def _group_faults(group: GroupSpec, path: str) -> Iterator[Fault]:
    if not 0 <= group.count <= _MOST_JOBS:
        yield Fault(f"{path}.count", f"{group.count} is out of range; write 0 to {_MOST_JOBS}")
    yield from _canary_faults(group.update, f"{path}.update")
    names = [task.name for task in group.tasks]
    for i, task in enumerate(group.tasks):
        if task.kill_timeout < 0:
            sentence = f"{short_duration(task.kill_timeout)} is negative; write 0 or more"
            yield Fault(f"{path}.tasks[{i}].kill_timeout", sentence)
        if not task.name:
            yield Fault(f"{path}.tasks[{i}].name", "is empty; write a name")
        if task.name in names[:i]:
            yield Fault(f"{path}.tasks[{i}].name", f"{task.name!r} is there twice; rename one")
        if not task.command or not task.words[0]:
            yield Fault(f"{path}.tasks[{i}].command", "is empty; write a program to start")
        for name in task.env:
            if not name or "=" in name or "\0" in name:
                sentence = "is no name of a variable; use letters, digits and _"
                yield Fault(f"{path}.tasks[{i}].env", f"{name[:64]!r} {sentence}")


def _canary_faults(block: UpdateBlock | UnsetType, path: str) -> Iterator[Fault]:
    """What asks for a part of deployments that there is not."""
    written = {} if block is UNSET else block.written()
    for name in ("canary", "auto_promote", "auto_revert"):
        if written.get(name):
            sentence = "canaries, promotion and reverting are not supported; leave it out"
            yield Fault(f"{path}.{name}", sentence)


def _misplaced_blocks(spec: JobSpec) -> Iterator[Fault]:
    """Blocks that the type of the job has no use for."""
    kind = spec.type
    refused = {}
    if kind in _NOWHERE_ELSE:
        refused["reschedule"] = "is never rescheduled"
    if kind is not JobType.SERVICE:
        refused["migrate"] = "leaves draining nodes by no rule of its own"
        refused["update"] = "has no deployments"
    places = [("", spec), *((f"groups[{i}].", group) for i, group in enumerate(spec.groups))]
    for path, where in places:
        for name, sentence in refused.items():
            if getattr(where, name) is not UNSET:
                yield Fault(f"{path}{name}", f"a {kind.value} job {sentence}; drop the block")
    for i, group in enumerate(spec.groups if kind in _NOWHERE_ELSE else ()):
        if group.disconnect is not UNSET and group.disconnect.stop_on_client_after is not UNSET:
            path = f"groups[{i}].disconnect.stop_on_client_after"
            yield Fault(path, f"a {kind.value} job has none; leave it out")
