# cython: binding=False
"""What Python sees of native records: jobs, runs, trackers.

All are immutable, hashable, picklable and compared by value; a change is a new value
(`Job.replace`, `Run.replace`), which shares what did not change. A view holds its record alone:
it knows no store and pins no version. Instants and durations are integer nanoseconds.
"""

cimport cython
from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject, PyTypeObject, destructor
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pyresched._core.ids cimport KIND_HEAP
from pyresched._core.records cimport (
    VALIDATED, Cold, EventPart, Kind, Record, RunPart, TrackerPart, active_run, has_rare, kind_of,
    name_drop, name_hold, name_read, name_text, own_cold, own_rare, own_runs, record_copy,
    record_drop, record_hold, record_new, records_equal, run_drop, run_hold, runs_equal,
    settle_cold, tracker_drop, tracker_new, trackers_equal,
)
from pyresched._core.resources cimport ResourceVector
from pyresched._core.values cimport (
    CANCELLED, NEVER, Gang, Requirements, clipped, instant, or_never, text, tuple_of, whole_in,
)

from pyresched._core.values import JobState, LastReschedule, Outcome
from pyresched.errors import did_you_mean

cdef tuple STATES = tuple(JobState)
cdef tuple OUTCOMES = tuple(Outcome)
cdef tuple LASTS = tuple(LastReschedule)
cdef uint32_t LAST_OK = <uint32_t> LASTS.index(LastReschedule.OK)

cdef int64_t MOST = 4294967295
cdef int64_t MOST_RUN_PRIORITY = 2147483647


cdef inline str str_of(PyObject *held):
    return "" if held == NULL else <str> held


cdef inline void let(PyObject **place, object value) noexcept:
    """Let *place* lead to *value*, counted."""
    cdef PyObject *before = place[0]
    Py_INCREF(value)
    place[0] = <PyObject *> value
    Py_XDECREF(before)


cdef inline void let_text(PyObject **place, str value) noexcept:
    """The same where no text is kept as NULL."""
    cdef PyObject *before = place[0]
    if not value:
        place[0] = NULL
        Py_XDECREF(before)
    else:
        let(place, value)


cdef int place_in(tuple values, object value, str what) except -1:
    """Where *value* is among the members of an enum."""
    cdef Py_ssize_t i
    for i in range(len(values)):
        if values[i] is value:
            return <int> i
    raise TypeError(f"{what}, got {value!r}")


