# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The inner loop of a round: whose turn it is, where it goes, and who gives way to it.

Owns the passes, the walk along each queue, gangs, limits, the memo of what found no room, and
why each job was refused. Relies on `RoundLine` for turns and victims, on the node table for
nodes, and on its caller for policy. Keeps INV-R1 to INV-R3 and INV-R7. docs/round.md tells it in
pseudo-code.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy, memset

from pyresched._core.jobids cimport ids_of
from pyresched._core.nodeledger cimport NOWHERE
from pyresched._core.records cimport Record, RunPart, active_run, name_text
from pyresched._core.resources cimport ResourceVector, saturating_add, saturating_sub
from pyresched._core.roundjobs cimport (
    ALLOCATED, CLASS_LIMIT, EXCEEDS_EVERY_NODE, FLOATING_RESOURCES, FULL, GANG_DOES_NOT_FIT,
    GANG_EXCEEDS_BURST, GANG_EXCEEDS_QUEUE_BURST, GANG_QUEUE_RATE_LIMIT, GANG_RATE_LIMIT, GUEST,
    INSUFFICIENT_RESOURCES, NODES_CLOSED, NO_MATCHING_NODE, NO_ROOM, NO_VERDICT, PLACED_NOW,
    QUEUE_BUDGET, QUEUE_RATE_LIMIT, RATE_LIMIT, RETURNED, ROUND_BUDGET, ROUND_LIMIT, TOO_CROWDED,
    WAITS, Entry, Lane, Reason, Shape, Team, compare_records,
)
from pyresched._core.roundjobs import CODES
from pyresched._core.roundline cimport BY_SHARE, BY_URGENCY, WITH_GANG, Gone, Head, RoundLine
from pyresched._core.roundline import CAUSES
from pyresched._core.views cimport job_view

from array import array


# What sorts units that lost their nodes: as if they had never left their queues.
cdef struct AgainKey:
    int64_t priority
    const Record *record
    int32_t lane
    int32_t unit


cdef int by_queue(const void *a, const void *b) noexcept nogil:
    cdef const AgainKey *one = <const AgainKey *> a
    cdef const AgainKey *other = <const AgainKey *> b
    if one.lane != other.lane:
        return -1 if one.lane < other.lane else 1
    if one.priority != other.priority:
        return -1 if one.priority > other.priority else 1
    if one.record.priority != other.record.priority:
        return -1 if one.record.priority < other.record.priority else 1
    return compare_records(one.record, other.record)


# What sorts units that go home.
cdef struct HomeKey:
    int64_t leased_at
    const Record *record
    int32_t unit


cdef int by_home(const void *a, const void *b) noexcept nogil:
    cdef const HomeKey *one = <const HomeKey *> a
    cdef const HomeKey *other = <const HomeKey *> b
    if one.leased_at != other.leased_at:
        return -1 if one.leased_at < other.leased_at else 1
    return compare_records(one.record, other.record)


