"""The configuration of a scheduler: typed, complete by default, checked when it is made.

Owns the defaults and their limits; relies on `config.reading` for files.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, structs

from pyresched.config.classes import class_faults, node_type_faults
from pyresched.config.faults import (
    count_faults,
    fraction_faults,
    fraction_table_faults,
    multiplier_faults,
    name_faults,
    rate_faults,
    share_faults,
)
from pyresched.config.pools import PoolConfig, pool_faults
from pyresched.config.reading import Fault, decode, key_path, read_mapping, refuse
from pyresched.durations import WrittenDuration
from pyresched.errors import ConfigError, InputError, did_you_mean
from pyresched.model import (
    AwayEntry,
    AwayNodeType,
    JobType,
    PriorityClass,
    Queue,
    RescheduleBlock,
    ReschedulePolicy,
    Resource,
    ResourceCondition,
    ResourceSpec,
    ResourceVector,
    RestartBlock,
    Rounding,
    Taint,
    WellKnownNodeType,
    parse_quantity,
)
from pyresched.model.queues import queue_faults
from pyresched.reschedule import Dialect, RestartPolicy
from pyresched.reschedule.followups import WINDOW

__all__ = ["SchedulingConfig", "config_from", "load_config"]

# Limits in whole numbers, of which 0 is none.
_COUNTS: Final = (
    "max_queue_lookback",
    "max_tries_per_round",
    "max_tries_per_queue",
    "max_unacknowledged_runs",
)
_RATE_SCOPES: Final = ("all_pools", "pool")
# The store counts versions of a queue's row; an operator does not.
_HIDDEN: Final[Mapping[type, frozenset[str]]] = {Queue: frozenset({"version"})}


class SchedulingConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All that an operator sets. `SchedulingConfig()` works as it stands.

    Raises ConfigError for values that cannot be used, TypeError for parts of another kind.
    `fairness_resources` are multipliers by resource name (a resource left out does not count;
    none written: each counts once); of the limits in whole numbers 0 means no limit, of rates
    and fractions what is not written; `rate` and `queue_rate` are jobs each second, in bursts of
    so many; with `rate_scope` "pool" each pool has its own; `lease_duration` None
    means that a lease lasts until its run ends, else it is in ns; `reschedule` replaces fields of
    the default policy of a job type; jobs that are due within `reschedule_window` ns are served
    together; a submit wants delays of at least `reschedule_min_delay` ns and checks attempts
    against intervals as `reschedule_dialect` says; `restart` is to restarts what `reschedule` is
    to reschedules; a submit to an unknown queue makes it, with weight 1, unless
    `create_queues` is false. docs/configuration.md has all keys.
    """

    resources: tuple[Resource, ...] = (Resource("cpu", "1m"), Resource("memory", "1Mi"))
    priority_classes: tuple[PriorityClass, ...] = (
        PriorityClass(name="default", priority=1000),
        PriorityClass(name="best-effort", priority=0, preemptible=True),
    )
    default_priority_class: str = "default"
    node_types: tuple[WellKnownNodeType, ...] = ()
    pools: tuple[PoolConfig, ...] = (PoolConfig(name="default"),)
    fairness_resources: dict[str, float] = {}
    protected_fraction: float = 1.0
    prefer_large_jobs: bool = False
    max_queue_lookback: int = 0
    max_fraction_to_schedule: dict[str, float] = {}
    rate: float | None = None
    burst: int | None = None
    queue_rate: float | None = None
    queue_burst: int | None = None
    rate_scope: Literal["all_pools", "pool"] = "all_pools"
    max_tries_per_round: int = 0
    max_tries_per_queue: int = 0
    max_unacknowledged_runs: int = 0
    lease_duration: WrittenDuration | None = None
    reschedule: dict[str, RescheduleBlock] = {}
    reschedule_window: WrittenDuration = WINDOW
    reschedule_min_delay: WrittenDuration = 0
    reschedule_dialect: Dialect = Dialect.NOMAD
    restart: dict[str, RestartBlock] = {}
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
        """The distinct priorities of the classes, at home and away, ascending."""
        at_home = {each.priority for each in self.priority_classes}
        away = {entry.priority for each in self.priority_classes for entry in each.away}
        return tuple(sorted(at_home | away))

    @cached_property
    def has_floating(self) -> bool:
        """Whether any resource belongs to pools instead of nodes."""
        return any(resource.floating for resource in self.resources)

    def floating_total(self, pool: str) -> ResourceVector:
        """What *pool* has of floating resources, rounded down; nothing of the others."""
        return self.spec.vector(self.pool(pool).floating, rounding=Rounding.DOWN)

    def on_nodes(self, request: ResourceVector) -> ResourceVector:
        """What of *request* a node must have: all but the floating resources."""
        if not self.has_floating:
            return request
        return ResourceVector(
            [
                0 if resource.floating else amount
                for resource, amount in zip(self.resources, request, strict=True)
            ]
        )

    def node_type(self, name: str) -> WellKnownNodeType:
        """The well-known node type *name*. Raises ConfigError when there is none."""
        for each in self.node_types:
            if each.name == name:
                return each
        near = did_you_mean(name, (each.name for each in self.node_types))
        raise ConfigError(f"unknown node type {name!r}; {near}")

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

    def protected_fraction_of(self, pool: str) -> float:
        """The part of its share up to which a queue loses nothing in *pool*."""
        own = self.pool(pool).protected_fraction
        return self.protected_fraction if own is None else own

    def fractions_to_schedule(self, pool: str) -> Mapping[str, float]:
        """What part of *pool* a round may give out anew, by resource; no limit for others."""
        own = self.pool(pool).max_fraction_to_schedule
        return self.max_fraction_to_schedule if own is None else own

    def check_queue(self, queue: Queue) -> None:
        """Raise ConfigError for limits of *queue* that name what is not configured."""
        faults = list(
            _limit_faults(
                f"queue {queue.name!r}",
                queue,
                list(self._classes),
                [pool.name for pool in self.pools],
                list(self.spec.names),
            )
        )
        if faults:
            raise refuse(faults, source="", error=ConfigError)

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

    def restart_for(self, job_type: str) -> RestartPolicy:
        """The restart policy of a group of a *job_type* that writes none.

        Raises InputError for an unknown job type.
        """
        default = RestartPolicy.default(job_type)
        block = self.restart.get(job_type)
        return default if block is None else structs.replace(default, **block.written())

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
        ("node_types", WellKnownNodeType),
        ("pools", PoolConfig),
        ("queues", Queue),
    ):
        _refuse_others(field, getattr(config, field), kind)
    for i, node_type in enumerate(config.node_types):
        _refuse_others(f"node_types[{i}].taints", node_type.taints, Taint)
        _refuse_others(f"node_types[{i}].when", node_type.when, ResourceCondition)
    for i, each in enumerate(config.priority_classes):
        path = f"priority_classes[{i}].away"
        _refuse_others(path, each.away, AwayEntry)
        for k, entry in enumerate(each.away):
            _refuse_others(f"{path}[{k}].node_types", entry.node_types, AwayNodeType)
            for n, added in enumerate(entry.node_types):
                own = f"{path}[{k}].node_types[{n}].when"
                _refuse_others(own, added.when, ResourceCondition)


