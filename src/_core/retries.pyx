# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whether, when and after which delay many failed runs are tried again: columns at once.

Says of each run what `pyresched.reschedule.next_reschedule` says of one (INV "never more
reschedules in a window than attempts"). Policies are read under the GIL, each object once; what
follows is calculated without it, on numbers of 64 bits that saturate.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from pyresched._core.batch cimport Numbers
from pyresched._core.bits cimport prefetch
from pyresched._core.records cimport EventPart, TrackerPart
from pyresched._core.values cimport clipped
from pyresched._core.versions cimport allocation_fails
from pyresched._core.views cimport RescheduleTracker

from pyresched.errors import InputError

cdef enum:
    AHEAD = 16             # runs whose memory is fetched together

cdef enum:
    CONSTANT               # and every function that nobody knows
    EXPONENTIAL
    FIBONACCI

cdef enum:                 # the places of these among the members of `VerdictReason`
    ELIGIBLE
    DISABLED
    NO_POLICY
    EXHAUSTED
    DELAY_PAST_INTERVAL


# --- one run -------------------------------------------------------------------------------------


cdef inline int64_t sum_of(int64_t a, int64_t b, bint *beyond) noexcept nogil:
    """Their sum, or the end of int64 that it lies behind; *beyond*: it is more than int64 holds."""
    if b > 0 and a > INT64_MAX - b:
        beyond[0] = True
        return INT64_MAX
    if b < 0 and a < INT64_MIN - b:
        return INT64_MIN
    return a + b


cdef inline bint is_younger(int64_t since, int64_t at, int64_t limit) noexcept nogil:
    """at - since < limit, where the difference may not fit into 64 bits."""
    if at >= since:
        return limit > 0 and <uint64_t> at - <uint64_t> since < <uint64_t> limit
    return limit >= 0 or <uint64_t> since - <uint64_t> at > <uint64_t> 0 - <uint64_t> limit


cdef inline bint is_older(int64_t since, int64_t at, int64_t limit) noexcept nogil:
    """at - since > limit, of a limit above 0."""
    return at > since and <uint64_t> at - <uint64_t> since > <uint64_t> limit


cdef int64_t delay_after(const Rule *rule, const EventPart *events, uint32_t count,
                         int64_t failed_at) noexcept nogil:
    """How long a run that failed waits, after at least one reschedule."""
    cdef const EventPart *last = events + (count - 1)
    cdef int64_t grown, delay
    cdef bint beyond = False
    if rule.function == EXPONENTIAL:
        grown = sum_of(last.delay, last.delay, &beyond)
    elif count < 2 or ((last - 1).delay == rule.max_delay and last.delay == rule.delay):
        # The series begins; or begins again, the mark of which is the cap and then the base.
        grown = rule.delay
    else:
        grown = sum_of((last - 1).delay, last.delay, &beyond)
    delay = max(grown, rule.delay)
    # What is beyond int64 is past every cap, also past the greatest.
    if rule.max_delay > 0 and (beyond or delay > rule.max_delay):
        if is_older(last.time, failed_at, rule.max_delay):
            return rule.delay
        return rule.max_delay
    return delay


cdef void answer(const Rule *rule, const TrackerPart *tracker, int64_t failed_at,
                 Answer *out) noexcept nogil:
    """What *rule* says of a run that failed at *failed_at*; no tracker: NULL."""
    cdef uint32_t i, count = 0 if tracker == NULL else tracker.count
    cdef int64_t used = 0
    cdef bint beyond = False
    if count == 0 or rule.function == CONSTANT:
        out.delay = rule.delay
    else:
        out.delay = delay_after(rule, tracker.events, count, failed_at)
    out.at = sum_of(failed_at, out.delay, &beyond)
    if rule.attempts > 0:
        for i in range(count):
            if not tracker.events[i].forced:
                used += is_younger(tracker.events[i].time, failed_at, rule.interval)
    out.attempted = used
    if rule.is_none:
        out.reason = NO_POLICY
    elif not rule.enabled:
        out.reason = DISABLED
    elif rule.attempts > 0 and count > 0 and used >= rule.attempts:
        out.reason = EXHAUSTED
    elif rule.attempts > 0 and count > 0 and out.delay >= rule.interval:
        out.reason = DELAY_PAST_INTERVAL
    else:
        out.reason = ELIGIBLE


# --- policies ------------------------------------------------------------------------------------


cdef inline void *memory_for(size_t size) except NULL:
    cdef void *found = NULL if allocation_fails() else malloc(max(size, <size_t> 1))
    if found == NULL:
        raise MemoryError
    return found


@cython.final
@cython.no_gc
cdef class Rules:
    """The policies of many runs, each object read once. Whoever asks keeps them alive."""

    def __dealloc__(self):
        free(self.rules)
        free(self.keys)
        free(self.places)

    cdef uint32_t of(self, object policy, Py_ssize_t row) except? 4294967295:
        """Where the rule of *policy* is; *row* is where it was given, or -1."""
        cdef void *key = <void *> <PyObject *> policy
        cdef size_t at
        if self.last == key and key != NULL:
            return self.last_place
        if self.count == 0:
            self.add(policy, row)
        at = self.place(key)
        if self.keys[at] == NULL:
            self.add(policy, row)
            at = self.place(key)
        self.last = key
        self.last_place = self.places[at]
        return self.last_place

    cdef size_t place(self, void *policy) noexcept:
        """Where *policy* is in the table, or belongs."""
        cdef size_t at = <size_t> (
            (<uint64_t> policy * <uint64_t> 0x9E3779B97F4A7C15) >> 32) & self.mask
        while self.keys[at] != NULL and self.keys[at] != policy:
            at = (at + 1) & self.mask
        return at

    cdef int add(self, object policy, Py_ssize_t row) except -1:
        cdef Rule rule = rule_of(policy, row)
        cdef size_t at
        if self.count == self.room:
            self.widen()
        at = self.place(<void *> <PyObject *> policy)
        self.keys[at] = <void *> <PyObject *> policy
        self.places[at] = self.count
        self.rules[self.count] = rule
        self.count += 1
        return 0

    cdef int widen(self) except -1:
        """Room for twice as many; the table stays at most half full."""
        cdef uint32_t room = 8 if self.room == 0 else 2 * self.room
        cdef size_t i, before = 0 if self.keys == NULL else self.mask + 1
        cdef void **keys = NULL
        cdef uint32_t *places = NULL
        cdef void **old_keys = self.keys
        cdef uint32_t *old_places = self.places
        cdef void *rules = NULL if allocation_fails() else realloc(
            self.rules, room * sizeof(Rule))
        if rules == NULL:
            raise MemoryError
        self.rules = <Rule *> rules
        keys = <void **> (NULL if allocation_fails() else calloc(2 * room, sizeof(void *)))
        if keys == NULL:
            raise MemoryError
        places = <uint32_t *> (
            NULL if allocation_fails() else malloc(2 * room * sizeof(uint32_t)))
        if places == NULL:
            free(keys)
            raise MemoryError
        self.keys = keys
        self.places = places
        self.mask = 2 * <size_t> room - 1
        self.room = room
        for i in range(before):
            if old_keys[i] != NULL:
                self.put(old_keys[i], old_places[i])
        free(old_keys)
        free(old_places)
        return 0

    cdef void put(self, void *policy, uint32_t place) noexcept:
        cdef size_t at = self.place(policy)
        self.keys[at] = policy
        self.places[at] = place


cdef Rule rule_of(object policy, Py_ssize_t row) except *:
    """*policy*, or None, as numbers; what lies past int64 counts as its end."""
    cdef Rule rule
    memset(&rule, 0, sizeof(Rule))
    if policy is None:
        rule.is_none = True
        return rule
    try:
        attempts, interval, delay = policy.attempts, policy.interval, policy.delay
        function, max_delay = policy.delay_function, policy.max_delay
        unlimited = policy.unlimited
    except AttributeError:
        where = "policies" if row < 0 else f"policies[{row}]"
        raise TypeError(f"{where} is a ReschedulePolicy or None, got {policy!r}") from None
    rule.attempts = clipped(attempts, "attempts")
    rule.interval = clipped(interval, "interval")
    rule.delay = clipped(delay, "delay")
    rule.max_delay = clipped(max_delay, "max_delay")
    rule.enabled = bool(unlimited) or rule.attempts > 0
    if isinstance(function, str):
        if function == "exponential":
            rule.function = EXPONENTIAL
        elif function == "fibonacci":
            rule.function = FIBONACCI
    return rule


# --- many runs -----------------------------------------------------------------------------------


cdef tuple rows_of(object values, str name):
    """*values* as a tuple, which nobody can change meanwhile."""
    if not hasattr(values, "__iter__") or isinstance(values, (str, bytes, dict)):
        raise TypeError(f"{name} is a sequence, one for each run; got {values!r}")
    return values if type(values) is tuple else tuple(values)


cdef void answer_all(const Rule *rules, const uint32_t *places, TrackerPart *const *trackers,
                     const int64_t *times, int64_t time, Py_ssize_t count,
                     const Answers *out) noexcept nogil:
    """*places* NULL: one rule for all; *times* NULL: one time for all."""
    cdef const Rule *rule = rules
    cdef Answer said
    cdef Py_ssize_t i
    for i in range(count):
        if i + AHEAD < count and trackers[i + AHEAD] != NULL:
            prefetch(trackers[i + AHEAD])
        if places != NULL:
            rule = rules + places[i]
        answer(rule, trackers[i], time if times == NULL else times[i], &said)
        out.at[i] = said.at
        out.delay[i] = said.delay
        out.attempted[i] = said.attempted
        out.attempts[i] = max(rule.attempts, <int64_t> 0)
        out.reason[i] = said.reason
        out.eligible[i] = said.reason == ELIGIBLE


cdef int read_trackers(tuple trackers, TrackerPart **parts) except -1:
    """Borrowed: as long as the tuple is there."""
    cdef Py_ssize_t i, count = len(trackers)
    for i in range(count):
        if i + AHEAD < count:
            prefetch(<const void *> <PyObject *> trackers[i + AHEAD])
        each = trackers[i]
        if each is None:
            parts[i] = NULL
        elif type(each) is RescheduleTracker:
            parts[i] = (<RescheduleTracker> each).part
        else:
            raise TypeError(f"trackers[{i}] is a RescheduleTracker or None, got {each!r}")
    return 0


cdef void *column(dict columns, str name, Py_ssize_t count, str code) except? NULL:
    """A new column under *name*; where its numbers are."""
    cdef int64_t[::1] wide
    cdef int8_t[::1] narrow
    columns[name] = memoryview(bytearray((8 if code == "q" else 1) * count)).cast(code)
    if count == 0:
        return NULL
    if code == "q":
        wide = columns[name]
        return &wide[0]
    narrow = columns[name]
    return &narrow[0]


def next_many(policies, trackers, failed_at):
    """What policies say of many runs that failed, as columns by name.

    *trackers*: a sequence of `RescheduleTracker` or None, one for each run. *policies*: one
    policy (or None) for all of them, or a sequence of these; each object is read once. *failed_at*
    (ns): one int for all, or int64: a list, a buffer, an Arrow column.

    Answers as `next_reschedule` does of each alone, in int64 columns `at`, `delay`, `attempted`
    and `attempts`, and int8 columns `eligible` (0 or 1) and `reason`, the place in
    `tuple(VerdictReason)`. Numbers of a policy that lie past int64 count as its ends. Raises
    InputError for columns of other lengths, TypeError by row for what is no policy or tracker.
    """
    cdef tuple histories = rows_of(trackers, "trackers")
    cdef tuple given = None
    cdef Py_ssize_t i, count = len(histories)
    cdef Rules rules = Rules.__new__(Rules)
    cdef Numbers times
    cdef Answers out
    cdef dict columns = {}
    cdef const int64_t *many = NULL
    cdef int64_t one
    cdef TrackerPart **parts = NULL
    cdef uint32_t *places = NULL
    if policies is not None and hasattr(policies, "__iter__"):
        given = rows_of(policies, "policies")
        if len(given) != count:
            raise InputError(f"policies has {len(given)} rows, trackers have {count}")
    times = Numbers(failed_at, "failed_at", count, "trackers")
    one = times.one
    if not times.is_one and count:
        many = &times.many[0]
    out.at = <int64_t *> column(columns, "at", count, "q")
    out.delay = <int64_t *> column(columns, "delay", count, "q")
    out.attempted = <int64_t *> column(columns, "attempted", count, "q")
    out.attempts = <int64_t *> column(columns, "attempts", count, "q")
    out.reason = <int8_t *> column(columns, "reason", count, "b")
    out.eligible = <int8_t *> column(columns, "eligible", count, "b")
    try:
        parts = <TrackerPart **> memory_for(count * sizeof(TrackerPart *))
        read_trackers(histories, parts)
        if given is None:
            rules.of(policies, -1)
        else:
            places = <uint32_t *> memory_for(count * sizeof(uint32_t))
            for i in range(count):
                places[i] = rules.of(given[i], i)
        with nogil:
            answer_all(rules.rules, places, parts, many, one, count, &out)
    finally:
        free(parts)
        free(places)
    return columns