@cython.final
cdef class RoundWalk(RoundLine):
    """One round over the nodes of *table*, which it changes.

    *classes* maps a class name to (priority, preemptible). *members_of* (queue, gang id) gives
    all members of a gang, *avoid_of* (node id, rank) pairs for a list of jobs, *values_of* the
    lists of node indices that share a value of a label, in the order in which they are tried,
    *variants_of* (requirements, priority) pairs for requirements that may go away. Queues are
    added first, in ascending order of their names, then what runs; then `decide` is called once.
    """

    def __cinit__(self, *_args, avoid_of=None, values_of=None, bint share=True,
                  bint urgency=True, bint home=True, bint away=True, bint gang_away=True,
                  **_policy):
        self.avoid_of = avoid_of
        self.values_of = values_of
        self.may_take_share = share
        self.may_take_urgent = urgency
        self.may_home = home
        self.may_away = away
        self.may_gang_away = gang_away
        self.tokens = self.burst = self.preemption_tokens = INFINITY
        self.end_reason = NO_VERDICT
        self.new_amounts = <int64_t *> calloc(max(self.width, 1), sizeof(int64_t))
        self.allowed = <uint8_t *> calloc(max(self.table.count, 1), 1)
        if self.new_amounts == NULL or self.allowed == NULL:
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
        free(self.decided)
        free(self.again)
        free(self.again_before)
        free(self.failed_in)
        free(self.fail_reason)
        free(self.value_nodes)
        free(self.value_at)
        free(self.label_at)
        free(self.allowed)
        free(self.seats)
        free(self.best_seats)
        free(self.best_gone)
        free(self.best_causes)
        free(self.best_cleared)
        free(self.best_for)

    # --- limits -----------------------------------------------------------------------------

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

    # --- passes -----------------------------------------------------------------------------

    cdef int get_ready(self) except -1:
        """Everything that a pass needs, once."""
        cdef Py_ssize_t i, largest = 1
        if self.ready:
            return 0
        self.prepare()
        for i in range(self.team_count):
            largest = max(largest, <Py_ssize_t> self.teams[i].count)
        self.failed_in = <int32_t *> calloc(max(self.signatures, 1), sizeof(int32_t))
        self.fail_reason = <int32_t *> calloc(max(self.signatures, 1), sizeof(int32_t))
        self.seats = <Seat *> malloc(largest * sizeof(Seat))
        self.best_seats = <Seat *> malloc(largest * sizeof(Seat))
        if (self.failed_in == NULL or self.fail_reason == NULL or self.seats == NULL
                or self.best_seats == NULL):
            raise MemoryError
        self.load_values()
        return 0

    cdef int load_values(self) except -1:
        """The nodes of each value of each uniformity label, flat."""
        cdef list found = [self.values_of(label) for label in self.labels]
        cdef Py_ssize_t i, k, values = 0, nodes = 0
        for of_label in found:
            values += len(of_label)
            for of_value in of_label:
                nodes += len(of_value)
        self.value_nodes = <int32_t *> malloc(max(nodes, 1) * sizeof(int32_t))
        self.value_at = <int32_t *> malloc((values + 1) * sizeof(int32_t))
        self.label_at = <int32_t *> malloc((len(found) + 1) * sizeof(int32_t))
        if self.value_nodes == NULL or self.value_at == NULL or self.label_at == NULL:
            raise MemoryError
        values = nodes = 0
        for i in range(len(found)):
            self.label_at[i] = <int32_t> values
            for of_value in found[i]:
                self.value_at[values] = <int32_t> nodes
                values += 1
                for k in of_value:
                    if not 0 <= k < self.table.count:
                        raise IndexError(f"node {k} of {self.table.count}")
                    self.value_nodes[nodes] = <int32_t> k
                    nodes += 1
        self.label_at[len(found)] = <int32_t> values
        self.value_at[values] = <int32_t> nodes
        return 0

    def decide(self, *, int most_passes):
        """Place what can be placed, pass by pass, until one changes nothing.

        False: that did not happen within *most_passes*.
        """
        self.get_ready()
        while self.passes < most_passes:
            self.passes += 1
            self.one_pass()
            self.send_home()
            if not (self.took or self.settled or self.went_home):
                return True
            if not self.took and not self.went_home and not self.needs_another():
                return True
        return False

    cdef bint needs_another(self) noexcept nogil:
        """Whether a pass that only placed jobs in free room may be followed by one that does more.

        In the next one, what went without room could take some from a queue that is above its
        share by now; but not from what was placed after it, which has no more of a node than was
        free then, nor from what comes back before its turn as it was placed before its turn.
        """
        cdef Py_ssize_t i
        if not self.lacked_room:
            return False
        if self.went_away:
            return True
        if not self.began_with_units and not self.reordered:
            return False
        for i in range(self.lane_count):
            if self.lanes[i].takes_part and self.lanes[i].preemptible_runs and (
                    self.fairness.cost(self.vector(i, FULL))
                    > self.lanes[i].protected_share + 1e-9):
                return True
        return False

    cdef int start_again(self) except -1:
        """Put the units that lost their nodes back at their places in their queues."""
        cdef Py_ssize_t count = 0, i, k, low, high, middle
        cdef Entry *entry
        cdef Entry *member
        cdef const Team *team
        cdef Lane *lane
        cdef AgainKey *keys
        cdef AgainKey other
        cdef int32_t unit
        self.again_count = 0
        for i in range(self.lane_count):
            self.lanes[i].again_at = self.lanes[i].again_end = 0
        for i in range(self.entry_count):
            count += self.entries[i].home != NOWHERE and self.entries[i].node == NOWHERE
        if not count:
            return 0
        if count > self.again_space:
            free(self.again)
            free(self.again_before)
            self.again_space = 0
            self.again = <int32_t *> malloc(count * sizeof(int32_t))
            self.again_before = <int32_t *> malloc(count * sizeof(int32_t))
            if self.again == NULL or self.again_before == NULL:
                raise MemoryError
            self.again_space = count
        keys = <AgainKey *> malloc(count * sizeof(AgainKey))
        if keys == NULL:
            raise MemoryError
        count = 0
        for i in range(self.entry_count):
            entry = &self.entries[i]
            if (entry.home == NOWHERE or entry.node != NOWHERE or entry.lane == NOWHERE
                    or not self.lanes[entry.lane].takes_part):
                continue
            unit = <int32_t> i
            if entry.team != NOWHERE:
                team = &self.teams[entry.team]
                for k in range(team.first, team.first + team.count):
                    member = &self.entries[self.members[k]]
                    if member.record.priority > self.entries[unit].record.priority or (
                            member.record.priority == self.entries[unit].record.priority
                            and compare_records(
                                member.record, self.entries[unit].record) > 0):
                        unit = self.members[k]
                if unit != i:
                    continue
            keys[count] = AgainKey(
                self.shapes[entry.shape].priority, entry.record, entry.lane, unit)
            count += 1
        qsort(keys, count, sizeof(AgainKey), by_queue)
        for i in range(count):
            self.again[i] = keys[i].unit
            lane = &self.lanes[keys[i].lane]
            if lane.again_end == 0:
                lane.again_at = <int32_t> i
            lane.again_end = <int32_t> i + 1
            low, high = lane.first, lane.first + lane.count
            other.lane = keys[i].lane
            while low < high:
                middle = (low + high) // 2
                other.record = self.entries[middle].record
                other.priority = INT64_MIN
                if self.entries[middle].shape != NOWHERE:
                    other.priority = self.shapes[self.entries[middle].shape].priority
                if by_queue(&other, &keys[i]) < 0:
                    low = middle + 1
                else:
                    high = middle
            self.again_before[i] = <int32_t> low
        self.again_count = count
        free(keys)
        return 0

    cdef int one_pass(self) except -1:
        cdef Py_ssize_t i, k
        cdef Lane *lane
        self.took = self.settled = self.went_home = self.went_away = self.lacked_room = False
        self.turns = 0
        self.ended = False
        self.start_line()
        if self.passes == 1:
            self.began_with_units = self.line_length > 0
        self.start_again()
        for i in range(self.lane_count):
            lane = &self.lanes[i]
            lane.cursor = lane.first
            lane.peeked = lane.ended = 0
            lane.head = NOWHERE
            if self.class_reasons != NULL:
                for k in range(self.class_count):
                    self.class_reasons[i * self.class_count + k] = NO_VERDICT
        with nogil:
            self.walk()
        return 0

    cdef int walk(self) except -1 nogil:
        """Everyone's turn, once."""
        cdef Lane *lane
        cdef Head *head
        cdef Entry *entry
        cdef Py_ssize_t i, number, gone
        cdef const Team *team
        self.heap_length = 0
        for i in range(self.lane_count):
            if self.lanes[i].takes_part and self.pull(i):
                head = &self.heap[self.heap_length]
                head.lane = <int32_t> i
                self.rate(head, self.lanes[i].head, self.lanes[i].head_waits, ALLOCATED)
                self.heap_length += 1
        self.heapify()
        while self.heap_length:
            number = self.heap[0].lane
            lane = &self.lanes[number]
            gone = self.gone_count
            if lane.head_waits:
                lane.wait_at += 1
                entry = &self.entries[lane.head]
                self.waiting_count -= 1
                if entry.team == NOWHERE:
                    entry.standing = RETURNED
                    self.count_turn(lane.head)
                else:
                    team = &self.teams[entry.team]
                    for i in range(team.first, team.first + team.count):
                        self.entries[self.members[i]].standing = RETURNED
                        self.count_turn(self.members[i])
            else:
                lane.peeked = 0
                self.attempt(number)
                self.turns += 1
            if self.gone_count != gone:
                # Who gave way made its queue cheaper, or may have been the next.
                self.took = True
                self.gone_count = 0
                self.refresh()
                continue
            if self.pull(number):
                self.rate(&self.heap[0], lane.head, lane.head_waits, ALLOCATED)
            else:
                self.heap_length -= 1
                self.heap[0] = self.heap[self.heap_length]
            if self.heap_length:
                self.sift_down(0)
        return 0

    cdef void count_turn(self, int32_t at) noexcept nogil:
        """What entry *at* holds counts for the turns of its queue again."""
        cdef int64_t *turn = self.vector(self.entries[at].lane, ALLOCATED)
        cdef const int64_t *amounts = self.shapes[self.entries[at].shape].amounts
        cdef Py_ssize_t r
        for r in range(self.width):
            turn[r] = saturating_add(turn[r], amounts[r])

    cdef int refresh(self) except -1 nogil:
        """Work out every turn anew."""
        cdef Py_ssize_t i, kept = 0, number
        cdef Lane *lane
        for i in range(self.heap_length):
            number = self.heap[i].lane
            lane = &self.lanes[number]
            if not self.pull(number):
                continue
            self.heap[kept].lane = <int32_t> number
            self.rate(&self.heap[kept], lane.head, lane.head_waits, ALLOCATED)
            kept += 1
        self.heap_length = kept
        self.heapify()
        return 0

    # --- along a queue ----------------------------------------------------------------------

    cdef bint pull(self, Py_ssize_t number) except -1 nogil:
        """Find the next of a lane, without moving past it. False: there is none."""
        cdef Lane *lane = &self.lanes[number]
        cdef int32_t back = NOWHERE
        while lane.wait_at < lane.wait_end:
            back = self.waiting[lane.wait_at]
            if self.entries[back].standing == WAITS:
                break
            back = NOWHERE
            lane.wait_at += 1
        if not lane.peeked:
            lane.next_queued = self.next_queued(number)
            lane.peeked = 1
        if back == NOWHERE and lane.next_queued == NOWHERE:
            lane.head = NOWHERE
            return False
        lane.head_waits = back != NOWHERE and (
            lane.next_queued == NOWHERE
            or self.shapes[self.entries[back].shape].priority
            >= self.shapes[self.entries[lane.next_queued].shape].priority)
        lane.head = back if lane.head_waits else lane.next_queued
        return True

    cdef int32_t next_queued(self, Py_ssize_t number) except -2 nogil:
        """The next that waits for a node and may find one; the lane moves past it."""
        cdef Lane *lane = &self.lanes[number]
        cdef int32_t end = lane.first + (lane.looked_at if lane.open else 0), at
        cdef Entry *entry
        cdef const Shape *shape
        cdef const Team *team
        while lane.cursor < end:
            at = lane.cursor
            entry = &self.entries[at]
            if entry.node != NOWHERE or entry.shape == NOWHERE:
                lane.cursor += 1
                continue
            shape = &self.shapes[entry.shape]
            if entry.team == NOWHERE:
                if not (self.ended or lane.ended or shape.barred
                        or shape.failed_in == self.passes):
                    break
                if shape.barred:
                    entry.verdict = shape.reason
                elif shape.failed_in == self.passes:
                    entry.verdict = NO_ROOM
                    self.lacked_room = True
                else:
                    entry.verdict = self.end_reason if self.ended else lane.end_reason
            else:
                team = &self.teams[entry.team]
                if at == team.last and team.fault == NOWHERE:
                    if self.failed_in[team.signature] == self.passes:
                        self.refuse(at, self.fail_reason[team.signature])
                        self.lacked_room = True
                    elif (team.shape != NOWHERE and team.label == NOWHERE
                            and shape.failed_in == self.passes):
                        # Where not one finds room, several do not.
                        self.refuse(at, NO_ROOM)
                        self.lacked_room = True
                    elif self.ended or lane.ended:
                        self.refuse(at, self.end_reason if self.ended else lane.end_reason)
                    else:
                        break
            lane.cursor += 1
        if lane.again_at < lane.again_end and (
                lane.cursor >= end or self.again_before[lane.again_at] <= lane.cursor):
            lane.again_at += 1
            return self.again[lane.again_at - 1]
        if lane.cursor >= end:
            return NOWHERE
        lane.cursor += 1
        return lane.cursor - 1

    cdef int refuse(self, int32_t at, int32_t reason) noexcept nogil:
        """Refuse the unit of entry *at*."""
        cdef const Team *team
        cdef Py_ssize_t k
        if self.entries[at].team == NOWHERE:
            self.entries[at].verdict = reason
            return 0
        team = &self.teams[self.entries[at].team]
        for k in range(team.first, team.first + team.count):
            self.entries[self.members[k]].verdict = reason
        return 0

    cdef int attempt(self, Py_ssize_t number) except -1 nogil:
        """The turn of the unit at the head of lane *number*."""
        cdef Lane *lane = &self.lanes[number]
        cdef int32_t at = lane.head, reason
        cdef Entry *entry = &self.entries[at]
        cdef const Team *team
        cdef const Shape *shape = &self.shapes[entry.shape]
        if entry.home != NOWHERE:
            if self.return_home(at):
                self.went_home = True
                return 0
        if entry.team == NOWHERE:
            if shape.barred:
                return 0
            if shape.failed_in == self.passes:
                self.lacked_room = True
                return self.refuse(at, NO_ROOM)
        else:
            team = &self.teams[entry.team]
            if self.failed_in[team.signature] == self.passes:
                self.lacked_room = True
                return self.refuse(at, self.fail_reason[team.signature])
            if (team.shape != NOWHERE and team.label == NOWHERE
                    and shape.failed_in == self.passes):
                self.lacked_room = True
                return self.refuse(at, NO_ROOM)
        if entry.home == NOWHERE:
            if self.ended or lane.ended:
                return self.refuse(at, self.end_reason if self.ended else lane.end_reason)
            reason = self.limit(number, at)
            if reason != NO_VERDICT:
                return self.refuse(at, reason)
            lane.tries += 1
            self.tries += 1
        self.load_avoid(at)
        if entry.team == NOWHERE:
            return self.attempt_lone(at)
        return self.attempt_gang(at)

    cdef int attempt_lone(self, int32_t at) except -1 nogil:
        cdef Seat seat
        cdef int32_t shape = self.entries[at].shape
        if self.find_seat(at, NOWHERE, &seat, False):
            self.bind(&seat)
            return self.settle(&seat)
        self.shapes[shape].failed_in = self.passes
        self.lacked_room = True
        return self.refuse(at, NO_ROOM)

    # --- a seat for one ---------------------------------------------------------------------

    cdef bint find_seat(self, int32_t at, int32_t value, Seat *seat, bint gang) except -1 nogil:
        """A node for entry *at*; who must give way there has done so. *value*: of its label."""
        cdef int32_t shape = self.entries[at].shape, variant
        seat.at = at
        seat.preemptible = self.shapes[shape].preemptible
        if self.may_home and self.try_shape(
                at, shape, self.shapes[shape].priority, value, seat):
            return True
        if not self.may_away or (gang and not self.may_gang_away):
            return False
        variant = self.shapes[shape].variant
        while variant != NOWHERE:
            if self.try_shape(at, self.variants[variant].shape,
                              self.variants[variant].priority, value, seat):
                # What it cost is told apart from how it is called.
                seat.method |= AWAY << 2
                return True
            variant = self.variants[variant].after
        return False

    cdef bint try_shape(self, int32_t at, int32_t shape, int64_t priority, int32_t value,
                        Seat *seat) except -1 nogil:
        cdef const int32_t *only = NULL
        cdef const uint8_t *allowed = NULL
        cdef Py_ssize_t node, i, given = 0
        cdef int row = 0
        if value != NOWHERE:
            only = self.value_nodes + self.value_at[value]
            given = self.value_at[value + 1] - self.value_at[value]
            allowed = self.allowed
            node = self.table.find_among(
                shape, 0, only, given, self.avoid, self.ranks, self.avoided, &row)
        else:
            node = self.table.find_avoiding(
                shape, 0, self.avoid, self.ranks, self.avoided, &row)
        seat.shape = shape
        seat.priority = priority
        seat.method = FREE
        if node == NOWHERE:
            if self.may_take_share and self.preemption_tokens - self.displaced >= 1:
                node = self.clear_by_share(shape, priority, allowed)
                seat.method = SHARE
            if node == NOWHERE and self.may_take_urgent:
                node = self.clear_by_urgency(shape, priority, only, given)
                seat.method = URGENT
            if node == NOWHERE:
                return False
            for i in range(self.chosen_count - 1, -1, -1):
                self.lose(self.chosen[i], at, node,
                          BY_SHARE if seat.method == SHARE else BY_URGENCY)
        seat.node = <int32_t> node
        return True

    cdef int lose(self, int32_t unit, int32_t for_entry, Py_ssize_t node,
                  uint8_t cause) except -1 nogil:
        """Let *unit* give way, and count what that costs."""
        cdef Entry *entry = &self.entries[unit]
        cdef Entry *member
        cdef Py_ssize_t k, first = 0, end = 1
        if entry.team != NOWHERE:
            first = self.teams[entry.team].first
            end = first + self.teams[entry.team].count
        for k in range(first, end):
            member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
            if member.home == NOWHERE:
                self.count_new(member, -1)
            self.displaced += cause == BY_SHARE
        self.take(unit, for_entry, node, cause)
        return 0

    cdef void regain(self, Py_ssize_t down_to) noexcept nogil:
        """Take back, after the table has, that units gave way since *down_to*."""
        cdef Py_ssize_t i, k, first, end, was = self.gone_count
        cdef Entry *entry
        cdef Entry *member
        self.take_back(down_to)
        for i in range(down_to, was):
            entry = &self.entries[self.gone[i].unit]
            first, end = 0, 1
            if entry.team != NOWHERE:
                first = self.teams[entry.team].first
                end = first + self.teams[entry.team].count
            for k in range(first, end):
                member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
                if member.home == NOWHERE:
                    self.count_new(member, 1)
                self.displaced -= self.gone[i].cause == BY_SHARE

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

    cdef int bind(self, const Seat *seat) except -1 nogil:
        # While others may give way to urgency, what is placed in this pass may not.
        self.table.bind_handle(
            self.entries[seat.at].handle, seat.shape, seat.node, seat.priority,
            seat.preemptible and self.lowest == INT64_MAX, 0)
        return 0

    cdef int settle(self, const Seat *seat) except -1 nogil:
        """Note that entry is bound as *seat* says."""
        cdef Entry *entry = &self.entries[seat.at]
        cdef const RunPart *run
        cdef Lane *lane
        entry.node = seat.node
        entry.priority = seat.priority
        entry.preemptible = seat.preemptible
        entry.leased_at = self.now
        if entry.node == entry.home:
            # However it got there: it has not been touched.
            run = active_run(entry.record)
            entry.priority = run.priority
            entry.leased_at = run.leased_at
        entry.method = AWAY if seat.method >> 2 else seat.method
        entry.verdict = NO_VERDICT
        self.count_run(seat.at, 1, True)
        entry.standing = PLACED_NOW
        if entry.home == NOWHERE:
            self.count_new(entry, 1)
        if entry.preemptible:
            lane = &self.lanes[entry.lane]
            self.reordered = self.reordered or (
                0 <= lane.placed_priority != entry.record.priority)
            lane.placed_priority = entry.record.priority
        self.settled = True
        self.went_away = self.went_away or entry.method == AWAY
        return self.note(seat.at)

    cdef int note(self, int32_t at) except -1 nogil:
        """Remember when entry *at* was decided on last."""
        cdef Py_ssize_t space
        cdef int32_t *grown
        if self.decided_count == self.decided_space:
            space = max(2 * self.decided_space, 256)
            grown = <int32_t *> realloc(self.decided, space * sizeof(int32_t))
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.decided = grown
            self.decided_space = space
        self.entries[at].place = <int32_t> self.decided_count
        self.decided[self.decided_count] = at
        self.decided_count += 1
        return 0

    # --- seats for a gang -------------------------------------------------------------------

    cdef int attempt_gang(self, int32_t at) except -1 nogil:
        """All members of the gang of entry *at*, or none."""
        cdef const Team *team = &self.teams[self.entries[at].team]
        cdef int32_t value, first = NOWHERE, end = 0, k
        cdef int64_t cost = 0, least = -1
        cdef Py_ssize_t victims, fewest = 0, mark, gone_at = self.gone_count, i
        self.most_members = NOWHERE
        self.gang_reason = NO_VERDICT
        if team.label != NOWHERE:
            first, end = self.label_at[team.label], self.label_at[team.label + 1]
        for value in range(first, end):
            for i in range(0 if value == NOWHERE else self.value_at[value],
                           0 if value == NOWHERE else self.value_at[value + 1]):
                self.allowed[self.value_nodes[i]] = 1
            mark = self.table.open_attempt()
            victims = self.try_value(team, value, &cost)
            for i in range(0 if value == NOWHERE else self.value_at[value],
                           0 if value == NOWHERE else self.value_at[value + 1]):
                self.allowed[self.value_nodes[i]] = 0
            if victims >= 0 and (cost == 0 or end - first == 1):
                self.table.keep_attempt(mark)
                for k in range(team.count):
                    self.settle(&self.seats[k])
                return 0
            if victims >= 0 and (least < 0 or cost < least
                                 or (cost == least and victims < fewest)):
                least = cost
                fewest = victims
                self.keep_best(team, gone_at)
            self.table.undo_attempt(mark)
            self.regain(gone_at)
        if least >= 0 and self.seat_best(team):
            return 0
        if self.gang_reason == NO_VERDICT:
            self.gang_reason = self.new_reason(NO_MATCHING_NODE, NOWHERE, 0, 0)
        self.failed_in[team.signature] = self.passes
        self.fail_reason[team.signature] = self.gang_reason
        self.lacked_room = True
        return self.refuse(at, self.gang_reason)

    cdef Py_ssize_t try_value(self, const Team *team, int32_t value,
                              int64_t *cost) except -2 nogil:
        """Bind the members, in order, on nodes of *value*. -1: one has none.

        Else how many units gave way; *cost* is the sum over members of how their room was found.
        """
        cdef Py_ssize_t k, gone = self.gone_count
        cdef int32_t at, reason
        cdef const int32_t *only = NULL
        cdef Py_ssize_t given = 0
        cost[0] = 0
        for k in range(team.count):
            at = self.members[team.first + k]
            if not self.find_seat(at, value, &self.seats[k], True):
                # Asked before the others leave: it is for them that there is no room.
                if k > self.most_members:
                    self.most_members = k
                    if value != NOWHERE:
                        only = self.value_nodes + self.value_at[value]
                        given = self.value_at[value + 1] - self.value_at[value]
                    reason = self.why_not(self.entries[at].shape, only, given)
                    if k and self.reasons[reason].code == INSUFFICIENT_RESOURCES:
                        reason = self.new_reason(GANG_DOES_NOT_FIT, NOWHERE, team.count, k)
                    self.gang_reason = reason
                return -1
            cost[0] += self.seats[k].method & 3
            self.bind(&self.seats[k])
        return self.gone_count - gone

    cdef int keep_best(self, const Team *team, Py_ssize_t gone_at) except -1 nogil:
        """Remember the seats of a try, and who gave way for them."""
        cdef Py_ssize_t i, count = self.gone_count - gone_at
        memcpy(self.best_seats, self.seats, team.count * sizeof(Seat))
        if count > self.best_gone_space:
            free(self.best_gone)
            free(self.best_causes)
            free(self.best_cleared)
            free(self.best_for)
            self.best_gone_space = 0
            self.best_gone = <int32_t *> malloc(count * sizeof(int32_t))
            self.best_causes = <uint8_t *> malloc(count)
            self.best_cleared = <int32_t *> malloc(count * sizeof(int32_t))
            self.best_for = <int32_t *> malloc(count * sizeof(int32_t))
            if (self.best_gone == NULL or self.best_causes == NULL
                    or self.best_cleared == NULL or self.best_for == NULL):
                with gil:
                    raise MemoryError
            self.best_gone_space = count
        for i in range(count):
            self.best_gone[i] = self.gone[gone_at + i].unit
            self.best_causes[i] = self.gone[gone_at + i].cause
            self.best_cleared[i] = self.gone[gone_at + i].node
            self.best_for[i] = self.gone[gone_at + i].for_entry
        self.best_gone_count = count
        return 0

    cdef bint seat_best(self, const Team *team) except -1 nogil:
        """Bind the members as the best try did, without searching again."""
        cdef Py_ssize_t i
        for i in range(self.best_gone_count):
            self.lose(self.best_gone[i], self.best_for[i], self.best_cleared[i],
                      self.best_causes[i])
        for i in range(team.count):
            self.bind(&self.best_seats[i])
        for i in range(team.count):
            self.settle(&self.best_seats[i])
        return True

    # --- home -------------------------------------------------------------------------------

    cdef bint return_home(self, int32_t at) except -1 nogil:
        """Bind every run of the unit of *at* where the round found it, if there is free room."""
        cdef Entry *entry = &self.entries[at]
        cdef Entry *member
        cdef const Team *team
        cdef const RunPart *run
        cdef Py_ssize_t k, first = 0, end = 1, mark
        cdef int32_t each
        cdef bint fits = True
        if entry.team != NOWHERE:
            team = &self.teams[entry.team]
            first, end = team.first, team.first + team.count
        mark = self.table.open_attempt()
        for k in range(first, end):
            member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
            if member.node != NOWHERE:
                self.table.unbind_handle(member.handle)
        for k in range(first, end):
            member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
            fits = fits and self.table.fits(member.home, member.home_shape, 0)
            if not fits:
                break
            run = active_run(member.record)
            self.table.bind_handle(
                member.handle, member.home_shape, member.home, run.priority,
                self.lowest == INT64_MAX,
                self.table.bindings[member.handle].pool)
        if not fits:
            self.table.undo_attempt(mark)
            return False
        self.table.keep_attempt(mark)
        for k in range(first, end):
            each = at if entry.team == NOWHERE else self.members[k]
            member = &self.entries[each]
            run = active_run(member.record)
            if member.node == NOWHERE:
                member.standing = GUEST if member.was_guest else PLACED_NOW
                self.count_run(each, 1, True)
            member.node = member.home
            member.priority = run.priority
            member.leased_at = run.leased_at
            member.preemptible = 1  # what is not gives no way
            member.verdict = NO_VERDICT
        return True

    cdef int send_home(self) except -1:
        """After a pass: who runs elsewhere goes home if there is room, and so does who lost its
        node and is of no queue that could ask for another."""
        cdef Py_ssize_t count = 0, i, k
        cdef Entry *entry
        cdef const Entry *last
        cdef const Entry *member
        cdef const Team *team
        cdef const RunPart *run
        cdef const RunPart *latest
        cdef int32_t unit
        cdef HomeKey *keys
        for i in range(self.entry_count):
            entry = &self.entries[i]
            count += entry.home != NOWHERE and entry.node != entry.home
        if not count:
            return 0
        keys = <HomeKey *> malloc(count * sizeof(HomeKey))
        if keys == NULL:
            raise MemoryError
        count = 0
        for i in range(self.entry_count):
            entry = &self.entries[i]
            if entry.home == NOWHERE or entry.node == entry.home:
                continue
            if entry.node == NOWHERE and entry.lane != NOWHERE and (
                    self.lanes[entry.lane].takes_part):
                continue
            unit = <int32_t> i
            latest = active_run(entry.record)
            if entry.team != NOWHERE:
                team = &self.teams[entry.team]
                for k in range(team.first, team.first + team.count):
                    member = &self.entries[self.members[k]]
                    if member.home == NOWHERE:
                        continue
                    last = &self.entries[unit]
                    run = active_run(member.record)
                    latest = active_run(last.record)
                    if run.leased_at > latest.leased_at or (
                            run.leased_at == latest.leased_at
                            and compare_records(member.record, last.record) > 0):
                        unit = self.members[k]
                latest = active_run(self.entries[unit].record)
                # One of them names it: the first that is away.
                k = team.first
                while self.entries[self.members[k]].node == self.entries[self.members[k]].home:
                    k += 1
                if self.members[k] != i:
                    continue
            keys[count] = HomeKey(latest.leased_at, self.entries[unit].record, <int32_t> i)
            count += 1
        qsort(keys, count, sizeof(HomeKey), by_home)
        with nogil:
            for i in range(count):
                if self.return_home(keys[i].unit):
                    self.went_home = True
        free(keys)
        return 0

    # --- why not ----------------------------------------------------------------------------

    cdef int load_avoid(self, int32_t at) except -1 nogil:
        """Read the nodes that the unit of entry *at* would rather not use."""
        cdef const Entry *entry = &self.entries[at]
        cdef const Entry *member
        cdef Py_ssize_t k, first = 0, end = 1, wanted
        cdef bint has_past = False
        cdef void *grown
        self.avoided = 0
        if entry.team != NOWHERE:
            first = self.teams[entry.team].first
            end = first + self.teams[entry.team].count
        for k in range(first, end):
            member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
            has_past = has_past or (member.record.cold != NULL and (
                member.record.cold.run_count > 0 or member.record.cold.tracker != NULL))
        if not has_past:
            return 0
        with gil:
            jobs = [
                job_view((entry if entry.team == NOWHERE
                          else &self.entries[self.members[k]]).record)
                for k in range(first, end)
            ]
            pairs = self.avoid_of(jobs)
            wanted = len(pairs)
            if wanted > self.avoid_space:
                grown = realloc(self.avoid, wanted * sizeof(int32_t))
                if grown == NULL:
                    raise MemoryError
                self.avoid = <int32_t *> grown
                grown = realloc(self.ranks, wanted)
                if grown == NULL:
                    raise MemoryError
                self.ranks = <uint8_t *> grown
                self.avoid_space = wanted
            for node_id, rank in pairs:
                node = self.table.node_by_id.get(node_id)
                if node is not None:
                    self.avoid[self.avoided] = node
                    self.ranks[self.avoided] = rank
                    self.avoided += 1
        return 0

    cdef int32_t why_not(self, int32_t shape, const int32_t *only,
                         Py_ssize_t given) except -1 nogil:
        """Why *shape* finds no free room (among *only*), by the node that is nearest to it."""
        cdef int32_t resource = NOWHERE
        cdef int64_t had = 0
        cdef const int64_t *request = self.table.request_of(shape)
        cdef int lacking = self.nearest(shape, NOWHERE, False, only, given, &resource, &had)
        cdef int code = EXCEEDS_EVERY_NODE
        if lacking == NOWHERE:
            return self.new_reason(NO_MATCHING_NODE, NOWHERE, 0, 0)
        if not lacking:
            code = INSUFFICIENT_RESOURCES
            lacking = self.nearest(shape, 0, True, only, given, &resource, &had)
            if lacking == NOWHERE:
                return self.new_reason(NODES_CLOSED, NOWHERE, 0, 0)
            if not lacking:
                # There is room, but not for one that counts its neighbours.
                return self.new_reason(TOO_CROWDED, NOWHERE, 0, 0)
        return self.new_reason(code, resource, request[resource], had)

    cdef int nearest(self, int32_t shape, int row, bint open_only, const int32_t *only,
                     Py_ssize_t given, int32_t *resource, int64_t *had) except -2 nogil:
        """Of how many amounts the nearest matching node has too little, or NOWHERE.

        At *row*, or in total where that is NOWHERE. The nearest lacks the fewest, then the least
        part of the one that it lacks most of, which goes to *resource*.
        """
        cdef const uint8_t *tiers = self.table.masks[shape].tiers
        cdef const int64_t *request = self.table.request_of(shape)
        cdef const int64_t *there
        cdef Py_ssize_t i, r, node, columns = self.table.columns
        cdef int lacking, fewest = NOWHERE
        cdef int32_t scarcest
        cdef double part, worst, best = 0.0
        if only == NULL:
            given = self.table.count
        for i in range(given):
            node = i if only == NULL else only[i]
            if not tiers[node] or (open_only and not self.table.open[node]):
                continue
            lacking = 0
            scarcest = NOWHERE
            worst = 0.0
            there = self.table.cells(node, row) if row != NOWHERE else (
                self.table.base + node * columns)
            for r in range(columns):
                if request[r] > there[r]:
                    lacking += 1
                    # Negative amounts are possible, and so is a request for nothing of them.
                    part = <double> there[r] / <double> max(request[r], 1)
                    if scarcest == NOWHERE or part < worst:
                        worst = part
                        scarcest = <int32_t> r
            if fewest == NOWHERE or lacking < fewest or (lacking == fewest and worst > best):
                fewest = lacking
                best = worst
                resource[0] = scarcest
                if scarcest != NOWHERE:
                    had[0] = there[scarcest]
        return fewest

    # --- what came of it --------------------------------------------------------------------

    cdef bint is_last_word(self, Py_ssize_t place) noexcept nogil:
        """Whether the decision at *place* is the last about its entry, which it bound."""
        cdef const Entry *entry = &self.entries[self.decided[place]]
        return entry.place == place and entry.node != NOWHERE

    def scheduled(self, reader):
        """(job ids, node indices, priorities, methods): what is newly placed, as columns.

        *reader* is what has the jobs; the ids of a snapshot hold it and nothing of the round.
        """
        cdef Py_ssize_t i, count = 0
        cdef const Entry *entry
        cdef const Record **records
        cdef uint32_t *slots
        cdef bint placed_by_slot = True
        cdef int32_t[::1] node_cells
        cdef int64_t[::1] priority_cells
        cdef uint8_t[::1] method_cells
        for i in range(self.decided_count):
            count += (self.is_last_word(i)
                      and self.entries[self.decided[i]].home == NOWHERE)
        nodes = array("i", bytes(4 * count))
        priorities = array("q", bytes(8 * count))
        methods = bytearray(count)
        if count == 0:
            return (), nodes, priorities, methods
        node_cells, priority_cells, method_cells = nodes, priorities, methods
        records = <const Record **> malloc(count * sizeof(Record *))
        slots = <uint32_t *> malloc(count * sizeof(uint32_t))
        try:
            if records == NULL or slots == NULL:
                raise MemoryError
            count = 0
            for i in range(self.decided_count):
                entry = &self.entries[self.decided[i]]
                if self.is_last_word(i) and entry.home == NOWHERE:
                    node_cells[count] = entry.node
                    priority_cells[count] = entry.priority
                    method_cells[count] = entry.method
                    records[count] = entry.record
                    slots[count] = entry.slot
                    placed_by_slot = placed_by_slot and entry.slot != <uint32_t> NOWHERE
                    count += 1
            ids = ids_of(reader, records, slots if placed_by_slot else NULL, count)
            return ids, nodes, priorities, methods
        finally:
            free(records)
            free(slots)

    def moved(self):
        """[(job id, run id, from, to, priority, for job id, cause)] of the runs that moved."""
        cdef Py_ssize_t i
        cdef const Entry *entry
        cdef list found = []
        for i in range(self.decided_count):
            entry = &self.entries[self.decided[i]]
            if (self.is_last_word(i) and entry.home != NOWHERE and entry.node != entry.home):
                found.append((
                    *self.fallen(self.decided[i]),
                    self.table.node_ids[entry.node], entry.priority))
        return found

    def preempted(self):
        """[(job id, run id, node id, for job id, cause)] of the runs that gave way."""
        cdef Py_ssize_t i
        cdef const Entry *entry
        cdef list found = []
        for i in range(self.entry_count):
            entry = &self.entries[i]
            if entry.home != NOWHERE and entry.node == NOWHERE:
                found.append((entry.fell, *self.fallen(<int32_t> i)))
        found.sort()
        return [each[1:] for each in found]

    def fallen(self, int32_t at):
        """(job id, run id, node id, for job id, cause) of the run of entry *at*."""
        cdef const Entry *entry = &self.entries[at]
        cdef const RunPart *run = active_run(entry.record)
        cdef const Record *other
        for_job = ""
        if entry.for_entry != NOWHERE:
            other = self.entries[entry.for_entry].record
            for_job = name_text(&other.id, other.id_kind)
        return (
            name_text(&entry.record.id, entry.record.id_kind),
            name_text(&run.id, run.id_kind),
            self.table.node_ids[entry.home], for_job, CAUSES[entry.cause],
        )

    def refused(self):
        """Why each job was refused that waits for a node and got none."""
        cdef Py_ssize_t i
        cdef Entry *entry
        cdef Shape *shape
        cdef Reason *reason
        cdef list reasons = []
        # The nodes as they are now: why a shape found nothing is the same for all of it.
        for i in range(self.entry_count):
            entry = &self.entries[i]
            if entry.home == NOWHERE and entry.node == NOWHERE and entry.verdict == NO_ROOM:
                shape = &self.shapes[entry.shape]
                if shape.reason == NO_VERDICT:
                    shape.reason = self.why_not(entry.shape, NULL, 0)
                entry.verdict = shape.reason
        for i in range(self.reason_count):
            reason = &self.reasons[i]
            reasons.append((CODES[reason.code], reason.resource, reason.wanted, reason.had))
        return Refused(self, tuple(reasons))

    def ended_by(self):
        """The code of the limit that ended the round, or None."""
        return CODES[self.reasons[self.end_reason].code] if self.ended else None

    def counts(self):
        """[(queue, queued, looked at, tried, newly placed)] of each queue, by name."""
        cdef Py_ssize_t i
        cdef const Lane *lane
        cdef list found = []
        for i in range(self.lane_count):
            lane = &self.lanes[i]
            found.append((
                self.queue_names[i], lane.count, lane.looked_at if lane.open else 0, lane.tries,
                lane.new_jobs))
        return found

    @property
    def displaced_runs(self):
        """How many times a run gave way for the sake of shares."""
        return self.displaced