def _refuse_others(path: str, parts: Sequence[object], kind: type) -> None:
    """Raise TypeError for the first of *parts* that is no *kind*."""
    for i, part in enumerate(parts):
        if not isinstance(part, kind):
            article = "an" if kind.__name__.startswith("A") else "a"
            raise TypeError(f"{path}[{i}] is {article} {kind.__name__}, got {part!r}")


def _faults(config: SchedulingConfig) -> Iterator[Fault]:
    """Each value that cannot be used."""
    resources = [resource.name for resource in config.resources]
    classes = [each.name for each in config.priority_classes]
    pools = [pool.name for pool in config.pools]
    yield from _resource_faults(config.resources)
    yield from node_type_faults(config.node_types, resources)
    yield from class_faults(config.priority_classes, config.node_types, pools, resources)
    if classes and config.default_priority_class not in classes:
        sentence = f"unknown class {config.default_priority_class!r}"
        near = did_you_mean(config.default_priority_class, classes)
        yield Fault("default_priority_class", f"{sentence}; {near}")
    yield from pool_faults(config.pools, config.resources)
    yield from multiplier_faults("fairness_resources", config.fairness_resources, resources)
    yield from name_faults("queues", (queue.name for queue in config.queues))
    for i, queue in enumerate(config.queues):
        yield from _limit_faults(f"queues[{i}]", queue, classes, pools, resources)
    yield from share_faults("protected_fraction", config.protected_fraction)
    yield from fraction_faults(
        "max_fraction_to_schedule", config.max_fraction_to_schedule, resources
    )
    yield from rate_faults("", "", config.rate, config.burst)
    yield from rate_faults("", "queue_", config.queue_rate, config.queue_burst)
    if config.rate_scope not in _RATE_SCOPES:
        sentence = f"{config.rate_scope!r} is not one of them"
        yield Fault("rate_scope", f"{sentence}; {did_you_mean(config.rate_scope, _RATE_SCOPES)}")
    for name in _COUNTS:
        yield from count_faults(name, getattr(config, name))
    if config.lease_duration is not None and config.lease_duration <= 0:
        sentence = "a lease must last; write a duration above 0, or leave it out for no end"
        yield Fault("lease_duration", sentence)
    if config.reschedule_window < 0:
        sentence = f"{config.reschedule_window} is negative; write 0 for none"
        yield Fault("reschedule_window", sentence)
    if config.reschedule_min_delay < 0:
        sentence = f"{config.reschedule_min_delay} is negative; write 0 for none"
        yield Fault("reschedule_min_delay", sentence)
    yield from _reschedule_faults(config.reschedule)
    yield from _restart_faults(config.restart)