# --- runs ----------------------------------------------------------------------------------------


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Run:
    """One attempt at a job on a node.

    `priority` is that at which it was placed; `lease_expires_at` None means that the lease
    lasts until the run ends; a run is active until `ended_at` is set, and then has an
    `outcome` and, where there is more to say, the code of a `reason`.
    """

    def __init__(self, *, str id not None, str node_id not None, str pool not None="default",
                 priority=0, leased_at, lease_expires_at=None, started_at=None,
                 ended_at=None, outcome=None, str reason not None=""):
        if self.part.id_kind:
            raise TypeError("a run is made once")
        self.part.priority = run_priority(priority)
        self.part.leased_at = whole_in(leased_at, "leased_at")
        self.part.lease_expires_at = or_never(lease_expires_at, "lease_expires_at")
        self.part.started_at = or_never(started_at, "started_at")
        self.part.ended_at = or_never(ended_at, "ended_at")
        self.put("outcome", outcome)
        let(&self.part.node_id, node_id)
        let(&self.part.pool, pool)
        let_text(&self.part.reason, reason)
        self.text = id
        self.must_be_whole()
        if self.part.id_kind:
            raise TypeError("a run is made once")  # by the code of a number
        name_read(id, &self.part.id, &self.part.id_kind)

    def __dealloc__(self):
        run_drop(&self.part)

    cdef str name(self):
        if self.text is None:
            self.text = name_text(&self.part.id, self.part.id_kind) if self.part.id_kind else ""
        return self.text

    cdef int must_be_whole(self) except -1:
        if (self.part.ended_at == NEVER) != (self.part.outcome == 0):
            raise ValueError(f"run {self.name()!r}: ended_at and outcome go together")
        return 0

    @property
    def id(self):
        """Unique in a store."""
        return self.name()

    @property
    def node_id(self):
        """The node it was placed on."""
        return str_of(self.part.node_id)

    @property
    def pool(self):
        """The pool of that node."""
        return str_of(self.part.pool)

    @property
    def priority(self):
        """That at which it was placed."""
        return self.part.priority

    @property
    def leased_at(self):
        """When it was placed."""
        return self.part.leased_at

    @property
    def lease_expires_at(self):
        """When the executor's right to run it ends, or None."""
        return instant(self.part.lease_expires_at)

    @property
    def started_at(self):
        """When its process began, or None."""
        return instant(self.part.started_at)

    @property
    def ended_at(self):
        """When it ended, or None while it is active."""
        return instant(self.part.ended_at)

    @property
    def active(self):
        """Whether it has not ended."""
        return self.part.ended_at == NEVER

    @property
    def outcome(self):
        """What it came to: an `Outcome`, or None while it is active."""
        return OUTCOMES[self.part.outcome - 1] if self.part.outcome else None

    @property
    def reason(self):
        """A code that says more of the outcome, or ""."""
        return str_of(self.part.reason)

    def replace(self, **changes):
        """The same run with *changes*, by field name. Raises TypeError for an unknown field."""
        cdef Run twin = run_view(&self.part)
        must_be_made(self)
        twin.text = self.text
        for name, value in changes.items():
            twin.put(name, value)
        twin.must_be_whole()
        return twin

    cdef int put(self, str name, object value) except -1:
        """Set a field of a run that nobody has yet."""
        cdef RunPart before
        if name == "ended_at":
            self.part.ended_at = or_never(value, name)
        elif name == "outcome":
            self.part.outcome = 0
            if value is not None:
                self.part.outcome = <uint8_t> (
                    1 + place_in(OUTCOMES, value, "outcome is an Outcome or None"))
        elif name == "started_at":
            self.part.started_at = or_never(value, name)
        elif name == "reason":
            let_text(&self.part.reason, text(value, name))
        elif name == "lease_expires_at":
            self.part.lease_expires_at = or_never(value, name)
        elif name == "leased_at":
            self.part.leased_at = whole_in(value, name)
        elif name == "id":
            before = self.part
            name_read(text(value, name), &self.part.id, &self.part.id_kind)
            name_drop(&before.id, before.id_kind)
            self.text = value
        elif name == "node_id":
            let(&self.part.node_id, text(value, name))
        elif name == "pool":
            let(&self.part.pool, text(value, name))
        elif name == "priority":
            self.part.priority = run_priority(value)
        else:
            raise TypeError(f"a run has no field {name!r}; {did_you_mean(name, self.as_dict())}")
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
        return hash((self.name(), self.node_id, self.part.ended_at))

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Run):
            return NotImplemented
        return runs_equal(&self.part, &(<Run> other).part)

    def __repr__(self):
        return f"Run({', '.join([f'{name}={value!r}' for name, value in self.as_dict().items()])})"

    def __reduce__(self):
        return run_of, (self.as_dict(),)


def run_of(fields):
    """For pickle."""
    return Run(**fields)


cdef int32_t run_priority(object value) except? -1:
    """That of a priority class, which fits int32. Raises ValueError."""
    cdef int64_t number = whole_in(value, "priority")
    if not -MOST_RUN_PRIORITY <= number <= MOST_RUN_PRIORITY:
        raise ValueError(
            f"the priority of a run is from -{MOST_RUN_PRIORITY} to {MOST_RUN_PRIORITY}, "
            f"got {number}")
    return <int32_t> number


cdef int must_be_made(Run run) except -1:
    """Raise for a run that is nothing yet: `Run.__new__` without `__init__`."""
    if run.part.id_kind == 0:
        raise TypeError("the run was never made; call Run(...)")
    return 0


cdef Run run_view(const RunPart *part):
    cdef Run run = Run.__new__(Run)
    run.part = part[0]
    run_hold(part)
    return run


# --- trackers ------------------------------------------------------------------------------------