@cython.final
cdef class Refused:
    """Why each job of a round got no node, as columns; (code, resource, wanted, had) a reason.

    Holds the jobs and a number for each, so that it costs the same for one as for many.
    """

    cdef RoundWalk walk
    cdef readonly tuple reasons
    cdef Py_ssize_t size

    def __init__(self, RoundWalk walk not None, tuple reasons not None):
        cdef Py_ssize_t i
        self.walk = walk
        self.reasons = reasons
        for i in range(walk.entry_count):
            self.size += self.is_refused(i)

    cdef bint is_refused(self, Py_ssize_t i) noexcept:
        cdef const Entry *entry = &self.walk.entries[i]
        return entry.home == NOWHERE and entry.node == NOWHERE and entry.verdict >= 0

    def __len__(self):
        return self.size

    def counts(self):
        """How many jobs have each of `reasons`, in their order."""
        cdef Py_ssize_t i
        cdef list counts = [0] * len(self.reasons)
        cdef int64_t *tally = <int64_t *> calloc(max(len(counts), 1), sizeof(int64_t))
        if tally == NULL:
            raise MemoryError
        for i in range(self.walk.entry_count):
            if self.is_refused(i):
                tally[self.walk.entries[i].verdict] += 1
        for i in range(len(counts)):
            counts[i] = tally[i]
        free(tally)
        return counts

    def items(self):
        """[(job id, index in `reasons`)] by queue and then in the order of the queue."""
        cdef Py_ssize_t i
        cdef const Record *record
        cdef list items = []
        for i in range(self.walk.entry_count):
            if self.is_refused(i):
                record = self.walk.entries[i].record
                items.append((
                    name_text(&record.id, record.id_kind), self.walk.entries[i].verdict))
        return items
