"""The configuration of a scheduler: typed, complete by default, checked when it is made.

Owns the defaults and their limits; relies on `config.reading` for files.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from pyresched.config.reading import Fault, decode, read_mapping, refuse
from pyresched.errors import ConfigError, InputError, did_you_mean
from pyresched.model import (
    JobType,
    PoolName,
    PriorityClass,
    Queue,
    RescheduleBlock,
    ReschedulePolicy,
    Resource,
    ResourceSpec,
    parse_quantity,
)
from pyresched.model.durations import WrittenDuration
from pyresched.model.queues import queue_faults

__all__ = ["PoolConfig", "SchedulingConfig", "config_from", "load_config"]

_INT32_MAX: Final = 2**31 - 1
# The store counts versions of a queue's row; an operator does not.
_HIDDEN: Final[Mapping[type, frozenset[str]]] = {Queue: frozenset({"version"})}


class PoolConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that are scheduled in one round.

    `fairness_resources` replaces the multipliers of the whole configuration in this pool.
    """

    name: PoolName
    fairness_resources: dict[str, float] | None = None

    if TYPE_CHECKING:  # who makes one need not wrap its name

        def __init__(
            self, *, name: str, fairness_resources: dict[str, float] | None = None
        ) -> None: ...


class SchedulingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All that an operator sets. `SchedulingConfig()` works as it stands.

    Raises ConfigError for values that cannot be used, TypeError for parts of another kind.
    `fairness_resources` are multipliers by resource name (a resource left out does not count;
    none written: each counts once); `max_queue_lookback` 0 means no limit; `lease_duration` None
    means that a lease lasts until its run ends, else it is in ns; `reschedule` replaces fields of
    the default policy of a job type; a submit to an unknown queue makes it, with weight 1, unless
    `create_queues` is false.
    """

    resources: tuple[Resource, ...] = (Resource("cpu", "1m"), Resource("memory", "1Mi"))
    priority_classes: tuple[PriorityClass, ...] = (
        PriorityClass(name="default", priority=1000),
        PriorityClass(name="best-effort", priority=0, preemptible=True),
    )
    default_priority_class: str = "default"
    pools: tuple[PoolConfig, ...] = (PoolConfig(name="default"),)
    fairness_resources: dict[str, float] = {}
    protected_fraction: float = 1.0
    max_queue_lookback: int = 0
    lease_duration: WrittenDuration | None = None
    reschedule: dict[str, RescheduleBlock] = {}
    queues: tuple[Queue, ...] = ()
    create_queues: bool = True

    def __post_init__(self) -> None:
        _refuse_other_kinds(self)
        if faults := list(_faults(self)):
            raise refuse(faults, source="", error=ConfigError)
        if not self.fairness_resources:
            each_once = {resource.name: 1.0 for resource in self.resources}
            structs.force_setattr(self, "fairness_resources", each_once)

    def __repr__(self) -> str:
        return (
            f"<SchedulingConfig resources {_listed(self.resources)}; "
            f"classes {_listed(self.priority_classes)}; pools {_listed(self.pools)}>"
        )

    @cached_property
    def spec(self) -> ResourceSpec:
        """Names, units and order of every resource vector."""
        return ResourceSpec(self.resources)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The distinct priorities of the classes, ascending."""
        return tuple(sorted({each.priority for each in self.priority_classes}))

    def priority_class(self, name: str) -> PriorityClass:
        """The class *name*. Raises ConfigError when there is none."""
        found = self._classes.get(name)
        if found is None:
            near = did_you_mean(name, self._classes)
            raise ConfigError(f"unknown priority class {name!r}; {near}")
        return found

    def pool(self, name: str) -> PoolConfig:
        """The pool *name*. Raises ConfigError when there is none."""
        for each in self.pools:
            if each.name == name:
                return each
        near = did_you_mean(name, (each.name for each in self.pools))
        raise ConfigError(f"unknown pool {name!r}; {near}")

    def multipliers(self, pool: str) -> tuple[float, ...]:
        """What each resource counts for in the fairness of *pool*, in vector order."""
        own = self.pool(pool).fairness_resources
        counted = self.fairness_resources if own is None else own
        return tuple(counted.get(resource.name, 0.0) for resource in self.resources)

    def policy_for(self, job_type: str) -> ReschedulePolicy | None:
        """The reschedule policy of a *job_type* that writes none; None where it never has one.

        Raises ConfigError for an unknown job type.
        """
        if job_type not in _JOB_TYPES:
            near = did_you_mean(job_type, _JOB_TYPES)
            raise ConfigError(f"unknown job type {job_type!r}; {near}")
        default = ReschedulePolicy.default(job_type)
        block = self.reschedule.get(job_type)
        return default if default is None or block is None else block.over(default)

    @cached_property
    def _classes(self) -> dict[str, PriorityClass]:
        return {each.name: each for each in self.priority_classes}


def _listed(named: Sequence[Resource] | Sequence[PriorityClass] | Sequence[PoolConfig]) -> str:
    """The first names of several."""
    names = [each.name for each in named]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"


_LISTED: Final = 4
_JOB_TYPES: Final = tuple(each.value for each in JobType)


def load_config(path: str | Path) -> SchedulingConfig:
    """The configuration in a TOML, YAML or JSON file.

    Raises ConfigError, one line with the file, the key and what would be right.
    """
    return config_from(read_mapping(path, error=ConfigError), source=str(path))


def config_from(written: Mapping[str, Any], *, source: str = "") -> SchedulingConfig:
    """The configuration of *written* keys; *source* names where they come from in errors."""
    return decode(
        written,
        SchedulingConfig,
        source=source,
        error=ConfigError,
        hidden=_HIDDEN,
        checks={Queue: _queue_faults},
    )


