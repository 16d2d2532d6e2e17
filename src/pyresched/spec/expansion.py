"""From a job spec to jobs: one for each instance of each group, gangs as one.

Ids and the time come in as arguments, so that the same spec gives the same jobs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from msgspec import UNSET, UnsetType

from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import (
    Block,
    Gang,
    GroupRules,
    Instant,
    Job,
    Requirements,
    ResourceVector,
    Rounding,
    rule_faults,
)
from pyresched.model.system import SYSTEM_TYPES
from pyresched.spec.defaults import (
    merge_disconnect,
    merge_migrate,
    merge_reschedule,
    merge_restart,
    merge_update,
)
from pyresched.spec.schema import GangBlock, GroupSpec, JobSpec

__all__ = ["expand"]

_FEWEST_MEMBERS: Final = 2
_KILL_TIMEOUT: Final = GroupRules().kill_timeout


def expand(
    spec: JobSpec, config: SchedulingConfig, *, ids: Callable[[], str], now: Instant
) -> tuple[Job, ...]:
    """The jobs that *spec* asks for, group by group, with their effective policy and rules.

    *ids* makes a fresh id at each call: one for each gang, then one for each of its members.
    A payload is `{"tasks": [{"name": ..., "command": [...], "env": {...}}, ...]}`. Raises
    InputError for what the configuration does not have. A group of a system or sysbatch job is
    one job, a template; more instances or a gang of it are an InputError.
    """
    with _naming(f"job {spec.name!r}"):
        pools = tuple(config.pool(name).name for name in spec.pools) or (config.pools[0].name,)
        class_name = spec.priority_class or config.default_priority_class
        config.priority_class(class_name)
        jobs: list[Job] = []
        for group in spec.groups:
            with _naming(f"group {group.name!r}"):
                _refuse_many(spec, group)
                requirements = Requirements(
                    _request(group, config),
                    class_name,
                    selector=group.selector,
                    tolerations=group.tolerations,
                    constraints=group.constraints,
                    affinity=group.affinity,
                    preferences=group.preferences,
                    spread=group.spread,
                    scope=_scope(spec, group),
                    nodes=group.nodes,
                )
            policy, _ = merge_reschedule(
                _block(spec.reschedule),
                _block(group.reschedule),
                spec.type.value,
                default=config.policy_for(spec.type.value),
            )
            rules = _rules(spec, group, config)
            gang, payload = _gang(group, ids), _payload(group)
            jobs.extend(
                Job(
                    id=ids(),
                    queue=spec.queue,
                    requirements=requirements,
                    submitted_at=now,
                    job_set=spec.job_set or spec.name,
                    priority=spec.priority,
                    pools=pools,
                    gang=gang,
                    job_type=spec.type.value,
                    policy=policy,
                    rules=rules,
                    payload=payload,
                )
                for _ in range(group.count)
            )
    return tuple(jobs)


def _refuse_many(spec: JobSpec, group: GroupSpec) -> None:
    """Raise InputError for a number of instances where there is one on each node."""
    if spec.type.value in SYSTEM_TYPES and (group.count > 1 or group.gang):
        raise InputError(f"a {spec.type.value} job is one on each node; leave out count and gang")


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """An InputError from the block says *where*."""
    try:
        yield
    except InputError as bad:
        raise InputError(f"{where}: {bad}") from None


B = TypeVar("B", bound=Block)


def _block(written: B | UnsetType) -> B | None:
    return None if written is UNSET else written


def _rules(spec: JobSpec, group: GroupSpec, config: SchedulingConfig) -> GroupRules:
    """The effective rules of *group*, which its jobs share. Raises InputError for what is wrong."""
    restart, _ = merge_restart(_block(group.restart), config.restart_for(spec.type.value))
    disconnect, _ = merge_disconnect(_block(group.disconnect))
    migrate, _ = merge_migrate(_block(spec.migrate), _block(group.migrate), spec.type.value)
    update, _ = merge_update(_block(spec.update), _block(group.update))
    rules = GroupRules(
        group=f"{_escaped(spec.name)}/{_escaped(group.name)}",
        count=group.count,
        version=spec.version,
        restart=restart,
        disconnect=disconnect,
        migrate=migrate,
        update=update,
        kill_timeout=max((task.kill_timeout for task in group.tasks), default=_KILL_TIMEOUT),
    )
    for name, sentence in rule_faults(rules):
        raise InputError(f"group {group.name!r}: {name}: {sentence}")
    return rules


def _escaped(name: str) -> str:
    """*name* without a slash, so that no two pairs of names are one group."""
    return name.replace("%", "%25").replace("/", "%2F")


def _request(group: GroupSpec, config: SchedulingConfig) -> ResourceVector:
    """What one instance asks for: the group and its tasks together."""
    parts = [group.resources, *(task.resources for task in group.tasks)]
    return config.spec.sum(config.spec.vector(part, rounding=Rounding.UP) for part in parts)


def _scope(spec: JobSpec, group: GroupSpec) -> str:
    """Among which jobs the group counts; "" if it counts nothing, so that alike groups share a key."""
    counts = group.spread or any(each.distinct for each in group.constraints)
    return group.scope or (f"{spec.queue}/{spec.name}/{group.name}" if counts else "")


def _gang(group: GroupSpec, ids: Callable[[], str]) -> Gang | None:
    """One gang for all instances; a single instance needs none."""
    if group.gang is False or group.count < _FEWEST_MEMBERS:
        return None
    uniformity = group.gang.uniformity if isinstance(group.gang, GangBlock) else ""
    return Gang(ids(), group.count, uniformity)


def _payload(group: GroupSpec) -> dict[str, Any] | None:
    """What an executor starts; plain values, so that any store can keep it."""
    if not group.tasks:
        return None
    return {
        "tasks": [
            {
                "name": task.name,
                "command": list(task.words),
                "env": {name: str(value) for name, value in task.env.items()},
            }
            for task in group.tasks
        ]
    }
