# cython: binding=False
"""The values that jobs are made of: states, outcomes, requirements, gangs.

All are immutable, hashable, picklable and compared by value; they know no store. Instants and
durations are integer nanoseconds; a missing instant is None to Python and `NEVER` inside.
"""

from enum import Enum, IntEnum

cimport cython
from cpython.long cimport PyLong_Check
from cpython.number cimport PyIndex_Check
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

from pyresched.errors import InputError

from pyresched._core.bits cimport whole
from pyresched._core.resources cimport ResourceVector


cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1


class JobState(IntEnum):
    """Where a job stands. Legal moves between states: `pyresched.model.states.NEXT`."""

    QUEUED = 0
    LEASED = 1
    PENDING = 2
    RUNNING = 3
    BACKING_OFF = 4
    SUCCEEDED = 5
    FAILED = 6
    CANCELLED = 7

    @property
    def terminal(self):
        """Whether a job in this state has ended for good."""
        return self._value_ >= SUCCEEDED

    @property
    def active(self):
        """Whether a job in this state holds room on a node."""
        return LEASED <= self._value_ <= RUNNING


class Outcome(Enum):
    """What a run came to."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"
    RETURNED = "returned"
    LOST = "lost"
    CANCELLED = "cancelled"
    # Out of reach and being replaced, while it may still go on; to be settled.
    UNKNOWN = "unknown"


class LastReschedule(Enum):
    """How the last reschedule went."""

    NONE = ""
    OK = "ok"
    NO_PLACEMENT = "no placement"


cdef int64_t whole_in(object value, str field) except? -1:
    """*value*, which a *field* takes only if it is a whole number, as an int64."""
    cdef int64_t number
    cdef int overflow = 0
    if type(value) is int:  # without the price of a `try`
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow:
            return number
    elif not PyIndex_Check(value):
        raise TypeError(f"{field} is a whole number, got {value!r}")
    try:
        return whole(value)
    except OverflowError:
        raise OverflowError(
            f"{field} must be from -2**63 to 2**63 - 1, got {value!r}") from None


cdef int64_t clipped(object value, str field) except? -1:
    """The whole number of a *field*, or the end of int64 that it lies behind."""
    cdef int64_t number
    cdef int overflow = 0
    if not PyLong_Check(value):
        return whole_in(value, field)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        return INT64_MAX if overflow > 0 else INT64_MIN
    return number


cdef int64_t or_never(object at, str field) except? -1:
    return NEVER if at is None else whole_in(at, field)


cdef tuple tuple_of(object value, str field):
    """*value*, which a *field* takes only if it is a tuple."""
    if type(value) is not tuple:
        raise TypeError(f"{field} is a tuple, got {value!r}")
    return <tuple> value


cdef str text(object value, str field):
    """*value*, which a *field* takes only if it is a str."""
    if type(value) is not str:
        raise TypeError(f"{field} is a str, got {value!r}")
    return <str> value


cdef tuple NO_RULES = ((), (), (), (), "", ())


cdef tuple all_of(object value, str field, str kind):
    """*value*, which a *field* takes only if it is a tuple of values of the type *kind*."""
    for each in tuple_of(value, field):
        if type(each).__name__ != kind:
            raise TypeError(f"{field} is a tuple of {kind}, got {each!r}")
    return <tuple> value


cdef tuple all_once(object value, str field, str kind):
    """The same, sorted and each once: for conditions that must all hold."""
    return tuple(sorted(set(all_of(value, field, kind))))


cdef tuple rules_of(object constraints, object affinity, object preferences, object spread,
                    object scope, object nodes):
    """What is asked beyond labels and taints, checked; None if that is nothing."""
    if (constraints, affinity, preferences, spread, scope, nodes) == NO_RULES:
        return None
    for term in tuple_of(affinity, "affinity"):
        for each in all_of(term, "a term of affinity", "Constraint"):
            if each.distinct:
                raise InputError(
                    f"affinity: {each.operator} counts other jobs; put it under constraints"
                )
    for node_id in tuple_of(nodes, "nodes"):
        text(node_id, "an id in nodes")
    return (
        all_once(constraints, "constraints", "Constraint"),
        tuple(dict.fromkeys([tuple(sorted(set(term))) for term in <tuple> affinity])),
        all_of(preferences, "preferences", "Preference"),
        all_of(spread, "spread", "Spread"),
        text(scope, "scope"),
        tuple(sorted(set(<tuple> nodes))),
    )


@cython.final
@cython.no_gc
cdef class Requirements:
    """What a job asks of a node. Jobs with equal requirements fit or fail alike.

    `resources` is the request, `priority_class` the name of its class, `selector` sorted
    pairs of label and value that a node must carry, `tolerations` the taints it accepts,
    sorted.

    A node must also meet all of `constraints`, and all of at least one of the terms of
    `affinity`, if there are any; `nodes`, if not empty, are the only ones it may use. Of the
    nodes that do, those come first that score most by `preferences`, then those that `spread`
    asks for. Jobs bound with an equal `scope` count for `spread` and distinct constraints.

    Equality is the scheduling key; `has_scheduling_key` is False if jobs with equal
    requirements may still differ: distinct constraints, or nodes that are fixed.
    """

    def __init__(self, ResourceVector resources not None, str priority_class not None="default",
                 *, selector=(), tuple tolerations not None=(), constraints=(), affinity=(),
                 preferences=(), spread=(), scope="", nodes=()):
        cdef Py_hash_t hash_
        pairs = selector.items() if hasattr(selector, "items") else selector
        wanted = tuple(sorted([(str(key), str(value)) for key, value in pairs]))
        for each in tolerations:
            if not hasattr(each, "tolerates"):
                raise TypeError(f"tolerations are a tuple of Toleration, got {each!r} in it")
        if len(tolerations) > 1:
            tolerations = tuple(sorted(set(tolerations), key=repr))
        rules = rules_of(constraints, affinity, preferences, spread, scope, nodes)
        if rules is None:
            hash_ = hash((resources, priority_class, wanted, tolerations))
        else:
            hash_ = hash((resources, priority_class, wanted, tolerations, rules))
        if self.resources is not None:
            raise TypeError("requirements are made once")
        self.resources = resources
        self.priority_class = priority_class
        self.selector = wanted
        self.tolerations = tolerations
        self.rules = rules
        self.cached_hash = hash_

    @property
    def constraints(self):
        """Conditions that must all hold, sorted."""
        return (self.rules or NO_RULES)[0]

    @property
    def affinity(self):
        """Terms of conditions: all conditions of one term must hold. None: nothing is asked."""
        return (self.rules or NO_RULES)[1]

    @property
    def preferences(self):
        """What makes a node better or worse than others, as given."""
        return (self.rules or NO_RULES)[2]

    @property
    def spread(self):
        """Over which values of labels the jobs of the scope go."""
        return (self.rules or NO_RULES)[3]

    @property
    def scope(self):
        """Among which jobs spread and distinct constraints count."""
        return (self.rules or NO_RULES)[4]

    @property
    def nodes(self):
        """Ids of the nodes it must use one of, sorted; none: any."""
        return (self.rules or NO_RULES)[5]

    @property
    def has_scheduling_key(self):
        """Whether all jobs with equal requirements fit or fail alike."""
        if self.rules is None:
            return True
        return not self.nodes and not any([each.distinct for each in self.constraints])

    def __hash__(self):
        return self.cached_hash

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Requirements):
            return NotImplemented
        cdef Requirements that = <Requirements> other
        return (
            self.cached_hash == that.cached_hash
            and self.resources == that.resources
            and self.priority_class == that.priority_class
            and self.selector == that.selector
            and self.tolerations == that.tolerations
            and self.rules == that.rules
        )

    def __repr__(self):
        names = ("constraints", "affinity", "preferences", "spread", "scope", "nodes")
        more = "".join([
            f", {name}={value!r}" for name, value in zip(names, self.rules or NO_RULES) if value
        ])
        return (
            f"Requirements({self.resources!r}, {self.priority_class!r}, "
            f"selector={self.selector!r}, tolerations={self.tolerations!r}{more})"
        )

    def __reduce__(self):
        plain = (self.resources, self.priority_class, self.selector, self.tolerations)
        return requirements_of, plain if self.rules is None else (*plain, *self.rules)


def requirements_of(resources, priority_class, selector, tolerations, constraints=(), affinity=(),
                    preferences=(), spread=(), scope="", nodes=()):
    """For pickle."""
    return Requirements(
        resources, priority_class, selector=selector, tolerations=tolerations,
        constraints=constraints, affinity=affinity, preferences=preferences, spread=spread,
        scope=scope, nodes=nodes,
    )


@cython.final
@cython.no_gc
cdef class Gang:
    """Jobs placed all or none: identity is (queue, `id`).

    `cardinality` counts the members, at least 2; `uniformity` is the label whose value the
    nodes of all members must share, or "".
    """

    def __init__(self, str id not None, cardinality, str uniformity not None=""):
        cdef int64_t members = whole_in(cardinality, "cardinality")
        if self.id is not None:  # also by the code of a number
            raise TypeError("a gang is made once")
        if not id:
            raise ValueError("a gang needs an id that is not empty")
        if members < 2:
            raise ValueError(f"gang {id!r}: cardinality must be at least 2, got {members}")
        self.id = id
        self.cardinality = <Py_ssize_t> members
        self.uniformity = uniformity

    def __hash__(self):
        return hash((self.id, self.cardinality, self.uniformity))

    def __eq__(self, other):
        if not isinstance(other, Gang):
            return NotImplemented
        cdef Gang that = <Gang> other
        return (
            self.id == that.id
            and self.cardinality == that.cardinality
            and self.uniformity == that.uniformity
        )

    def __repr__(self):
        return f"Gang({self.id!r}, {self.cardinality}, {self.uniformity!r})"

    def __reduce__(self):
        return Gang, (self.id, self.cardinality, self.uniformity)