@cython.final
@cython.no_gc
cdef class RescheduleEvent:
    """One reschedule: at `time` a replacement was placed for the run `previous_run`.

    That was on `previous_node`; `delay` is how long it waited. Both times in ns. One that was
    `forced` by hand counts in no window.
    """

    def __init__(self, *, time, str previous_run not None, str previous_node not None, delay,
                 forced=False):
        cdef int64_t at = whole_in(time, "time"), after = whole_in(delay, "delay")
        cdef bint by_hand = is_true(forced, "forced")
        if self.previous_run is not None:
            raise TypeError("an event is made once")
        self.time = at
        self.previous_run = previous_run
        self.previous_node = previous_node
        self.delay = after
        self.forced = by_hand

    def __hash__(self):
        return hash((self.time, self.previous_run, self.previous_node, self.delay, self.forced))

    def __eq__(self, other):
        if not isinstance(other, RescheduleEvent):
            return NotImplemented
        cdef RescheduleEvent that = <RescheduleEvent> other
        return (
            self.time == that.time
            and self.delay == that.delay
            and self.forced == that.forced
            and self.previous_run == that.previous_run
            and self.previous_node == that.previous_node
        )

    def __repr__(self):
        return (
            f"RescheduleEvent(time={self.time}, previous_run={self.previous_run!r}, "
            f"previous_node={self.previous_node!r}, delay={self.delay}, forced={self.forced})"
        )

    def __reduce__(self):
        return event_of, (
            self.time, self.previous_run, self.previous_node, self.delay, self.forced)


def event_of(time, previous_run, previous_node, delay, forced=False):
    """For pickle."""
    return RescheduleEvent(
        time=time, previous_run=previous_run, previous_node=previous_node, delay=delay,
        forced=forced)


cdef bint is_true(object value, str field) except -1:
    """*value*, which a *field* takes only if it is True or False."""
    if type(value) is not bool:
        raise TypeError(f"{field} is True or False, got {value!r}")
    return value is True


# Without a window to count, the newest few serve people and the choice of a node.
cdef enum:
    KEPT_WITHOUT_WINDOW = 5


cdef struct Keep:
    bint by_age
    int64_t longest        # if by age: how old a kept event may be; under 1: none is kept


cdef Keep keep_by(object policy) except *:
    """What *policy* lets a history keep. Numbers past int64 count as its ends."""
    cdef Keep keep
    keep.by_age = policy is not None and clipped(policy.attempts, "attempts") > 0
    keep.longest = clipped(policy.interval, "interval") if keep.by_age else 0
    return keep


cdef bint is_kept(const Keep *keep, const TrackerPart *part, uint32_t i, int64_t now) noexcept:
    """Whether a history goes on with its event *i* when one of *now* comes on top."""
    cdef int64_t time = part.events[i].time
    if not keep.by_age:
        return part.count - i <= KEPT_WITHOUT_WINDOW
    if keep.longest <= 0:
        return False
    # Counting leaves out what is exactly so old; keeping it costs nothing and lets the delay
    # series go on. The age of one from the future is no age; another may not fit into int64.
    return time >= now or <uint64_t> now - <uint64_t> time <= <uint64_t> keep.longest


