# cython: binding=False
"""The values that the store holds and the round reads: requirements, gangs, runs, jobs.

All are immutable, hashable, picklable and compared by value; a change is a new value
(`Job.replace`, `Run.replace`). They know no store. Instants and durations are integer
nanoseconds; a missing instant is None to Python and `NEVER` inside.
"""

from enum import Enum, IntEnum

cimport cython
from cpython.number cimport PyNumber_Index
from cpython.object cimport Py_EQ, PyObject_RichCompareBool
from libc.stdint cimport INT64_MIN, int64_t

from pyresched._core.resources cimport ResourceVector

NEVER = INT64_MIN


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


cdef tuple STATES = tuple(JobState)


cdef inline object instant(int64_t at):
    return None if at == NEVER else at


cdef inline int64_t whole(object value) except? -1:
    """*value* as int64. A float raises: cut in silence, seconds would pass for nanoseconds."""
    return <int64_t> value if type(value) is int else <int64_t> PyNumber_Index(value)


cdef inline int64_t or_never(object at) except? -1:
    return NEVER if at is None else whole(at)


cdef inline bint same(object a, object b) except -1:
    """Equal; what is identical is, without asking (a payload may not know how to compare)."""
    return PyObject_RichCompareBool(a, b, Py_EQ)


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
        pairs = selector.items() if hasattr(selector, "items") else selector
        self.resources = resources
        self.priority_class = priority_class
        self.selector = tuple(sorted([(str(key), str(value)) for key, value in pairs]))
        self.tolerations = tolerations
        self.cached_hash = hash((resources, priority_class, self.selector, tolerations))

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

    def __init__(self, str id not None, Py_ssize_t cardinality, str uniformity not None=""):
        if not id:
            raise ValueError("a gang needs an id that is not empty")
        if cardinality < 2:
            raise ValueError(f"gang {id!r}: cardinality must be at least 2, got {cardinality}")
        self.id = id
        self.cardinality = cardinality
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


@cython.final
@cython.no_gc
cdef class Run:
    """One attempt at a job on a node.

    `priority` is that at which it was placed; `lease_expires_at` None means that the lease
    lasts until the run ends; a run is active until `ended_at` is set, and then has an
    `outcome` and, where there is more to say, the code of a `reason`.
    """

    def __init__(self, *, str id not None, str node_id not None, str pool not None="default",
                 priority=0, leased_at, lease_expires_at=None, started_at=None,
                 ended_at=None, outcome=None, str reason not None=""):
        if (ended_at is None) != (outcome is None):
            raise ValueError(f"run {id!r}: ended_at and outcome go together")
        self.id = id
        self.node_id = node_id
        self.pool = pool
        self.priority = whole(priority)
        self.leased_at = whole(leased_at)
        self.lease_expires_ns = or_never(lease_expires_at)
        self.started_ns = or_never(started_at)
        self.ended_ns = or_never(ended_at)
        self.outcome = outcome
        self.reason = reason

    @property
    def lease_expires_at(self):
        """When the executor's right to run it ends, or None."""
        return instant(self.lease_expires_ns)

    @property
    def started_at(self):
        """When its process began, or None."""
        return instant(self.started_ns)

    @property
    def ended_at(self):
        """When it ended, or None while it is active."""
        return instant(self.ended_ns)

    @property
    def active(self):
        """Whether it has not ended."""
        return self.ended_ns == NEVER

    def replace(self, **changes):
        """The same run with *changes*, by field name. Raises TypeError for an unknown field."""
        cdef Run twin = Run.__new__(Run)
        twin.id = self.id
        twin.node_id = self.node_id
        twin.pool = self.pool
        twin.priority = self.priority
        twin.leased_at = self.leased_at
        twin.lease_expires_ns = self.lease_expires_ns
        twin.started_ns = self.started_ns
        twin.ended_ns = self.ended_ns
        twin.outcome = self.outcome
        twin.reason = self.reason
        for name, value in changes.items():
            twin.put(name, value)
        if (twin.ended_ns == NEVER) != (twin.outcome is None):
            raise ValueError(f"run {twin.id!r}: ended_at and outcome go together")
        return twin

    cdef int put(self, str name, object value) except -1:
        """Set a field of a run that nobody has yet."""
        if name == "ended_at":
            self.ended_ns = or_never(value)
        elif name == "outcome":
            self.outcome = value
        elif name == "started_at":
            self.started_ns = or_never(value)
        elif name == "reason":
            self.reason = text(value, name)
        elif name == "lease_expires_at":
            self.lease_expires_ns = or_never(value)
        elif name == "leased_at":
            self.leased_at = whole(value)
        elif name == "id":
            self.id = text(value, name)
        elif name == "node_id":
            self.node_id = text(value, name)
        elif name == "pool":
            self.pool = text(value, name)
        elif name == "priority":
            self.priority = whole(value)
        else:
            raise TypeError(f"a run has no field {name!r}")
        return 0

    def as_dict(self):
        """Every field by name."""
        return {
            "id": self.id, "node_id": self.node_id, "pool": self.pool, "priority": self.priority,
            "leased_at": self.leased_at, "lease_expires_at": self.lease_expires_at,
            "started_at": self.started_at, "ended_at": self.ended_at,
            "outcome": self.outcome, "reason": self.reason,
        }

    def __hash__(self):
        return hash((self.id, self.node_id, self.ended_ns))

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Run):
            return NotImplemented
        cdef Run that = <Run> other
        return (
            self.priority == that.priority
            and self.leased_at == that.leased_at
            and self.lease_expires_ns == that.lease_expires_ns
            and self.started_ns == that.started_ns
            and self.ended_ns == that.ended_ns
            and self.id == that.id
            and self.node_id == that.node_id
            and self.pool == that.pool
            and self.reason == that.reason
            and same(self.outcome, that.outcome)
        )

    def __repr__(self):
        return f"Run({', '.join([f'{name}={value!r}' for name, value in self.as_dict().items()])})"

    def __reduce__(self):
        return run_of, (self.as_dict(),)


