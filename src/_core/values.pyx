# cython: binding=False
"""The values that jobs are made of: states, outcomes, requirements, gangs.

All are immutable, hashable, picklable and compared by value; they know no store. Instants and
durations are integer nanoseconds; a missing instant is None to Python and `NEVER` inside.
"""

from enum import Enum, IntEnum

cimport cython
from cpython.number cimport PyIndex_Check
from libc.stdint cimport int64_t

from pyresched._core.bits cimport whole
from pyresched._core.resources cimport ResourceVector


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


class LastReschedule(Enum):
    """How the last reschedule went."""

    NONE = ""
    OK = "ok"
    NO_PLACEMENT = "no placement"


cdef int64_t whole_in(object value, str field) except? -1:
    """*value*, which a *field* takes only if it is a whole number, as an int64."""
    if type(value) is not int and not PyIndex_Check(value):
        raise TypeError(f"{field} is a whole number, got {value!r}")
    try:
        return whole(value)
    except OverflowError:
        raise OverflowError(
            f"{field} must be from -2**63 to 2**63 - 1, got {value!r}") from None


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


@cython.final
@cython.no_gc
cdef class Requirements:
    """What a job asks of a node. Jobs with equal requirements fit or fail alike.

    `resources` is the request, `priority_class` the name of its class, `selector` sorted
    pairs of label and value that a node must carry, `tolerations` the taints it accepts.
    Equality is the scheduling key.
    """

    def __init__(self, ResourceVector resources not None, str priority_class not None="default",
                 *, selector=(), tuple tolerations not None=()):
        cdef Py_hash_t hash_
        pairs = selector.items() if hasattr(selector, "items") else selector
        wanted = tuple(sorted([(str(key), str(value)) for key, value in pairs]))
        hash_ = hash((resources, priority_class, wanted, tolerations))
        if self.resources is not None:
            raise TypeError("requirements are made once")
        self.resources = resources
        self.priority_class = priority_class
        self.selector = wanted
        self.tolerations = tolerations
        self.cached_hash = hash_

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
        )

    def __repr__(self):
        return (
            f"Requirements({self.resources!r}, {self.priority_class!r}, "
            f"selector={self.selector!r}, tolerations={self.tolerations!r})"
        )

    def __reduce__(self):
        return requirements_of, (
            self.resources, self.priority_class, self.selector, self.tolerations,
        )


def requirements_of(resources, priority_class, selector, tolerations):
    """For pickle."""
    return Requirements(resources, priority_class, selector=selector, tolerations=tolerations)


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
