"""Pseudonyms for the names that people chose, such that a round decides the same up to them.

Names break ties, so a pseudonym stands in the order of its kind where the name stood. Names
of the configuration (resources, classes, pools) and all amounts and times stay. Serves INV-R7.
"""

import typing
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, cast

from msgspec import Struct, structs

from pyresched.config import PoolConfig
from pyresched.model import (
    Constraint,
    ExecutorName,
    Gang,
    GangId,
    Job,
    JobId,
    Node,
    NodeId,
    Operator,
    Preference,
    Queue,
    QueueName,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    Run,
    RunId,
    Spread,
    Taint,
    Toleration,
)

__all__ = ["Named", "anonymous"]

T = TypeVar("T")


class _Kind(StrEnum):
    """What a name is of; names of two kinds are never compared."""

    JOB = "job"
    JOB_SET = "set"
    RUN = "run"
    QUEUE = "queue"
    GANG = "gang"
    NODE = "node"
    NODE_TYPE = "type"
    EXECUTOR = "executor"
    LABEL = "label"
    VALUE = "value"
    SCOPE = "scope"


_KINDS: Final[Mapping[object, _Kind]] = {
    JobId: _Kind.JOB,
    RunId: _Kind.RUN,
    QueueName: _Kind.QUEUE,
    GangId: _Kind.GANG,
    NodeId: _Kind.NODE,
    ExecutorName: _Kind.EXECUTOR,
}
# What these take is renamed; the values of all others are read, so what they take is told.
_BY_VALUE: Final = frozenset({Operator.IN, Operator.NOT_IN, Operator.EQUAL, Operator.NOT_EQUAL})
_VALUELESS: Final = frozenset(
    {Operator.EXISTS, Operator.DOES_NOT_EXIST, Operator.IS_SET, Operator.IS_NOT_SET}
)
_COUNTING: Final = frozenset({Operator.DISTINCT_HOSTS, Operator.DISTINCT_PROPERTY})
_NO_VALUE: Final = "-"  # of no node: every other pseudonym is longer

_NameOf = Callable[[_Kind, str], str]


class Named(Struct, frozen=True, kw_only=True):
    """All of a round that has names in it."""

    jobs: Mapping[JobId, Job]
    strays: Mapping[JobId, Job | None]
    nodes: tuple[Node, ...]
    queues: Mapping[QueueName, Any]
    config: Any
    state: Any


def anonymous(named: Named) -> Named:
    """*named* with a pseudonym for each name; what nobody reads of jobs and runs is left out."""
    values: dict[str, set[str]] = {}
    for node in named.nodes:
        for label, value in node.labels.items():
            values.setdefault(label, set()).add(value)
    names: dict[_Kind, set[str]] = {}

    def note(kind: _Kind, name: str) -> str:
        names.setdefault(kind, set()).add(name)
        return name

    _Renaming(note, values).of(named)
    pseudonyms = {kind: _pseudonyms(kind, known) for kind, known in names.items()}
    return _Renaming(lambda kind, name: pseudonyms[kind][name], values).of(named)


def _pseudonyms(kind: _Kind, names: Iterable[str]) -> dict[str, str]:
    """By name, in the order of the names; no name stays none."""
    ordered = sorted(name for name in names if name)
    width = len(str(len(ordered)))
    numbered = {name: f"{kind.value}-{n:0{width}}" for n, name in enumerate(ordered, 1)}
    return {"": "", **numbered}