def run_of(fields):
    """For pickle."""
    return Run(**fields)


@cython.final
@cython.no_gc
cdef class Job:
    """One unit of work at one version, kept until it ends; it may have several runs.

    `priority` orders jobs within their queue, lower first; `submitted_at` is its place among
    equals and never changes. `runs` are in order of creation. `failed_at`, `eligible_at` and
    `retry_delay` are set while a failed job waits (`backing_off`) and until its next run is
    placed; `tracker` is its history of reschedules, one for a whole gang. `version` counts
    the row's versions from 1; `replace` makes the next one. `payload` is the user's, opaque
    and shared by all versions; it must not refer back to the job.
    """

    def __init__(self, *, str id not None, str queue not None, Requirements requirements not None,
                 submitted_at, str job_set not None="", priority=0,
                 tuple pools not None=("default",), state=0, bint validated=False, Gang gang=None,
                 tuple runs not None=(), str job_type not None="batch", policy=None, tracker=None,
                 failed_at=None, eligible_at=None, retry_delay=None, ended_at=None,
                 str reason not None="", payload=None, version=1):
        self.id = id
        self.queue = queue
        self.requirements = requirements
        self.submitted_at = whole(submitted_at)
        self.job_set = job_set
        self.priority = whole(priority)
        self.pools = pools
        self.put_state(state)
        self.validated = validated
        self.gang = gang
        self.runs = runs
        self.job_type = job_type
        self.policy = policy
        self.tracker = tracker
        self.failed_ns = or_never(failed_at)
        self.eligible_ns = or_never(eligible_at)
        self.retry_delay = or_never(retry_delay)
        self.ended_ns = or_never(ended_at)
        self.reason = reason
        self.payload = payload
        self.version = whole(version)
        self.must_be_whole()

    cdef int put_state(self, object state) except -1:
        cdef int64_t code = whole(state)
        if not 0 <= code <= CANCELLED:
            raise ValueError(f"job {self.id!r}: no such state {state!r}")
        self.state_code = <int> code
        return 0

    cdef int must_be_whole(self) except -1:
        """Raise ValueError for what no job can be."""
        if not self.id:
            raise ValueError("a job needs an id that is not empty")
        if not self.queue:
            raise ValueError(f"job {self.id!r} needs a queue")
        if not 0 <= self.priority <= 4294967295:
            raise ValueError(
                f"job {self.id!r}: priority must be from 0 to 4294967295, got {self.priority}")
        return 0

    cdef Run active(self):
        """The newest run if it has not ended, or None. (After a reconnect the kept run is last.)"""
        if not self.runs:
            return None
        cdef Run newest = <Run> self.runs[-1]
        return newest if newest.ended_ns == NEVER else None

    @property
    def state(self):
        """A `JobState`."""
        return STATES[self.state_code]

    @property
    def active_run(self):
        """Its newest run while that has not ended, or None."""
        return self.active()

    @property
    def node_id(self):
        """The node of its active run, or None."""
        cdef Run run = self.active()
        return None if run is None else run.node_id

    @property
    def failed_at(self):
        """When it last failed: the one time for count, decision and display. None: not waiting."""
        return instant(self.failed_ns)

    @property
    def eligible_at(self):
        """When its next run may be placed, or None."""
        return instant(self.eligible_ns)

    @property
    def retry_delay_ns(self):
        """The delay that its next reschedule event records, in ns, or None."""
        return instant(self.retry_delay)

    @property
    def ended_at(self):
        """When it reached a terminal state, or None."""
        return instant(self.ended_ns)

    def replace(self, **changes):
        """The next version of this row with *changes* by field name.

        `version` goes up by one; `id`, `queue`'s place and `submitted_at` stay unless given.
        Raises TypeError for an unknown field.
        """
        cdef Job twin = Job.__new__(Job)
        twin.id = self.id
        twin.queue = self.queue
        twin.job_set = self.job_set
        twin.priority = self.priority
        twin.requirements = self.requirements
        twin.pools = self.pools
        twin.submitted_at = self.submitted_at
        twin.state_code = self.state_code
        twin.validated = self.validated
        twin.gang = self.gang
        twin.runs = self.runs
        twin.job_type = self.job_type
        twin.policy = self.policy
        twin.tracker = self.tracker
        twin.failed_ns = self.failed_ns
        twin.eligible_ns = self.eligible_ns
        twin.retry_delay = self.retry_delay
        twin.ended_ns = self.ended_ns
        twin.reason = self.reason
        twin.payload = self.payload
        twin.version = self.version + 1
        for name, value in changes.items():
            twin.put(name, value)
        twin.must_be_whole()
        return twin

    cdef int put(self, str name, object value) except -1:
        """Set a field of a job that nobody has yet. Those that change often come first."""
        if name == "state":
            self.put_state(value)
        elif name == "runs":
            self.runs = tuple_of(value, name)
        elif name == "validated":
            self.validated = value
        elif name == "tracker":
            self.tracker = value
        elif name == "failed_at":
            self.failed_ns = or_never(value)
        elif name == "eligible_at":
            self.eligible_ns = or_never(value)
        elif name == "retry_delay":
            self.retry_delay = or_never(value)
        elif name == "ended_at":
            self.ended_ns = or_never(value)
        elif name == "reason":
            self.reason = text(value, name)
        elif name == "version":
            self.version = whole(value)
        elif name == "priority":
            self.priority = whole(value)
        elif name == "pools":
            self.pools = tuple_of(value, name)
        elif name == "requirements":
            if type(value) is not Requirements:
                raise TypeError(f"{name} is a Requirements, got {value!r}")
            self.requirements = value
        elif name == "gang":
            if value is not None and type(value) is not Gang:
                raise TypeError(f"{name} is a Gang or None, got {value!r}")
            self.gang = value
        elif name == "policy":
            self.policy = value
        elif name == "payload":
            self.payload = value
        elif name == "job_set":
            self.job_set = text(value, name)
        elif name == "job_type":
            self.job_type = text(value, name)
        elif name == "submitted_at":
            self.submitted_at = whole(value)
        elif name == "queue":
            self.queue = text(value, name)
        elif name == "id":
            self.id = text(value, name)
        else:
            raise TypeError(f"a job has no field {name!r}")
        return 0

    def as_dict(self):
        """Every field by name, as the constructor takes them."""
        return {
            "id": self.id, "queue": self.queue, "requirements": self.requirements,
            "submitted_at": self.submitted_at, "job_set": self.job_set,
            "priority": self.priority, "pools": self.pools, "state": self.state,
            "validated": self.validated, "gang": self.gang, "runs": self.runs,
            "job_type": self.job_type, "policy": self.policy, "tracker": self.tracker,
            "failed_at": self.failed_at, "eligible_at": self.eligible_at,
            "retry_delay": self.retry_delay_ns, "ended_at": self.ended_at,
            "reason": self.reason, "payload": self.payload, "version": self.version,
        }

    def detach(self):
        """A copy that pins no version of any store."""
        return self

    def __hash__(self):
        return hash((self.id, self.version))

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Job):
            return NotImplemented
        cdef Job that = <Job> other
        return (
            self.version == that.version
            and self.state_code == that.state_code
            and self.submitted_at == that.submitted_at
            and self.priority == that.priority
            and self.validated == that.validated
            and self.failed_ns == that.failed_ns
            and self.eligible_ns == that.eligible_ns
            and self.retry_delay == that.retry_delay
            and self.ended_ns == that.ended_ns
            and self.id == that.id
            and self.queue == that.queue
            and self.job_set == that.job_set
            and self.job_type == that.job_type
            and self.reason == that.reason
            and same(self.requirements, that.requirements)
            and same(self.pools, that.pools)
            and same(self.gang, that.gang)
            and same(self.runs, that.runs)
            and same(self.policy, that.policy)
            and same(self.tracker, that.tracker)
            and same(self.payload, that.payload)
        )

    def __repr__(self):
        return f"Job({', '.join([f'{name}={value!r}' for name, value in self.as_dict().items()])})"

    def __reduce__(self):
        return job_of, (self.as_dict(),)


def job_of(fields):
    """A job from its fields by name."""
    return Job(**fields)