@cython.final
@cython.no_gc
cdef class RescheduleTracker:
    """The history of reschedules that a job (or a gang, as one) carries, oldest event first."""

    def __init__(self, *, events=(), last=LastReschedule.NONE):
        cdef tuple given = tuple_of(events, "events")
        cdef TrackerPart *part
        cdef EventPart *at
        cdef RescheduleEvent event
        cdef Py_ssize_t i
        cdef int code = place_in(LASTS, last, "last is a LastReschedule")
        if self.part != NULL:
            raise TypeError("a tracker is made once")
        for each in given:
            if type(each) is not RescheduleEvent:
                raise TypeError(f"an event is a RescheduleEvent, got {each!r}")
            if (<RescheduleEvent> each).previous_run is None:
                raise TypeError("the event was never made; call RescheduleEvent(...)")
        part = tracker_new(<uint32_t> len(given))
        part.last = <uint32_t> code
        for i in range(len(given)):
            event = <RescheduleEvent> given[i]
            at = part.events + i
            at.time = event.time
            at.delay = event.delay
            at.forced = event.forced
            name_read(event.previous_run, &at.previous_run, &at.run_kind)
            let(&at.previous_node, event.previous_node)
        self.part = part

    def __dealloc__(self):
        tracker_drop(self.part)

    @property
    def events(self):
        """The reschedules, oldest first."""
        cdef list events = []
        cdef EventPart *at
        cdef RescheduleEvent event
        cdef uint32_t i
        if self.part == NULL:
            return ()
        for i in range(self.part.count):
            at = self.part.events + i
            event = RescheduleEvent.__new__(RescheduleEvent)
            event.time = at.time
            event.delay = at.delay
            event.forced = at.forced
            event.previous_run = name_text(&at.previous_run, at.run_kind)
            event.previous_node = <str> at.previous_node
            events.append(event)
        return tuple(events)

    @property
    def last(self):
        """How the last reschedule went."""
        return LASTS[0] if self.part == NULL else LASTS[self.part.last]

    def extended(self, policy, *, now, str previous_run not None, str previous_node not None,
                 delay, forced=False):
        """This history and, on top, the reschedule placed at *now*; *policy* says what is kept.

        A policy that counts attempts keeps the events that are at most `interval` old, every
        other one and None the newest five. All in ns. Raises TypeError and OverflowError by
        field.
        """
        cdef int64_t at = whole_in(now, "now"), after = whole_in(delay, "delay")
        cdef bint by_hand = is_true(forced, "forced")
        cdef Keep keep = keep_by(policy)
        cdef TrackerPart *old = self.part
        cdef RescheduleTracker made = RescheduleTracker.__new__(RescheduleTracker)
        cdef uint32_t i, kept = 0
        cdef EventPart *to
        if old != NULL:
            for i in range(old.count):
                kept += is_kept(&keep, old, i, at)
        made.part = tracker_new(kept + 1)
        made.part.last = LAST_OK
        to = made.part.events
        if old != NULL:
            for i in range(old.count):
                if is_kept(&keep, old, i, at):
                    to[0] = old.events[i]
                    name_hold(&to.previous_run, to.run_kind)
                    Py_XINCREF(to.previous_node)
                    to += 1
        to.time = at
        to.delay = after
        to.forced = by_hand
        name_read(previous_run, &to.previous_run, &to.run_kind)
        let(&to.previous_node, previous_node)
        return made

    def __hash__(self):
        return hash((self.events, self.last))

    def __eq__(self, other):
        if not isinstance(other, RescheduleTracker):
            return NotImplemented
        return trackers_equal(self.part, (<RescheduleTracker> other).part)

    def __repr__(self):
        return f"RescheduleTracker(events={self.events!r}, last={self.last!r})"

    def __reduce__(self):
        return tracker_of, (self.events, self.last)


def tracker_of(events, last):
    """For pickle."""
    return RescheduleTracker(events=events, last=last)


# --- jobs ----------------------------------------------------------------------------------------