class _Renaming:
    """One pass over everything, with `name_of` for each name."""

    def __init__(self, name_of: _NameOf, values: Mapping[str, set[str]]) -> None:
        self._name_of = name_of
        self._values = values
        self._known: dict[Requirements, Requirements] = {}

    def of(self, named: Named) -> Named:
        jobs = [self._job(job) for job in named.jobs.values()]
        strays = {
            JobId(self._name_of(_Kind.JOB, id)): None if job is None else self._job(job)
            for id, job in named.strays.items()
        }
        nodes = [self._node(node) for node in named.nodes]
        queues = self._typed(named.queues, Mapping[QueueName, Any])
        return Named(
            jobs={job.id: job for job in sorted(jobs, key=lambda job: job.id)},
            strays=dict(sorted(strays.items())),
            nodes=tuple(sorted(nodes, key=lambda node: node.id)),
            queues=queues,
            config=self._typed(named.config, type(named.config)),
            state=self._typed(named.state, type(named.state)),
        )

    # --- rows -------------------------------------------------------------------------------

    def _job(self, job: Job) -> Job:
        name_of, gang = self._name_of, job.gang
        return job.replace(
            id=name_of(_Kind.JOB, job.id),
            queue=name_of(_Kind.QUEUE, job.queue),
            job_set=name_of(_Kind.JOB_SET, job.job_set),
            requirements=self._requirements(job.requirements),
            gang=None
            if gang is None
            else Gang(
                name_of(_Kind.GANG, gang.id),
                gang.cardinality,
                name_of(_Kind.LABEL, gang.uniformity),
            ),
            runs=tuple(self._run(run) for run in job.runs),
            tracker=None if job.tracker is None else self._tracker(job.tracker),
            policy=None,
            rules=None,
            reason="",
            payload=None,
        )

    def _run(self, run: Run) -> Run:
        return run.replace(
            id=self._name_of(_Kind.RUN, run.id),
            node_id=self._name_of(_Kind.NODE, run.node_id),
            reason="",
        )

    def _tracker(self, tracker: RescheduleTracker) -> RescheduleTracker:
        events = (
            RescheduleEvent(
                time=event.time,
                previous_run=self._name_of(_Kind.RUN, event.previous_run),
                previous_node=self._name_of(_Kind.NODE, event.previous_node),
                delay=event.delay,
                forced=event.forced,
            )
            for event in tracker.events
        )
        return RescheduleTracker(events=tuple(events), last=tracker.last)

    def _node(self, node: Node) -> Node:
        name_of = self._name_of
        return structs.replace(
            node,
            id=NodeId(name_of(_Kind.NODE, node.id)),
            executor=ExecutorName(name_of(_Kind.EXECUTOR, node.executor)),
            node_type=name_of(_Kind.NODE_TYPE, node.node_type),
            labels={
                name_of(_Kind.LABEL, label): name_of(_Kind.VALUE, value)
                for label, value in sorted(node.labels.items())
            },
            taints=tuple(self._taint(taint) for taint in node.taints),
        )

    # --- what jobs ask ----------------------------------------------------------------------

    def _requirements(self, asked: Requirements) -> Requirements:
        known = self._known.get(asked)
        if known is None:
            scope = self._name_of(_Kind.SCOPE, asked.scope)
            counts = asked.spread or any(each.distinct for each in asked.constraints)
            if counts and not scope:
                # Equal requirements are a scope; under pseudonyms others may come to equal them.
                scope = f"alike-{len(self._known) + 1}"
            known = self._known[asked] = Requirements(
                asked.resources,
                asked.priority_class,
                selector=tuple(
                    (self._name_of(_Kind.LABEL, label), self._name_of(_Kind.VALUE, value))
                    for label, value in asked.selector
                ),
                tolerations=tuple(self._toleration(each) for each in asked.tolerations),
                constraints=self._constraints(asked.constraints),
                affinity=tuple(self._constraints(term) for term in asked.affinity),
                preferences=tuple(
                    Preference(each.weight, self._constraints(each.constraints))
                    for each in asked.preferences
                ),
                spread=tuple(self._spread(each) for each in asked.spread),
                scope=scope,
                nodes=tuple(self._name_of(_Kind.NODE, node) for node in asked.nodes),
            )
        return known

    def _constraints(self, constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
        return tuple(self._constraint(each) for each in constraints)

    def _constraint(self, each: Constraint) -> Constraint:
        label = self._name_of(_Kind.LABEL, each.label)
        operator, values = each.operator, each.values
        if operator in _COUNTING or operator in _VALUELESS:
            return Constraint(label, operator, values)
        if operator not in _BY_VALUE:
            # None of these accepts a node without the label: it is one of those with it.
            there = sorted(self._values.get(each.label, ()))
            operator, values = Operator.IN, tuple(v for v in there if each.accepts(v))
        renamed = tuple(self._name_of(_Kind.VALUE, value) for value in values)
        return Constraint(label, operator, renamed or (_NO_VALUE,))

    def _spread(self, each: Spread) -> Spread:
        return Spread(
            self._name_of(_Kind.LABEL, each.label),
            each.weight,
            tuple((self._name_of(_Kind.VALUE, value), percent) for value, percent in each.targets),
        )

    def _taint(self, taint: Taint) -> Taint:
        return structs.replace(
            taint,
            key=self._name_of(_Kind.LABEL, taint.key),
            value=self._name_of(_Kind.VALUE, taint.value),
        )

    def _taint_of_type(self, taint: Taint) -> Taint:
        """The same of a well-known node type, where `*` is no value but any."""
        twin = self._taint(taint)
        return structs.replace(twin, value="*") if taint.value == "*" else twin

    def _toleration(self, each: Toleration) -> Toleration:
        return structs.replace(
            each,
            key=self._name_of(_Kind.LABEL, each.key),
            value=self._name_of(_Kind.VALUE, each.value),
        )

    # --- settings: names by the type of their field -----------------------------------------

    def _typed(self, value: T, hint: object) -> T:
        """*value* with the names in it replaced, found by what *hint* says they are."""
        given: Any = value
        kind = _KINDS.get(hint)
        if kind is not None and isinstance(given, str):
            return cast("T", self._name_of(kind, given))
        match given:
            case Taint():
                return cast("T", self._taint_of_type(given))
            case Toleration():
                return cast("T", self._toleration(given))
            case Queue():
                # Not by `replace`: a weight that cannot be used is kept for the round to refuse.
                twin = copy(given)
                structs.force_setattr(twin, "name", self._name_of(_Kind.QUEUE, given.name))
                return cast("T", twin)
            case Struct():
                hints = _hints(type(given))
                fields = {
                    field: self._typed(getattr(given, field), hints[field])
                    for field in given.__struct_fields__
                }
                return cast("T", structs.replace(given, **fields))
        return cast("T", self._contained(given, hint))

    def _contained(self, value: Any, hint: object) -> object:  # noqa: ANN401 - any setting
        inside = typing.get_args(hint)
        if typing.get_origin(hint) in (Union, UnionType):
            inside = tuple(each for each in inside if each is not NoneType)
            return value if value is None else self._typed(value, inside[0])
        if isinstance(value, Mapping) and inside:
            key, each = inside
            return {self._typed(k, key): self._typed(v, each) for k, v in value.items()}
        if isinstance(value, tuple) and inside:
            if inside[-1] is Ellipsis:
                return tuple(self._typed(each, inside[0]) for each in value)
            return tuple(self._typed(each, of) for each, of in zip(value, inside, strict=True))
        return value


@cache
def _hints(cls: type) -> dict[str, object]:
    """What the fields of *cls* are, names of queues as such."""
    hints = typing.get_type_hints(cls)
    return hints | {"queue_weights": dict[QueueName, float]} if cls is PoolConfig else hints