def _resource_faults(resources: Sequence[Resource]) -> Iterator[Fault]:
    if not resources:
        yield Fault("resources", "none is left; write at least one")
    elif all(resource.floating for resource in resources):
        yield Fault("resources", "no node would have any; leave one that is not floating")
    yield from name_faults("resources", (each.name for each in resources))
    for i, resource in enumerate(resources):
        path = f"resources[{i}].unit"
        try:
            if parse_quantity(resource.unit) <= 0:
                sentence = f"{resource.unit!r} is not above 0; write a unit such as 1, 1m or 1Mi"
                yield Fault(path, sentence)
        except InputError as bad:
            yield Fault(path, str(bad))


def _limit_faults(
    path: str,
    queue: Queue,
    classes: Sequence[str],
    pools: Sequence[str],
    resources: Sequence[str],
) -> Iterator[Fault]:
    """What the limits of *queue* name and is not there."""
    limits = queue.max_fraction_by_class
    own = key_path(path, "max_fraction_by_class")
    yield from fraction_table_faults(own, "class", limits, classes, resources)
    own = key_path(path, "max_fraction_by_class_by_pool")
    for name, by_pool in queue.max_fraction_by_class_by_pool.items():
        at = key_path(own, name)
        if name not in classes:
            yield Fault(at, f"unknown class; {did_you_mean(name, classes)}")
        yield from fraction_table_faults(at, "pool", by_pool, pools, resources)


def _queue_faults(written: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    return queue_faults(
        written["name"],
        written.get("weight", 1.0),
        written.get("max_fraction_by_class", {}),
        written.get("max_fraction_by_class_by_pool", {}),
    )


def _restart_faults(blocks: Mapping[str, RestartBlock]) -> Iterator[Fault]:
    for job_type, block in blocks.items():
        path = f"restart.{job_type}"
        if job_type not in _JOB_TYPES:
            yield Fault(path, f"unknown job type; {did_you_mean(job_type, _JOB_TYPES)}")
            continue
        written = block.written()
        negative = [
            name for name, value in written.items() if not isinstance(value, str) and value < 0
        ]
        for name in negative:
            yield Fault(f"{path}.{name}", f"{written[name]} is negative; write 0 or more")
        if not negative:
            policy = structs.replace(RestartPolicy.default(job_type), **written)
            yield from (Fault(path, problem.sentence) for problem in policy.problems())


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