@cython.final
@cython.no_gc
cdef class Job:
    """One unit of work at one version, kept until it ends; it may have several runs.

    `priority` orders jobs within their queue, lower first; `submitted_at` is its place among
    equals and never changes. `runs` are in order of creation, but one that was out of reach and
    goes on is the newest again. `failed_at`, `eligible_at` and `retry_delay` are set while a
    failed job waits (`backing_off`) and until its next run is placed, `eligible_at` alone while
    it waits for a lost node to stop its run; `tracker` is its history of reschedules, one for a
    whole gang. `version` counts the row's versions from 1 (to 4294967295); `replace` makes the
    next one. `payload` is the user's, opaque and shared by all versions; it must not refer back
    to the job. `policy` and `rules` are hashable, as jobs with equal ones share one. Instants
    and delays are int64 in ns. Raises TypeError, ValueError and OverflowError by field.
    """

    def __cinit__(self):
        self.record = record_hold(NOBODY)

    def __init__(self, *, str id not None, str queue not None, Requirements requirements not None,
                 submitted_at, str job_set not None="", priority=0,
                 tuple pools not None=("default",), state=0, bint validated=False, Gang gang=None,
                 tuple runs not None=(), str job_type not None="batch", policy=None, tracker=None,
                 failed_at=None, eligible_at=None, retry_delay=None, ended_at=None,
                 str reason not None="", payload=None, version=1, rules=None):
        cdef Record *record
        if self.record != NOBODY:
            raise TypeError("a job is made once")
        record = record_new()
        try:
            name_read(id, &record.id, &record.id_kind)
            record.submitted_at = whole_in(submitted_at, "submitted_at")
            put_priority(record, priority)
            put_state(record, state)
            put_version(record, whole_in(version, "version"))
            record.flags = VALIDATED if validated else 0
            put_kind(record, queue, job_set, requirements, pools, job_type, policy, rules)
            if payload is not None:
                let(&record.payload, payload)
            if runs:
                put_runs(record, runs)
            if gang is not None:
                let(&own_cold(record).gang, gang)
            if tracker is not None:
                put_tracker(record, tracker)
            if reason:
                let(&own_rare(record).reason, reason)
            if failed_at is not None:
                own_rare(record).failed_at = whole_in(failed_at, "failed_at")
            if eligible_at is not None:
                own_rare(record).eligible_at = whole_in(eligible_at, "eligible_at")
            if retry_delay is not None:
                own_rare(record).retry_delay = whole_in(retry_delay, "retry_delay")
            if ended_at is not None:
                own_rare(record).ended_at = whole_in(ended_at, "ended_at")
            if not id:
                raise ValueError("a job needs an id that is not empty")
        except:  # noqa: E722
            record_drop(record)
            raise
        record_drop(self.record)
        self.record = record
        self.text = id

    def __dealloc__(self):
        record_drop(self.record)

    cdef str name(self):
        if self.text is None:
            self.text = name_text(&self.record.id, self.record.id_kind)
        return self.text

    cdef Kind kind(self):
        return <Kind> self.record.kind

    cdef Gang membership(self):
        """Its gang, or None."""
        cdef Cold *cold = self.record.cold
        return None if cold == NULL or cold.gang == NULL else <Gang> cold.gang

    cdef bint has_past(self) noexcept:
        """Whether it has had a run that it may remember."""
        cdef Cold *cold = self.record.cold
        return cold != NULL and (cold.run_count != 0 or cold.tracker != NULL)

    @property
    def id(self):
        """Unique in a store."""
        return self.name()

    @property
    def queue(self):
        """The queue it was submitted to."""
        return self.kind().queue

    @property
    def job_set(self):
        """The set that it was submitted in, or ""."""
        return self.kind().job_set

    @property
    def requirements(self):
        """What it asks of a node."""
        return self.kind().requirements

    @property
    def pools(self):
        """The pools that it may run in."""
        return self.kind().pools

    @property
    def job_type(self):
        """Which defaults it has for rescheduling."""
        return self.kind().job_type

    @property
    def policy(self):
        """Its own policy of rescheduling, or None."""
        return self.kind().policy

    @property
    def rules(self):
        """What its group asks for beyond a policy, or None: it is a plain job."""
        return self.kind().rules

    @property
    def priority(self):
        """Its place in its queue: lower first."""
        return self.record.priority

    @property
    def submitted_at(self):
        """When it was submitted: its place among equals."""
        return self.record.submitted_at

    @property
    def version(self):
        """How many versions of the row there were, this one counted."""
        return self.record.version

    @property
    def validated(self):
        """Whether it has been found possible to place."""
        return self.record.flags & VALIDATED != 0

    @property
    def state(self):
        """A `JobState`."""
        return STATES[self.record.state]

    @property
    def payload(self):
        """The user's own."""
        return None if self.record.payload == NULL else <object> self.record.payload

    @property
    def gang(self):
        """The gang that it is a member of, or None."""
        return self.membership()

    @property
    def runs(self):
        """Its runs in order of creation."""
        cdef Cold *cold = self.record.cold
        cdef tuple runs
        cdef Run run
        cdef uint32_t i
        if cold == NULL or cold.run_count == 0:
            return ()
        runs = PyTuple_New(cold.run_count)
        for i in range(cold.run_count):
            run = run_view(cold.runs + i)
            Py_INCREF(run)
            PyTuple_SET_ITEM(runs, i, run)
        return runs

    @property
    def active_run(self):
        """Its newest run while that has not ended, or None."""
        cdef const RunPart *run = active_run(self.record)
        return None if run == NULL else run_view(run)

    @property
    def node_id(self):
        """The node of its active run, or None."""
        cdef const RunPart *run = active_run(self.record)
        return None if run == NULL else <str> run.node_id

    @property
    def tracker(self):
        """Its history of reschedules, or None."""
        cdef Cold *cold = self.record.cold
        cdef RescheduleTracker tracker
        if cold == NULL or cold.tracker == NULL:
            return None
        tracker = RescheduleTracker.__new__(RescheduleTracker)
        tracker.part = cold.tracker
        tracker.part.holders += 1
        return tracker

    @property
    def failed_at(self):
        """When it last failed: the one time for count, decision and display. None: not waiting."""
        return None if self.record.cold == NULL else instant(self.record.cold.rare.failed_at)

    @property
    def eligible_at(self):
        """When its next run may be placed, or None."""
        return None if self.record.cold == NULL else instant(self.record.cold.rare.eligible_at)

    @property
    def retry_delay(self):
        """The delay that its next reschedule event records, in ns, or None."""
        return None if self.record.cold == NULL else instant(self.record.cold.rare.retry_delay)

    @property
    def ended_at(self):
        """When it reached a terminal state, or None."""
        return None if self.record.cold == NULL else instant(self.record.cold.rare.ended_at)

    @property
    def reason(self):
        """A code that says why it stands as it does, or ""."""
        return "" if self.record.cold == NULL else str_of(self.record.cold.rare.reason)

    def replace(self, **changes):
        """The next version of this row with *changes* by field name.

        `version` goes up by one unless it is given. Raises TypeError for an unknown field.
        """
        cdef Record *record
        cdef Job twin
        cdef dict parts = None
        if self.record == NOBODY:
            raise TypeError("a job that was never made has no next version")
        record = record_copy(self.record)
        try:
            if "version" not in changes:
                put_version(record, <int64_t> self.record.version + 1)
            for name, value in changes.items():
                if not put_field(record, name, value):
                    if parts is None:
                        parts = {}
                    parts[name] = value
            if parts is not None:
                put_parts(record, self, parts)
            settle_cold(record)
            twin = Job.__new__(Job)
        except:  # noqa: E722
            record_drop(record)
            raise
        record_drop(twin.record)
        twin.record = record
        if "id" not in changes:
            twin.text = self.text
        return twin

    def as_dict(self):
        """Every field by name, as the constructor takes them."""
        return {
            "id": self.id, "queue": self.queue, "requirements": self.requirements,
            "submitted_at": self.submitted_at, "job_set": self.job_set,
            "priority": self.priority, "pools": self.pools, "state": self.state,
            "validated": self.validated, "gang": self.gang, "runs": self.runs,
            "job_type": self.job_type, "policy": self.policy, "rules": self.rules,
            "tracker": self.tracker,
            "failed_at": self.failed_at, "eligible_at": self.eligible_at,
            "retry_delay": self.retry_delay, "ended_at": self.ended_at,
            "reason": self.reason, "payload": self.payload, "version": self.version,
        }

    def detach(self):
        """A job that pins no version of any store: every job is one."""
        return self

    def __hash__(self):
        return hash((self.name(), self.record.version))

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, Job):
            return NotImplemented
        return records_equal(self.record, (<Job> other).record)

    def __repr__(self):
        return f"Job({', '.join([f'{name}={value!r}' for name, value in self.as_dict().items()])})"

    def __reduce__(self):
        return job_of, (self.as_dict(),)


