# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Who gives way first: the runs of a round in a line, and the fewest of them that make room.

Owns the line and the choice of victims; relies on `RoundTurns` for the order between queues and
on the table for what nodes have left. Keeps INV-R4 to INV-R6.

A *unit* is a lone run or all the runs of a gang, named by one entry of it. The line is the order
in which all units that may give way would come back if nothing else waited; who is last in it
gives way first.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, qsort
from libc.string cimport memcpy, memset

from pyresched._core.crowding cimport Crowding
from pyresched._core.nodeledger cimport NOWHERE, Binding
from pyresched._core.resources cimport saturating_add, saturating_sub
from pyresched._core.roundjobs cimport (
    ALLOCATED, AT_FIRST, FULL, GUEST, LOST, PLACED_NOW, QUEUED_HERE, STAYS, WAITS, Entry, Lane,
    Team, compare_records,
)
from pyresched._core.roundturns cimport Head, RoundTurns
from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)

CAUSES = ("fair_share", "urgency", "gang", "guest")


cdef int by_return(const void *a, const void *b) noexcept nogil:
    cdef const UnitKey *one = <const UnitKey *> a
    cdef const UnitKey *other = <const UnitKey *> b
    if one.priority != other.priority:
        return -1 if one.priority > other.priority else 1
    if one.leased_at != other.leased_at:
        return -1 if one.leased_at < other.leased_at else 1
    return compare_records(one.record, other.record)


