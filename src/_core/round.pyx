# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The inner loop of a round: whose turn it is, where it goes, and who gives way to it.

Owns the passes, the walk along each queue and the memo of what found no room. Relies on
`RoundSeats` for nodes, on `RoundLine` for who comes back, and on its caller for policy. Keeps
INV-R1 to INV-R3 and INV-R7. docs/round.md tells it in pseudo-code.
"""

cimport cython
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, qsort

from pyresched._core.jobids cimport ids_of
from pyresched._core.nodeledger cimport NOWHERE
from pyresched._core.records cimport Record, RunPart, active_run, name_text
from pyresched._core.resources cimport saturating_add
from pyresched._core.roundjobs cimport (
    ALLOCATED, NO_ROOM, NO_VERDICT, RETURNED, WAITS, Entry, Lane, Reason, Shape, Team,
    compare_records,
)
from pyresched._core.roundseats cimport MOST_FLIPS, RoundSeats, Seat
from pyresched._core.roundturns cimport Head
from pyresched._core.versions cimport tried_malloc as malloc

from pyresched._core.roundanswers import Refused
from pyresched._core.roundjobs import CODES
from pyresched._core.roundline import CAUSES

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
cdef class RoundWalk(RoundSeats):
    """One round over the nodes of *table*, which it changes.

    *classes* maps a class name to (priority, preemptible). *members_of* (queue, gang id) gives
    all members of a gang, *avoid_of* (node id, rank) pairs for a list of jobs, *values_of* the
    lists of node indices that share a value of a label, in the order in which they are tried,
    *variants_of* (requirements, priority) pairs for requirements that may go away. Queues are
    added first, in ascending order of their names, then what runs; then `decide` is called once.
    """

    def __dealloc__(self):
        free(self.again)
        free(self.again_before)

    # --- passes -----------------------------------------------------------------------------

    def decide(self, *, int most_passes):
        """Place what can be placed, pass by pass, until one changes nothing.

        False: that did not happen within *most_passes*.
        """
        self.get_ready()
        if not self.anyone_waits():
            self.passes = 1
            return True
        while self.passes < most_passes:
            self.passes += 1
            self.one_pass()
            self.send_home()
            if not (self.took or self.settled or self.went_home):
                return True
            if not self.took and not self.went_home and not self.needs_another():
                return True
        return False

    cdef bint anyone_waits(self) noexcept nogil:
        """Whether a job could be placed at all, or somebody have to stand in line for it."""
        cdef Py_ssize_t i
        for i in range(self.lane_count):
            if self.lanes[i].open and self.lanes[i].looked_at:
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
            if self.lanes[i].preemptible_runs and self.is_over(i):
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
        with nogil:
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
            for i in range(self.entry_count):
                if self.entries[i].standing == WAITS:
                    self.lanes[self.entries[i].lane].stood_in_line += 1
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
                if lane.first_turn < 0:
                    lane.first_turn = self.turns
                i = self.decided_count
                self.attempt(number)
                if self.decided_count != i:
                    lane.last_turn = self.turns
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
        cdef int32_t worst
        while lane.cursor < end:
            at = lane.cursor
            entry = &self.entries[at]
            if entry.node != NOWHERE or entry.shape == NOWHERE:
                lane.cursor += 1
                continue
            shape = &self.shapes[entry.shape]
            if entry.team == NOWHERE:
                if not (self.ended or lane.ended or shape.barred
                        or shape.failed_in == self.passes or self.is_hopeless(entry.shape)):
                    break
                if shape.barred:
                    entry.verdict = shape.reason
                elif self.is_hopeless(entry.shape):
                    # It takes no turn, so that it holds up nobody behind it.
                    entry.verdict = NO_ROOM
                elif shape.failed_in == self.passes:
                    entry.verdict = NO_ROOM
                    self.lacked_room = True
                else:
                    entry.verdict = self.end_reason if self.ended else lane.end_reason
            else:
                team = &self.teams[entry.team]
                if at == team.last and team.fault == NOWHERE:
                    worst = self.hopeless_member(team)
                    if worst != NOWHERE:
                        if self.shapes[worst].reason == NO_VERDICT:
                            self.shapes[worst].reason = self.why_not(worst, NULL, 0)
                        self.refuse(at, self.shapes[worst].reason)
                    elif self.failed_in[team.signature] == self.passes:
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
        while lane.again_at < lane.again_end and (
                lane.cursor >= end or self.again_before[lane.again_at] <= lane.cursor):
            lane.again_at += 1
            at = self.again[lane.again_at - 1]
            # It would stand here with a turn that it does not have in the next round, where it
            # is passed over like all others of its shape.
            if not self.is_remembered(at) or self.return_home(at, True):
                return at
            self.lacked_room = True
            self.refuse(at, NO_ROOM)
        if lane.cursor >= end:
            return NOWHERE
        lane.cursor += 1
        return lane.cursor - 1

    cdef bint is_remembered(self, int32_t at) noexcept nogil:
        """Whether the like of the unit of entry *at* found no room in this pass, or never could."""
        cdef const Entry *entry = &self.entries[at]
        cdef const Team *team
        cdef bint alone = self.shapes[entry.shape].failed_in == self.passes
        if entry.team == NOWHERE:
            return alone or self.is_hopeless(entry.shape)
        team = &self.teams[entry.team]
        if self.hopeless_member(team) != NOWHERE:
            return True
        if self.failed_in[team.signature] == self.passes:
            return True
        # Where not one finds room, several do not.
        return alone and team.shape != NOWHERE and team.label == NOWHERE

    cdef int32_t hopeless_member(self, const Team *team) noexcept nogil:
        """The shape of a member that no node could ever hold, or NOWHERE."""
        cdef Py_ssize_t k
        cdef int32_t shape
        for k in range(team.first, team.first + team.count):
            shape = self.entries[self.members[k]].shape
            if self.is_hopeless(shape):
                return shape
        return NOWHERE

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
        # Two that send each other off by turns would do so for ever, and in every round again.
        self.barred = entry.flips >= MOST_FLIPS
        if entry.team == NOWHERE:
            return self.attempt_lone(at)
        return self.attempt_gang(at)

    cdef int attempt_lone(self, int32_t at) except -1 nogil:
        cdef Seat seat
        cdef int32_t shape = self.entries[at].shape
        if self.find_seat(at, NOWHERE, &seat, False):
            self.bind(&seat)
            self.settle(&seat)
            self.mark_room(at)
            return 0
        if not self.barred:
            self.shapes[shape].failed_in = self.passes
            self.lacked_room = True
        return self.refuse(at, NO_ROOM)

    # --- home -------------------------------------------------------------------------------

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
        with nogil:
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
        try:
            with nogil:
                for i in range(count):
                    if not self.sits_better(keys[i].unit) and self.return_home(keys[i].unit):
                        self.went_home = True
        finally:
            free(keys)
        return 0

    cdef bint sits_better(self, int32_t at) noexcept nogil:
        """Whether a run of the unit of *at* is less easy to send off where it is than at home."""
        cdef const Entry *member = &self.entries[at]
        cdef const Team *team
        cdef Py_ssize_t k, first = 0, end = 1
        if self.entries[at].team != NOWHERE:
            team = &self.teams[self.entries[at].team]
            first, end = team.first, team.first + team.count
        for k in range(first, end):
            if self.entries[at].team != NOWHERE:
                member = &self.entries[self.members[k]]
            if (member.node != NOWHERE and member.home != NOWHERE
                    and member.priority > member.home_priority):
                return True
        return False

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
        with nogil:
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
            with nogil:
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
        with nogil:
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
        """What each queue came to, by name.

        [(queue, queued, looked at, tried, newly placed, gangs among them, runs that stood in
        line again, preempted, first turn, last turn at which it got something)]; turns are
        counted from 0, -1: none.
        """
        cdef Py_ssize_t i
        cdef const Lane *lane
        cdef const Entry *entry
        cdef list found = []
        cdef list gangs = [0] * self.lane_count
        cdef list lost = [0] * self.lane_count
        for i in range(self.team_count):
            if not self.teams[i].count:
                continue  # all its members are elsewhere
            entry = &self.entries[self.teams[i].last]
            if entry.home == NOWHERE and entry.node != NOWHERE:
                gangs[entry.lane] += 1
        for i in range(self.entry_count):
            entry = &self.entries[i]
            if entry.home != NOWHERE and entry.node == NOWHERE and entry.lane != NOWHERE:
                lost[entry.lane] += 1
        for i in range(self.lane_count):
            lane = &self.lanes[i]
            found.append((
                self.queue_names[i], lane.count, lane.looked_at if lane.open else 0, lane.tries,
                lane.new_jobs, gangs[i], lane.stood_in_line, lost[i], lane.first_turn,
                lane.last_turn))
        return found

    @property
    def displaced_runs(self):
        """How many times a run gave way for the sake of shares."""
        return self.displaced