def job_of(fields):
    """A job from its fields by name."""
    return Job(**fields)


# A view is made for each job that somebody looks at, and dropped soon after: most come from
# here, whole but for their record. None are kept in sanitizer builds, which are to see each use
# after the end, and without the GIL, which guards them.
cdef extern from *:
    """
    #if defined(Py_GIL_DISABLED) || defined(__SANITIZE_ADDRESS__)
      #define PYRESCHED_SPARE_VIEWS 1
      #define PYRESCHED_KEEP_VIEWS 0
    #else
      #define PYRESCHED_SPARE_VIEWS 1024
      #define PYRESCHED_KEEP_VIEWS 1024
    #endif
    """
    enum:
        SPARE_VIEWS "PYRESCHED_SPARE_VIEWS"
    const size_t KEEP_VIEWS "PYRESCHED_KEEP_VIEWS"

cdef extern from "Python.h":
    PyObject *PyObject_Init(PyObject *, PyTypeObject *) noexcept
    PyTypeObject *Py_TYPE(PyObject *) noexcept

cdef PyObject *spare_views[SPARE_VIEWS]
cdef size_t spare_count = 0
cdef destructor end_of_job = NULL


cdef void keep_view(PyObject *view) noexcept:
    """Deallocate a view, or keep it for the next."""
    global spare_count
    cdef Record *record
    if spare_count == KEEP_VIEWS:
        end_of_job(view)
        return
    record = (<Job> view).record
    (<Job> view).record = NULL
    (<Job> view).text = None
    spare_views[spare_count] = view
    spare_count += 1
    if record.holders > 1:
        record.holders -= 1
    else:
        drop_last(record)