cdef class RoundLine(RoundTurns):
    """Who has to come back, in which order, and who gives way."""

    def __cinit__(self, *_args, **_policy):
        cdef Py_ssize_t nodes = max(self.table.count, 1)
        self.sums = <int64_t *> malloc(nodes * self.table.columns * sizeof(int64_t) + 8)
        self.walk_of = <uint32_t *> calloc(nodes, sizeof(uint32_t))
        self.chains = <int32_t *> malloc(nodes * sizeof(int32_t))
        self.scratch = <int64_t *> malloc(2 * (self.width + 1) * sizeof(int64_t))
        if (self.sums == NULL or self.walk_of == NULL or self.chains == NULL
                or self.scratch == NULL):
            raise MemoryError

    def __dealloc__(self):
        free(self.waiting)
        free(self.line)
        free(self.sums)
        free(self.walk_of)
        free(self.chains)
        free(self.links)
        free(self.scratch)
        free(self.gone)
        free(self.chosen)
        free(self.avoid)
        free(self.ranks)

    # --- the line ---------------------------------------------------------------------------

    cdef bint whole_unit(self, int32_t at) noexcept nogil:
        """Whether entry *at*, which runs, may give way with its whole gang."""
        cdef const Entry *entry = &self.entries[at]
        cdef const Entry *member
        cdef const Team *team
        cdef Py_ssize_t k
        if entry.team == NOWHERE:
            return entry.preemptible
        team = &self.teams[entry.team]
        # What a guest's gang has elsewhere goes with it; a gang of ours that is not all here
        # cannot be put back if that should turn out to be better.
        if team.elsewhere and entry.standing != GUEST:
            return False
        for k in range(team.first, team.first + team.count):
            member = &self.entries[self.members[k]]
            if (member.node == NOWHERE or not member.preemptible
                    or (member.standing == GUEST) != (entry.standing == GUEST)):
                return False
        return True

    cdef int rebind(self, int32_t at, int64_t priority, bint preemptible) except -1 nogil:
        """Bind entry *at* where it is at another level."""
        cdef const Entry *entry = &self.entries[at]
        cdef Binding was = self.table.bindings[entry.handle]
        if was.preemptible == preemptible and (was.priority == priority or not preemptible):
            return 0
        self.table.unbind_handle(entry.handle)
        self.table.bind_handle(
            entry.handle, was.shape, was.node, priority, preemptible, was.pool)
        return 0

    cdef int settle_bindings(self) except -1 nogil:
        """Bind what cannot give way as what it is, so that a level shows the room that it has.

        A gang counts everywhere at the highest priority at which one of its runs was placed.
        """
        cdef Py_ssize_t i
        cdef const Entry *entry
        for i in range(self.entry_count):
            entry = &self.entries[i]
            if entry.node == NOWHERE or not entry.preemptible:
                continue
            if not self.whole_unit(<int32_t> i):
                self.rebind(<int32_t> i, entry.priority, False)
            elif entry.team != NOWHERE:
                self.rebind(<int32_t> i, self.unit_priority(<int32_t> i), True)
            else:
                self.rebind(<int32_t> i, entry.priority, True)
        return 0

    cdef int32_t may_give_way(self, int32_t at) noexcept nogil:
        """The unit of entry *at* if the entry is the one that names it, else NOWHERE."""
        cdef const Entry *entry = &self.entries[at]
        cdef const Team *team
        cdef const Entry *member
        cdef const Entry *last
        cdef Py_ssize_t k
        cdef int32_t unit = at
        if entry.node == NOWHERE or not self.whole_unit(at):
            return NOWHERE
        if entry.team == NOWHERE:
            return at
        team = &self.teams[entry.team]
        for k in range(team.first, team.first + team.count):
            member = &self.entries[self.members[k]]
            last = &self.entries[unit]
            if member.leased_at > last.leased_at or (
                    member.leased_at == last.leased_at
                    and compare_records(member.record, last.record) > 0):
                unit = self.members[k]
        return unit if unit == at else NOWHERE

    cdef int64_t unit_priority(self, int32_t unit) noexcept nogil:
        """The highest priority at which a run of *unit* was placed."""
        cdef const Team *team
        cdef Py_ssize_t k
        cdef int64_t highest = self.entries[unit].priority
        if self.entries[unit].team != NOWHERE:
            team = &self.teams[self.entries[unit].team]
            for k in range(team.first, team.first + team.count):
                highest = max(highest, self.entries[self.members[k]].priority)
        return highest

    cdef bint is_over(self, Py_ssize_t number) noexcept nogil:
        """Whether the runs of lane *number* are more than the share that is protected."""
        return self.lanes[number].takes_part and self.holds_more(
            self.vector(number, FULL), self.lanes[number].protected_share)

    cdef int start_line(self) except -1:
        """Begin a pass: find the units, say who has to come back, and rank them all."""
        cdef Py_ssize_t count
        cdef Py_ssize_t i
        free(self.heap)
        self.heap = NULL
        self.heap = <Head *> malloc(max(self.lane_count, 1) * sizeof(Head))
        if self.heap == NULL:
            raise MemoryError
        with nogil:
            for i in range(self.entry_count):
                self.entries[i].rank = NOWHERE
                if self.entries[i].node == NOWHERE:
                    self.entries[i].standing = QUEUED_HERE
                elif self.entries[i].standing != GUEST:
                    self.entries[i].standing = STAYS
            for i in range(self.lane_count):
                memcpy(self.vector(i, AT_FIRST), self.vector(i, FULL),
                       self.width * sizeof(int64_t))
                memcpy(self.vector(i, ALLOCATED), self.vector(i, FULL),
                       self.width * sizeof(int64_t))
                memset(self.vector(i, LOST), 0, self.width * sizeof(int64_t))
                self.lanes[i].above = self.is_over(i)
                self.lanes[i].wait_at = self.lanes[i].wait_end = 0
            self.waiting_count = 0
            self.line_length = 0
            self.lowest = INT64_MAX
            self.settle_bindings()
        # A node that held too much may have lost some of it: as the next round would find it.
        self.table.close_over_allocated()
        count = self.collect()
        if count:
            with nogil:
                self.rank_units(count)
        return 0

    cdef Py_ssize_t collect(self) except -1:
        """The units into `waiting`, by lane and in the order in which they come back."""
        cdef Py_ssize_t count, lanes = self.lane_count + 1
        cdef UnitKey *keys = NULL
        cdef int32_t *ends = <int32_t *> calloc(lanes + 1, sizeof(int32_t))
        if ends == NULL:
            raise MemoryError
        try:
            with nogil:
                count = self.count_units(ends)
            if count == 0:
                return 0
            if count > self.unit_space:
                free(self.waiting)
                free(self.line)
                self.waiting = self.line = NULL
                self.unit_space = 0
                self.waiting = <int32_t *> malloc(count * sizeof(int32_t))
                self.line = <int32_t *> malloc(count * sizeof(int32_t))
                if self.waiting == NULL or self.line == NULL:
                    raise MemoryError
                self.unit_space = <int32_t> count
            keys = <UnitKey *> malloc(count * sizeof(UnitKey))
            if keys == NULL:
                raise MemoryError
            with nogil:
                self.sort_units(keys, ends)
        finally:
            free(ends)
            free(keys)
        return count

    cdef int32_t group_of(self, const Entry *entry) noexcept nogil:
        """Its lane; those of no lane that takes part come back after all others."""
        if entry.lane == NOWHERE or not self.lanes[entry.lane].takes_part:
            return <int32_t> self.lane_count
        return entry.lane

    cdef Py_ssize_t count_units(self, int32_t *ends) noexcept nogil:
        """How many there are; *ends* gets where the units of each group begin, one late."""
        cdef Py_ssize_t i, count = 0
        for i in range(self.entry_count):
            if self.may_give_way(<int32_t> i) != NOWHERE:
                ends[self.group_of(&self.entries[i]) + 1] += 1
                count += 1
        for i in range(self.lane_count + 1):
            ends[i + 1] += ends[i]
        return count

    cdef void sort_units(self, UnitKey *keys, int32_t *ends) noexcept nogil:
        """Fill `waiting`, and say which of the units have to come back."""
        cdef Py_ssize_t i, k, first = 0
        cdef Entry *entry
        cdef const Team *team
        cdef UnitKey *key
        cdef int32_t group
        for i in range(self.entry_count):
            if self.may_give_way(<int32_t> i) == NOWHERE:
                continue
            entry = &self.entries[i]
            group = self.group_of(entry)
            key = &keys[ends[group]]
            ends[group] += 1  # in the end that is where they end
            key.unit = <int32_t> i
            key.record = entry.record
            key.leased_at = entry.leased_at
            key.priority = 0
            self.lowest = min(
                self.lowest, INT64_MIN if entry.standing == GUEST else entry.priority)
            if group == self.lane_count:
                continue
            key.priority = self.shapes[entry.shape].priority
            if not self.lanes[group].above:
                continue
            self.waiting_count += 1
            if entry.team == NOWHERE:
                entry.standing = WAITS
                continue
            team = &self.teams[entry.team]
            for k in range(team.first, team.first + team.count):
                self.entries[self.members[k]].standing = WAITS
        for i in range(self.lane_count + 1):
            # They come by submit time and id: mostly that is the order already.
            for k in range(first + 1, ends[i]):
                if by_return(&keys[k - 1], &keys[k]) > 0:
                    qsort(keys + first, ends[i] - first, sizeof(UnitKey), by_return)
                    break
            for k in range(first, ends[i]):
                self.waiting[k] = keys[k].unit
            if i < self.lane_count:
                self.lanes[i].wait_at = <int32_t> first
                self.lanes[i].wait_end = ends[i]
            first = ends[i]

    cdef int rank_units(self, Py_ssize_t count) except -1 nogil:
        """The order in which the units would come back, and what counts for a turn from now on."""
        cdef Py_ssize_t i, k, r
        cdef Lane *lane
        cdef Head *head
        cdef Team *team
        cdef int32_t unit
        cdef int64_t *has
        cdef const int64_t *amounts
        # ALLOCATED is the queue without all that may give way; LOST counts up as they come back.
        for i in range(self.lane_count):
            lane = &self.lanes[i]
            for k in range(lane.wait_at, lane.wait_end):
                amounts = self.amounts_of(&self.entries[self.waiting[k]])
                has = self.vector(i, ALLOCATED)
                for r in range(self.width):
                    has[r] = saturating_sub(has[r], amounts[r])
        self.heap_length = 0
        for i in range(self.lane_count):
            lane = &self.lanes[i]
            lane.cursor = lane.wait_at
            if lane.cursor < lane.wait_end:
                head = &self.heap[self.heap_length]
                head.lane = <int32_t> i
                self.rate(head, self.waiting[lane.cursor], True, ALLOCATED)
                self.heap_length += 1
        self.heapify()
        while self.heap_length:
            head = &self.heap[0]
            lane = &self.lanes[head.lane]
            unit = self.waiting[lane.cursor]
            self.line[self.line_length] = unit
            self.line_length += 1
            amounts = self.amounts_of(&self.entries[unit])
            has = self.vector(head.lane, ALLOCATED)
            for r in range(self.width):
                has[r] = saturating_add(has[r], amounts[r])
            lane.cursor += 1
            if lane.cursor < lane.wait_end:
                self.rate(head, self.waiting[lane.cursor], True, ALLOCATED)
            else:
                self.heap_length -= 1
                self.heap[0] = self.heap[self.heap_length]
            if self.heap_length:
                self.sift_down(0)
        # Those that come back after all others stand at the end of `waiting`.
        for i in range(self.line_length, count):
            self.line[i] = self.waiting[i]
        self.line_length = <int32_t> count
        for i in range(count):
            unit = self.line[i]
            self.entries[unit].rank = <int32_t> i
            if self.entries[unit].team != NOWHERE:
                team = &self.teams[self.entries[unit].team]
                for k in range(team.first, team.first + team.count):
                    self.entries[self.members[k]].rank = <int32_t> i
        # From here on a queue counts what stays.
        for i in range(self.lane_count):
            lane = &self.lanes[i]
            has = self.vector(i, ALLOCATED)
            memcpy(has, self.vector(i, FULL), self.width * sizeof(int64_t))
            if not lane.above:
                lane.wait_at = lane.wait_end = 0
            for k in range(lane.wait_at, lane.wait_end):
                amounts = self.amounts_of(&self.entries[self.waiting[k]])
                for r in range(self.width):
                    has[r] = saturating_sub(has[r], amounts[r])
        return 0

    # --- one walk of the line ---------------------------------------------------------------

    cdef inline int64_t *sum_of(self, Py_ssize_t node) noexcept nogil:
        """What the units passed in this walk hold of *node*."""
        cdef int64_t *sums = self.sums + node * self.table.columns
        if self.walk_of[node] != self.walks:
            self.walk_of[node] = self.walks
            self.chains[node] = NOWHERE
            memset(sums, 0, self.table.columns * sizeof(int64_t))
        return sums

    cdef bint enough(self, Py_ssize_t node, int32_t shape) noexcept nogil:
        """Whether *shape* fits *node* without the units passed."""
        cdef const int64_t *request = self.table.request_of(shape)
        cdef const int64_t *room = self.table.cells(node, 0)
        cdef const int64_t *sums = self.sum_of(node)
        cdef Py_ssize_t r
        for r in range(self.table.columns):
            if request[r] > saturating_add(room[r], sums[r]):
                return False
        return True

    cdef int node_rank(self, Py_ssize_t node) noexcept nogil:
        """How much the candidate would rather not use *node*."""
        cdef Py_ssize_t i
        for i in range(self.avoided):
            if self.avoid[i] == node:
                return self.ranks[i]
        return 0

    cdef bint above_share(self, int32_t unit, Py_ssize_t node) noexcept nogil:
        """Whether the queue of *unit* is above its protected share without those passed there."""
        cdef int32_t number = self.entries[unit].lane, link
        cdef const int64_t *first = self.vector(number, AT_FIRST)
        cdef const int64_t *lost = self.vector(number, LOST)
        cdef const int64_t *amounts
        cdef int64_t *left = self.scratch
        cdef Py_ssize_t r
        for r in range(self.width):
            left[r] = saturating_sub(first[r], lost[r])
        self.sum_of(node)
        link = self.chains[node]
        while link != NOWHERE:
            if self.entries[self.links[link].unit].lane == number:
                amounts = self.amounts_of(&self.entries[self.links[link].unit])
                for r in range(self.width):
                    left[r] = saturating_sub(left[r], amounts[r])
            link = self.links[link].before
        return self.holds_more(left, self.lanes[number].protected_share)

    cdef int pass_unit(self, int32_t unit, Py_ssize_t node) except -1 nogil:
        """Count what *unit* holds of *node* as room."""
        cdef Py_ssize_t space
        cdef Link *grown
        if self.link_count == self.link_space:
            space = max(2 * self.link_space, 256)
            grown = <Link *> realloc(self.links, space * sizeof(Link))
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.links = grown
            self.link_space = space
        self.sum_of(node)
        self.links[self.link_count] = Link(unit, self.chains[node])
        self.chains[node] = <int32_t> self.link_count
        self.link_count += 1
        self.add_held(unit, node, 1)
        return 0

    cdef void add_held(self, int32_t unit, Py_ssize_t node, int by) noexcept nogil:
        """Count what *unit* holds of *node* as room, or no longer."""
        cdef int64_t *sums = self.sum_of(node)
        cdef const Entry *entry = &self.entries[unit]
        cdef const Entry *member
        cdef const int64_t *request
        cdef Py_ssize_t k, r
        cdef Py_ssize_t first = 0, end = 1
        if entry.team != NOWHERE:
            first = self.teams[entry.team].first
            end = first + self.teams[entry.team].count
        for k in range(first, end):
            member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
            if member.node != node:
                continue
            request = self.table.request_of(self.table.bindings[member.handle].shape)
            for r in range(self.table.columns):
                if by > 0:
                    sums[r] = saturating_add(sums[r], request[r])
                else:
                    sums[r] = saturating_sub(sums[r], request[r])

    cdef Py_ssize_t clear_by_share(self, int32_t shape, int64_t priority,
                                   const uint8_t *allowed) except -2 nogil:
        """The node that units of queues above their share clear for *shape*, or NOWHERE.

        Those that must go are then in `chosen`. *allowed* has a byte for each node, NULL: all.
        """
        cdef Py_ssize_t node, i
        cdef int rank = 0, after
        if self.waiting_count == 0:
            return NOWHERE
        while True:
            node = self.walk_line(shape, priority, rank, allowed)
            if node != NOWHERE:
                return node
            # Nodes that are rather not used come after all others, rank by rank.
            after = 0x7FFFFFFF
            for i in range(self.avoided):
                if self.ranks[i] > rank:
                    after = min(after, <int> self.ranks[i])
            if after == 0x7FFFFFFF:
                return NOWHERE
            rank = after

    cdef Py_ssize_t walk_line(self, int32_t shape, int64_t priority, int rank,
                              const uint8_t *allowed) except -2 nogil:
        """The same among the nodes of one rank of avoidance."""
        cdef const uint8_t *tiers = self.table.masks[shape].tiers
        cdef void *crowding = self.table.masks[shape].crowding
        cdef Py_ssize_t i, k, node, best = NOWHERE, fewest = 0
        cdef Py_ssize_t first, end
        cdef int32_t unit, at
        cdef const Team *team
        self.walks += 1
        self.link_count = 0
        if crowding != NULL:
            (<Crowding> crowding).look(&self.table.tallies[self.table.scope_of[shape]])
        for i in range(self.line_length - 1, -1, -1):
            unit = self.line[i]
            if self.entries[unit].standing != WAITS or self.unit_priority(unit) > priority:
                continue
            first, end = 0, 1
            if self.entries[unit].team != NOWHERE:
                team = &self.teams[self.entries[unit].team]
                first = team.first
                end = first + team.count
            for k in range(first, end):
                at = unit if self.entries[unit].team == NOWHERE else self.members[k]
                node = self.entries[at].node
                if not (tiers[node] and self.table.open[node]) or (
                        allowed != NULL and not allowed[node]):
                    continue
                if crowding != NULL and (<Crowding> crowding).taken(node) >= 0:
                    continue
                if self.node_rank(node) != rank or not self.above_share(unit, node):
                    continue
                self.sum_of(node)
                if (self.chains[node] != NOWHERE
                        and self.links[self.chains[node]].unit == unit):
                    continue  # counted with a member before
                self.pass_unit(unit, node)
                if not self.enough(node, shape):
                    continue
                self.spare(node, shape)
                if best == NOWHERE or self.chosen_count < fewest or (
                        self.chosen_count == fewest and node < best):
                    best = node
                    fewest = self.chosen_count
            if best != NOWHERE:
                self.spare(best, shape)
                return best
        return NOWHERE

    cdef int choose(self, int32_t unit) except -1 nogil:
        cdef Py_ssize_t space
        cdef int32_t *grown
        if self.chosen_count == self.chosen_space:
            space = max(2 * self.chosen_space, 64)
            grown = <int32_t *> realloc(self.chosen, space * sizeof(int32_t))
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.chosen = grown
            self.chosen_space = space
        self.chosen[self.chosen_count] = unit
        self.chosen_count += 1
        return 0

    cdef int spare(self, Py_ssize_t node, int32_t shape) except -1 nogil:
        """Put those of the units passed at *node* in `chosen` that must go, first in line first."""
        cdef int32_t link = self.chains[node], unit
        cdef int64_t *sums = self.sum_of(node)
        cdef int64_t *kept = self.scratch
        memcpy(kept, sums, self.table.columns * sizeof(int64_t))
        self.chosen_count = 0
        while link != NOWHERE:
            unit = self.links[link].unit
            self.add_held(unit, node, -1)
            if not self.enough(node, shape):
                self.add_held(unit, node, 1)
                self.choose(unit)
            link = self.links[link].before
        memcpy(sums, kept, self.table.columns * sizeof(int64_t))
        return 0

    cdef Py_ssize_t clear_by_urgency(self, int32_t shape, int64_t priority, const int32_t *only,
                                     Py_ssize_t given) except -2 nogil:
        """The node that less urgent units clear for *shape*, or NOWHERE; `chosen` as above."""
        cdef int row, found = 0
        cdef Py_ssize_t node, i, count = 0
        cdef int32_t handle, at, unit
        cdef const Binding *binding
        if priority <= self.lowest:
            return NOWHERE
        row = self.table.row_of(priority)
        if only == NULL:
            node = self.table.find_avoiding(
                shape, row, self.avoid, self.ranks, self.avoided, &found)
        else:
            node = self.table.find_among(
                shape, row, only, given, self.avoid, self.ranks, self.avoided, &found)
        if node == NOWHERE:
            return NOWHERE
        self.walks += 1
        self.link_count = 0
        self.chosen_count = 0
        handle = self.table.newest[node]
        while handle != NOWHERE:
            binding = &self.table.bindings[handle]
            at = NOWHERE
            if handle >= self.table_handles:
                at = <int32_t> (handle - self.table_handles)
            else:
                at = self.entry_of[handle]
            if (binding.preemptible and at != NOWHERE and self.entries[at].rank != NOWHERE
                    and self.entries[at].standing != PLACED_NOW
                    and self.table.last_row(binding) < found):
                unit = self.line[self.entries[at].rank]
                # A gang is named once. Insertion keeps the last in line first.
                i = self.chosen_count
                while i > 0 and (self.entries[self.chosen[i - 1]].rank
                                 < self.entries[unit].rank):
                    i -= 1
                if i == 0 or self.chosen[i - 1] != unit:
                    self.choose(unit)
                    for count in range(self.chosen_count - 1, i, -1):
                        self.chosen[count] = self.chosen[count - 1]
                    self.chosen[i] = unit
            handle = binding.older
        for i in range(self.chosen_count):
            self.pass_unit(self.chosen[i], node)
            if self.enough(node, shape):
                self.spare(node, shape)
                return node
        return NOWHERE

    # --- giving way -------------------------------------------------------------------------

    cdef void count_run(self, int32_t at, int by, bint counts_for_turn) noexcept nogil:
        """Count entry *at* among the runs of its queue, or no longer."""
        cdef const Entry *entry = &self.entries[at]
        cdef const int64_t *amounts = self.shapes[entry.shape].amounts
        cdef int64_t *full
        cdef int64_t *turn
        cdef int64_t *of_class = NULL
        cdef Py_ssize_t r
        cdef int32_t class_index = self.shapes[entry.shape].class_index
        for r in range(self.width):
            self.whole[r] = (
                saturating_add(self.whole[r], amounts[r]) if by > 0
                else saturating_sub(self.whole[r], amounts[r]))
        if entry.lane == NOWHERE:
            return
        self.lanes[entry.lane].preemptible_runs += by * entry.preemptible
        full = self.vector(entry.lane, FULL)
        turn = self.vector(entry.lane, ALLOCATED)
        if class_index != NOWHERE:
            of_class = self.by_class + (
                entry.lane * self.class_count + class_index) * self.width
        for r in range(self.width):
            if by > 0:
                full[r] = saturating_add(full[r], amounts[r])
                if counts_for_turn:
                    turn[r] = saturating_add(turn[r], amounts[r])
                if of_class != NULL:
                    of_class[r] = saturating_add(of_class[r], amounts[r])
            else:
                full[r] = saturating_sub(full[r], amounts[r])
                if counts_for_turn:
                    turn[r] = saturating_sub(turn[r], amounts[r])
                if of_class != NULL:
                    of_class[r] = saturating_sub(of_class[r], amounts[r])

    cdef int take(self, int32_t unit, int32_t for_entry, Py_ssize_t node,
                  uint8_t cause) except -1 nogil:
        """Let *unit* give way to *for_entry* at *node*."""
        cdef Py_ssize_t space, k, r, first = 0, end = 1
        cdef Gone *grown
        cdef Entry *entry = &self.entries[unit]
        cdef Entry *member
        cdef int64_t *lost
        cdef const int64_t *amounts = self.amounts_of(entry)
        cdef uint8_t standing = entry.standing
        cdef int32_t at
        if self.gone_count == self.gone_space:
            space = max(2 * self.gone_space, 64)
            grown = <Gone *> realloc(self.gone, space * sizeof(Gone))
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.gone = grown
            self.gone_space = space
        self.gone[self.gone_count] = Gone(
            unit, <int32_t> node, for_entry, entry.for_entry, entry.fell, standing, cause)
        self.gone_count += 1
        self.falls += 1
        if entry.team != NOWHERE:
            first = self.teams[entry.team].first
            end = first + self.teams[entry.team].count
        for k in range(first, end):
            at = unit if entry.team == NOWHERE else self.members[k]
            member = &self.entries[at]
            self.table.unbind_handle(member.handle)
            self.count_run(at, -1, standing != WAITS)
            member.cause_before = member.cause
            member.cause = cause if member.node == node else WITH_GANG
            if standing == GUEST:
                member.cause = AS_GUEST
            member.node = NOWHERE
            member.standing = QUEUED_HERE
            member.for_entry = for_entry
            member.fell = self.falls
        if standing == WAITS:
            self.waiting_count -= 1
        if entry.lane != NOWHERE:
            lost = self.vector(entry.lane, LOST)
            for r in range(self.width):
                lost[r] = saturating_add(lost[r], amounts[r])
        return 0

    cdef void take_back(self, Py_ssize_t down_to) noexcept nogil:
        """Put the units back that gave way since *down_to*; the table has done so."""
        cdef Py_ssize_t k, r, first, end
        cdef const Gone *gone
        cdef Entry *entry
        cdef Entry *member
        cdef int64_t *lost
        cdef const int64_t *amounts
        cdef int32_t at
        while self.gone_count > down_to:
            self.gone_count -= 1
            gone = &self.gone[self.gone_count]
            entry = &self.entries[gone.unit]
            first, end = 0, 1
            if entry.team != NOWHERE:
                first = self.teams[entry.team].first
                end = first + self.teams[entry.team].count
            for k in range(first, end):
                at = gone.unit if entry.team == NOWHERE else self.members[k]
                member = &self.entries[at]
                member.node = self.table.bindings[member.handle].node
                member.standing = gone.standing
                member.cause = member.cause_before
                member.for_entry = gone.for_before
                member.fell = gone.fell_before
                self.count_run(at, 1, gone.standing != WAITS)
            if gone.standing == WAITS:
                self.waiting_count += 1
            if entry.lane != NOWHERE:
                amounts = self.amounts_of(entry)
                lost = self.vector(entry.lane, LOST)
                for r in range(self.width):
                    lost[r] = saturating_sub(lost[r], amounts[r])
