# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What new jobs may get in one round: amounts, rates, budgets, classes, what floats.

Owns the counts that limits are asked about, over all passes of a round; relies on its caller for
the limits themselves. Who ran when the round began is never limited.
"""

from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyresched._core.nodeledger cimport NOWHERE
from pyresched._core.resources cimport ResourceVector, saturating_add, saturating_sub
from pyresched._core.roundjobs cimport (
    CLASS_LIMIT, FLOATING_RESOURCES, GANG_EXCEEDS_BURST, GANG_EXCEEDS_QUEUE_BURST,
    GANG_QUEUE_RATE_LIMIT, GANG_RATE_LIMIT, NO_VERDICT, QUEUE_BUDGET, QUEUE_RATE_LIMIT,
    RATE_LIMIT, ROUND_BUDGET, ROUND_LIMIT, Entry, Lane,
)
from pyresched._core.roundline cimport RoundLine
from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
)


cdef class RoundLimits(RoundLine):
    """The limits of one round, and what counts against them."""

    def __cinit__(self, *_args, **_policy):
        self.tokens = self.burst = self.preemption_tokens = INFINITY
        self.end_reason = NO_VERDICT
        self.new_amounts = <int64_t *> calloc(max(self.width, 1), sizeof(int64_t))
        if self.new_amounts == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.most)
        free(self.floating)
        free(self.floats)
        free(self.lane_tokens)
        free(self.lane_bursts)
        free(self.class_limits)
        free(self.class_reasons)
        free(self.new_amounts)

    def set_limits(self, *, double tokens=INFINITY, double burst=INFINITY,
                   ResourceVector most=None, int64_t tries=0, int64_t queue_tries=0,
                   double preemption_tokens=INFINITY, ResourceVector floating=None,
                   bytes floats=None):
        """Limit what new jobs may get; 0, infinite or None: no limit.

        *tokens* and *burst* count jobs of the round, *most* what it may place, *tries* and
        *queue_tries* the jobs and gangs that have their turn, *preemption_tokens* the runs that
        may give way for the sake of shares. *floating* is what the pool has of each resource
        that no node has; *floats* has a byte for each resource, which is 1 for those.
        """
        cdef Py_ssize_t r
        self.must_fit(most)
        self.must_fit(floating)
        if floating is not None and (floats is None or len(floats) != self.width):
            raise ValueError("floats has a byte for each resource")
        self.tokens, self.burst = tokens, burst
        self.preemption_tokens = preemption_tokens
        self.tries_left, self.queue_tries = tries, queue_tries
        free(self.most)
        free(self.floating)
        free(self.floats)
        self.most = self.floating = NULL
        self.floats = NULL
        if most is not None:
            self.most = <int64_t *> malloc(max(self.width, 1) * sizeof(int64_t))
            if self.most == NULL:
                raise MemoryError
            memcpy(self.most, most.amounts, self.width * sizeof(int64_t))
        if floating is not None:
            self.floating = <int64_t *> malloc(max(self.width, 1) * sizeof(int64_t))
            self.floats = <uint8_t *> malloc(max(self.width, 1))
            if self.floating == NULL or self.floats == NULL:
                raise MemoryError
            for r in range(self.width):
                self.floating[r] = floating.amounts[r]
                self.floats[r] = floats[r]

    def set_queue_limits(self, str queue not None, *, double tokens=INFINITY,
                         double burst=INFINITY, dict classes=None):
        """Limit what *queue* may get; *classes* holds what it may hold of each class at most."""
        cdef Py_ssize_t lane = self.lane_of[queue], i, r, cells
        cdef ResourceVector amounts
        for limit in (classes or {}).values():
            self.must_fit(limit)
        cells = max(self.lane_count * self.class_count * self.width, 1)
        if self.lane_tokens == NULL:
            self.lane_tokens = <double *> malloc(max(self.lane_count, 1) * sizeof(double))
            self.lane_bursts = <double *> malloc(max(self.lane_count, 1) * sizeof(double))
            if self.lane_tokens == NULL or self.lane_bursts == NULL:
                raise MemoryError
            for i in range(self.lane_count):
                self.lane_tokens[i] = self.lane_bursts[i] = INFINITY
        self.lane_tokens[lane], self.lane_bursts[lane] = tokens, burst
        if not classes:
            return
        if self.class_limits == NULL:
            self.class_limits = <int64_t *> malloc(cells * sizeof(int64_t))
            self.class_reasons = <int32_t *> malloc(
                max(self.lane_count * self.class_count, 1) * sizeof(int32_t))
            if self.class_limits == NULL or self.class_reasons == NULL:
                raise MemoryError
            for i in range(cells):
                self.class_limits[i] = INT64_MAX
            for i in range(self.lane_count * self.class_count):
                self.class_reasons[i] = NO_VERDICT
        for name, limit in classes.items():
            amounts = limit
            i = (lane * self.class_count + <Py_ssize_t> self.classes[name][2]) * self.width
            for r in range(self.width):
                self.class_limits[i + r] = amounts.amounts[r]

    cdef int32_t end_round(self, int code, int32_t resource, int64_t wanted,
                           int64_t had) except -2 nogil:
        """From here on no new job of any queue is placed."""
        self.ended = True
        self.end_reason = self.new_reason(code, resource, wanted, had)
        return self.end_reason

    cdef int32_t end_lane(self, Lane *lane, int code, int64_t wanted,
                          int64_t had) except -2 nogil:
        """From here on no new job of the queue is placed."""
        lane.ended = 1
        lane.end_reason = self.new_reason(code, NOWHERE, wanted, had)
        return lane.end_reason

    cdef int32_t limit(self, Py_ssize_t number, int32_t at) except -2 nogil:
        """Why the new unit of entry *at* may not be placed now, or NO_VERDICT."""
        cdef const Entry *entry = &self.entries[at]
        cdef Lane *lane = &self.lanes[number]
        cdef const int64_t *amounts = self.amounts_of(entry)
        cdef Py_ssize_t r, cell
        cdef double size = 1 if entry.team == NOWHERE else self.teams[entry.team].count
        cdef double left = self.tokens - self.new_jobs
        cdef int32_t class_index = self.shapes[entry.shape].class_index
        cdef int64_t wanted
        if self.most != NULL:
            for r in range(self.width):
                if self.new_amounts[r] > self.most[r]:
                    return self.end_round(
                        ROUND_LIMIT, <int32_t> r, self.new_amounts[r], self.most[r])
        if left < 1:
            return self.end_round(RATE_LIMIT, NOWHERE, <int64_t> size, 0)
        if self.burst < size:
            return self.new_reason(
                GANG_EXCEEDS_BURST, NOWHERE, <int64_t> size, <int64_t> self.burst)
        if left < size:
            return self.new_reason(GANG_RATE_LIMIT, NOWHERE, <int64_t> size, <int64_t> left)
        if self.lane_tokens != NULL:
            left = self.lane_tokens[number] - lane.new_jobs
            if left < 1:
                return self.end_lane(lane, QUEUE_RATE_LIMIT, <int64_t> size, 0)
            if self.lane_bursts[number] < size:
                return self.new_reason(GANG_EXCEEDS_QUEUE_BURST, NOWHERE, <int64_t> size,
                                       <int64_t> self.lane_bursts[number])
            if left < size:
                return self.new_reason(
                    GANG_QUEUE_RATE_LIMIT, NOWHERE, <int64_t> size, <int64_t> left)
        if 0 < self.tries_left <= self.tries:
            return self.end_round(ROUND_BUDGET, NOWHERE, self.tries + 1, self.tries_left)
        if 0 < self.queue_tries <= lane.tries:
            return self.end_lane(lane, QUEUE_BUDGET, lane.tries + 1, self.queue_tries)
        if self.class_limits != NULL and class_index != NOWHERE:
            cell = number * self.class_count + class_index
            for r in range(self.width):
                wanted = saturating_add(self.by_class[cell * self.width + r], amounts[r])
                if amounts[r] and wanted > self.class_limits[cell * self.width + r]:
                    # One for all that the limit keeps out.
                    if self.class_reasons[cell] == NO_VERDICT:
                        self.class_reasons[cell] = self.new_reason(
                            CLASS_LIMIT, <int32_t> r, wanted,
                            self.class_limits[cell * self.width + r])
                    return self.class_reasons[cell]
        if self.floating != NULL:
            for r in range(self.width):
                wanted = saturating_add(self.whole[r], amounts[r])
                if self.floats[r] and amounts[r] and wanted > self.floating[r]:
                    return self.new_reason(
                        FLOATING_RESOURCES, <int32_t> r, amounts[r],
                        max(saturating_sub(self.floating[r], self.whole[r]), 0))
        return NO_VERDICT

    def close_nodes(self, node_ids not None):
        """Let nothing new go to these nodes; those that are not here mean nothing."""
        cdef Py_ssize_t node
        for node_id in node_ids:
            found = self.table.node_by_id.get(node_id)
            if found is not None:
                node = found
                self.table.close_node(node)

    cdef void count_new(self, const Entry *entry, int by) noexcept nogil:
        """Count *entry* among what the round has newly placed, or no longer."""
        cdef const int64_t *amounts = self.shapes[entry.shape].amounts
        cdef Py_ssize_t r
        self.new_jobs += by
        self.lanes[entry.lane].new_jobs += by
        for r in range(self.width):
            self.new_amounts[r] = (
                saturating_add(self.new_amounts[r], amounts[r]) if by > 0
                else saturating_sub(self.new_amounts[r], amounts[r]))