cdef void drop_last(Record *record) noexcept:
    """Let the last holder of a record go: its payload may run code, whatever is being raised."""
    cdef PyObject *kind = NULL
    cdef PyObject *value = NULL
    cdef PyObject *trace = NULL
    PyErr_Fetch(&kind, &value, &trace)
    record_drop(record)
    PyErr_Restore(kind, value, trace)


cdef PyObject *blank_view() except NULL:
    global spare_count
    cdef PyObject *view
    cdef Job job
    if spare_count:
        spare_count -= 1
        view = spare_views[spare_count]
        return PyObject_Init(view, Py_TYPE(view))
    job = Job.__new__(Job)
    record_drop(job.record)
    job.record = NULL
    Py_INCREF(job)
    return <PyObject *> job


cdef Job job_view(const Record *record):
    cdef PyObject *view = blank_view()
    cdef Job job = <Job> view
    job.record = record_hold(record)
    Py_XDECREF(view)  # that of the one who made it; `job` has its own
    return job


cdef void lent_keep(PyObject *view) noexcept:
    record_hold((<Job> view).record)
    Py_XDECREF(view)


cdef void lent_end(Lent *lent) noexcept:
    if lent.last != NULL:
        lent_keep(lent.last)
    if lent.before != NULL:
        lent_keep(lent.before)
    lent.last = lent.before = NULL


end_of_job = (<PyTypeObject *> Job).tp_dealloc
(<PyTypeObject *> Job).tp_dealloc = <destructor> keep_view


# --- fields of a record that is being made -------------------------------------------------------


cdef int put_priority(Record *record, object value) except -1:
    cdef int64_t priority = -1
    try:
        priority = whole_in(value, "priority")
    except OverflowError:
        pass
    if not 0 <= priority <= MOST:
        raise ValueError(
            f"job {name_text(&record.id, record.id_kind)!r}: "
            f"priority must be from 0 to {MOST}, got {value!r}")
    record.priority = <uint32_t> priority
    return 0


cdef int put_version(Record *record, int64_t version) except -1:
    if not 0 <= version <= MOST:
        raise ValueError(
            f"job {name_text(&record.id, record.id_kind)!r}: "
            f"version must be from 0 to {MOST}, got {version}")
    record.version = <uint32_t> version
    return 0


cdef int put_state(Record *record, object value) except -1:
    cdef int64_t code = whole_in(value, "state")
    if not 0 <= code <= CANCELLED:
        raise ValueError(
            f"job {name_text(&record.id, record.id_kind)!r}: no such state {value!r}; "
            "give a JobState")
    record.state = <uint8_t> code
    return 0


cdef int put_kind(Record *record, str queue, str job_set, Requirements requirements, tuple pools,
                  str job_type, object policy, object rules) except -1:
    cdef PyObject *before = record.kind
    cdef Kind kind
    if not queue:
        raise ValueError(f"job {name_text(&record.id, record.id_kind)!r} needs a queue")
    for pool in pools:
        if type(pool) is not str:
            raise TypeError(
                f"job {name_text(&record.id, record.id_kind)!r}: a pool is a str, got {pool!r}")
    kind = kind_of(queue, job_set, requirements, pools, job_type, policy, rules)
    Py_INCREF(kind)
    record.kind = <PyObject *> kind
    Py_XDECREF(before)
    return 0


cdef tuple PARTS_OF_KIND = (
    "queue", "job_set", "requirements", "pools", "job_type", "policy", "rules")