def _refuse_other_kinds(config: SchedulingConfig) -> None:
    """Raise TypeError for a part that is none: a name, say, in place of what has that name."""
    for field, kind in (
        ("resources", Resource),
        ("priority_classes", PriorityClass),
        ("pools", PoolConfig),
        ("queues", Queue),
    ):
        for i, part in enumerate(getattr(config, field)):
            if not isinstance(part, kind):
                raise TypeError(f"{field}[{i}] is a {kind.__name__}, got {part!r}")


def _faults(config: SchedulingConfig) -> Iterator[Fault]:
    """Each value that cannot be used."""
    yield from _resource_faults(config)
    yield from _class_faults(config)
    names = [resource.name for resource in config.resources]
    yield from _name_faults("pools", (each.name for each in config.pools))
    if not config.pools:
        yield Fault("pools", "none is left; write at least one")
    yield from _multiplier_faults("fairness_resources", config.fairness_resources, names)
    for i, pool in enumerate(config.pools):
        if pool.fairness_resources is not None:
            path = f"pools[{i}].fairness_resources"
            yield from _multiplier_faults(path, pool.fairness_resources, names)
            if not pool.fairness_resources:
                yield Fault(path, "nothing would count; leave it out or name a resource")
    yield from _name_faults("queues", (queue.name for queue in config.queues))
    if not (math.isfinite(config.protected_fraction) and config.protected_fraction >= 0):
        shown = config.protected_fraction
        yield Fault("protected_fraction", f"{shown} is no share; write a finite number from 0")
    if config.max_queue_lookback < 0:
        shown = config.max_queue_lookback
        yield Fault("max_queue_lookback", f"{shown} is negative; write 0 (no limit) or more")
    if config.max_queue_lookback > _INT32_MAX:
        yield Fault("max_queue_lookback", f"is above {_INT32_MAX}; write less, or 0 (no limit)")
    if config.lease_duration is not None and config.lease_duration <= 0:
        sentence = "a lease must last; write a duration above 0, or leave it out for no end"
        yield Fault("lease_duration", sentence)
    yield from _reschedule_faults(config.reschedule)


def _name_faults(path: str, names: Iterable[str]) -> Iterator[Fault]:
    """Names that are empty or there twice."""
    for i, name in enumerate(given := list(names)):
        if not name:
            yield Fault(f"{path}[{i}].name", "is empty; write a name")
        if name in given[:i]:
            sentence = f"{name!r} is there twice; keep one"
            yield Fault(f"{path}[{i}].name", sentence)


def _resource_faults(config: SchedulingConfig) -> Iterator[Fault]:
    if not config.resources:
        yield Fault("resources", "none is left; write at least one")
    yield from _name_faults("resources", (each.name for each in config.resources))
    for i, resource in enumerate(config.resources):
        path = f"resources[{i}].unit"
        try:
            if parse_quantity(resource.unit) <= 0:
                sentence = f"{resource.unit!r} is not above 0; write a unit such as 1, 1m or 1Mi"
                yield Fault(path, sentence)
        except InputError as bad:
            yield Fault(path, str(bad))


def _class_faults(config: SchedulingConfig) -> Iterator[Fault]:
    if not config.priority_classes:
        yield Fault("priority_classes", "none is left; write at least one")
    names = [each.name for each in config.priority_classes]
    yield from _name_faults("priority_classes", names)
    for i, each in enumerate(config.priority_classes):
        if not 0 <= each.priority <= _INT32_MAX:
            sentence = f"{each.priority} is out of range; write 0 to {_INT32_MAX}"
            yield Fault(f"priority_classes[{i}].priority", sentence)
    if names and config.default_priority_class not in names:
        sentence = f"unknown class {config.default_priority_class!r}"
        near = did_you_mean(config.default_priority_class, names)
        yield Fault("default_priority_class", f"{sentence}; {near}")


def _multiplier_faults(
    path: str, multipliers: Mapping[str, float], known: list[str]
) -> Iterator[Fault]:
    for name, multiplier in multipliers.items():
        if name not in known:
            yield Fault(f"{path}.{name}", f"unknown resource; {did_you_mean(name, known)}")
        if not (math.isfinite(multiplier) and multiplier >= 0):
            sentence = f"{multiplier} is no multiplier; write a finite number from 0"
            yield Fault(f"{path}.{name}", sentence)
    if multipliers and not any(multipliers.values()):
        yield Fault(path, "nothing would count; give one resource a multiplier above 0")


def _queue_faults(written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return queue_faults(written["name"], written.get("weight", 1.0))


def _reschedule_faults(blocks: Mapping[str, RescheduleBlock]) -> Iterator[Fault]:
    for job_type, block in blocks.items():
        path = f"reschedule.{job_type}"
        if job_type not in _JOB_TYPES:
            yield Fault(path, f"unknown job type; {did_you_mean(job_type, _JOB_TYPES)}")
        elif ReschedulePolicy.default(job_type) is None:
            sentence = f"a {job_type} job is never rescheduled; leave it out"
            yield Fault(path, sentence)
        for name, value in block.written().items():
            if name in _NEVER_NEGATIVE and isinstance(value, int) and value < 0:
                yield Fault(f"{path}.{name}", f"{value} is negative; write 0 or more")
        if block.delay_function not in _DELAY_FUNCTIONS and "delay_function" in block.written():
            sentence = f"{block.delay_function!r} is not one of them"
            near = did_you_mean(str(block.delay_function), _DELAY_FUNCTIONS)
            yield Fault(f"{path}.delay_function", f"{sentence}; {near}")


_NEVER_NEGATIVE: Final = frozenset({"attempts", "interval", "delay", "max_delay"})
_DELAY_FUNCTIONS: Final = ("constant", "exponential", "fibonacci")