cdef int put_parts(Record *record, Job job, dict parts) except -1:
    """The kind of *job* with some parts exchanged. Raises TypeError for what is no field."""
    cdef Kind kind = job.kind()
    for name in parts:
        if name not in PARTS_OF_KIND:
            raise TypeError(f"a job has no field {name!r}; {did_you_mean(name, job.as_dict())}")
    requirements = parts.get("requirements", kind.requirements)
    if type(requirements) is not Requirements:
        raise TypeError(f"requirements is a Requirements, got {requirements!r}")
    return put_kind(
        record,
        text(parts.get("queue", kind.queue), "queue"),
        text(parts.get("job_set", kind.job_set), "job_set"),
        <Requirements> requirements,
        tuple_of(parts.get("pools", kind.pools), "pools"),
        text(parts.get("job_type", kind.job_type), "job_type"),
        parts.get("policy", kind.policy),
        parts.get("rules", kind.rules),
    )


cdef int put_runs(Record *record, object value) except -1:
    cdef tuple runs = tuple_of(value, "runs")
    cdef Cold *cold
    cdef Py_ssize_t i
    for run in runs:
        if type(run) is not Run:
            raise TypeError(
                f"job {name_text(&record.id, record.id_kind)!r}: a run is a Run, got {run!r}")
        must_be_made(<Run> run)
    if not runs and record.cold == NULL:
        return 0
    cold = own_runs(record, <uint32_t> len(runs))
    for i in range(len(runs)):
        memcpy(cold.runs + i, &(<Run> runs[i]).part, sizeof(RunPart))
        run_hold(cold.runs + i)
    return 0


cdef int put_tracker(Record *record, object value) except -1:
    cdef TrackerPart *before
    cdef TrackerPart *part = NULL
    cdef Cold *cold
    if value is not None:
        if type(value) is not RescheduleTracker:
            raise TypeError(f"tracker is a RescheduleTracker or None, got {value!r}")
        part = (<RescheduleTracker> value).part
    if part == NULL and record.cold == NULL:
        return 0
    cold = own_cold(record)
    before = cold.tracker
    cold.tracker = part
    if part != NULL:
        part.holders += 1
    tracker_drop(before)
    return 0


cdef bint put_field(Record *record, str name, object value) except -1:
    """Set a field of a record that nobody has yet. False: it is no field, or one of the kind.

    Those that change often come first.
    """
    cdef Record before
    if name == "state":
        put_state(record, value)
    elif name == "runs":
        put_runs(record, value)
    elif name == "validated":
        record.flags = VALIDATED if value else 0
    elif name == "tracker":
        put_tracker(record, value)
    elif name == "failed_at":
        if value is not None or has_rare(record):
            own_rare(record).failed_at = or_never(value, name)
    elif name == "eligible_at":
        if value is not None or has_rare(record):
            own_rare(record).eligible_at = or_never(value, name)
    elif name == "retry_delay":
        if value is not None or has_rare(record):
            own_rare(record).retry_delay = or_never(value, name)
    elif name == "ended_at":
        if value is not None or has_rare(record):
            own_rare(record).ended_at = or_never(value, name)
    elif name == "reason":
        if text(value, name) or has_rare(record):
            let_text(&own_rare(record).reason, value)
    elif name == "version":
        put_version(record, whole_in(value, name))
    elif name == "priority":
        put_priority(record, value)
    elif name == "gang":
        if value is not None and type(value) is not Gang:
            raise TypeError(f"{name} is a Gang or None, got {value!r}")
        put_or_none(&own_cold(record).gang, value)
    elif name == "payload":
        put_or_none(&record.payload, value)
    elif name == "submitted_at":
        record.submitted_at = whole_in(value, name)
    elif name == "id":
        if not text(value, name):
            raise ValueError("a job needs an id that is not empty")
        before = record[0]
        name_read(value, &record.id, &record.id_kind)
        name_drop(&before.id, before.id_kind)
    else:
        return False
    return True


cdef int put_or_none(PyObject **place, object value) except -1:
    cdef PyObject *before = place[0]
    if value is None:
        place[0] = NULL
        Py_XDECREF(before)
    else:
        let(place, value)
    return 0


cdef Record *nobody() except NULL:
    """What a view shows that was never given a job."""
    cdef Record *record = record_new()
    cdef Requirements none = Requirements(ResourceVector(()))
    cdef str no_id = ""
    cdef Kind kind = kind_of("", "", none, (), "", None, None)
    let(<PyObject **> &record.id.lo, no_id)
    record.id_kind = KIND_HEAP
    let(&record.kind, kind)
    return record


cdef Record *NOBODY = nobody()
