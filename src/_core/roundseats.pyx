# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Where a job or a gang goes in a round, and who gives way to it there.

Owns the order of what is tried: free room, then runs of queues above their share, then less
urgent runs, then the same away from home; for a gang all members or none, value by value of its
label. Relies on `RoundLine` for victims and on the node table for nodes. Keeps INV-R1, INV-R2.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyresched._core.nodeindex cimport WAS_OPEN
from pyresched._core.nodeledger cimport NOWHERE
from pyresched._core.records cimport RunPart, active_run
from pyresched._core.roundjobs cimport (
    EXCEEDS_EVERY_NODE, GANG_DOES_NOT_FIT, GUEST, HOPEFUL, HOPELESS, INSUFFICIENT_RESOURCES,
    NODES_CLOSED, NO_MATCHING_NODE, NO_VERDICT, PLACED_NOW, TOO_CROWDED, UNKNOWN, Entry, Lane,
    Shape, Team,
)
from pyresched._core.roundline cimport BY_SHARE, BY_URGENCY
from pyresched._core.roundlimits cimport RoundLimits
from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)
from pyresched._core.views cimport job_view


cdef class RoundSeats(RoundLimits):
    """Seats for jobs and gangs."""

    def __cinit__(self, *_args, avoid_of=None, values_of=None, bint share=True,
                  bint urgency=True, bint away=True, bint gang_away=True,
                  **_policy):
        self.avoid_of = avoid_of
        self.values_of = values_of
        self.may_take_share = share
        self.may_take_urgent = urgency
        self.may_away = away
        self.may_gang_away = gang_away
        self.allowed = <uint8_t *> calloc(max(self.table.count, 1), 1)
        if self.allowed == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.decided)
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
        if node == NOWHERE and self.barred:
            return False
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
            entry.priority = entry.home_priority
            entry.leased_at = run.leased_at
        entry.method = seat.method
        if seat.method >> 2 or self.table.lent[seat.node]:
            entry.method = AWAY
        entry.verdict = NO_VERDICT
        self.count_run(seat.at, 1, True)
        entry.standing = PLACED_NOW
        if entry.home == NOWHERE:
            self.count_new(entry, 1)
        lane = &self.lanes[entry.lane]
        if not entry.preemptible:
            # What was placed before it and may give way comes back after it.
            self.reordered = self.reordered or lane.placed_priority >= 0
        else:
            self.reordered = self.reordered or (
                0 <= lane.placed_priority != entry.record.priority)
            lane.placed_priority = entry.record.priority
        self.settled = True
        self.went_away = self.went_away or seat.method >> 2
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
                self.mark_room(at)
                return 0
            if victims >= 0 and (least < 0 or cost < least
                                 or (cost == least and victims < fewest)):
                least = cost
                fewest = victims
                self.keep_best(team, gone_at)
            self.table.undo_attempt(mark)
            self.regain(gone_at)
        if least >= 0 and self.seat_best(team):
            self.mark_room(at)
            return 0
        if self.gang_reason == NO_VERDICT:
            self.gang_reason = self.new_reason(NO_MATCHING_NODE, NOWHERE, 0, 0)
        if not self.barred:
            self.failed_in[team.signature] = self.passes
            self.fail_reason[team.signature] = self.gang_reason
            self.lacked_room = True
        return self.refuse(at, self.gang_reason)

    cdef void mark_room(self, int32_t at) noexcept nogil:
        """Note whether somebody gave way to the unit of entry *at*, and who lost such a place."""
        cdef Py_ssize_t i
        for i in range(self.gone_count):
            self.mark_unit(self.gone[i].unit, False)
        if self.gone_count:
            self.mark_unit(at, True)

    cdef void mark_unit(self, int32_t unit, bint took) noexcept nogil:
        """Note that *unit* has room that others left (*took*), or has lost its place."""
        cdef Entry *member = &self.entries[unit]
        cdef const Team *team
        cdef Py_ssize_t k, first = 0, end = 1
        if self.entries[unit].team != NOWHERE:
            team = &self.teams[self.entries[unit].team]
            first, end = team.first, team.first + team.count
        for k in range(first, end):
            if self.entries[unit].team != NOWHERE:
                member = &self.entries[self.members[k]]
            if member.took_room and not took:
                member.flips = min(member.flips + 1, MOST_FLIPS)
            member.took_room = took

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

    cdef bint return_home(self, int32_t at, bint asked=False) except -1 nogil:
        """Bind every run of the unit of *at* where the round found it, if there is free room.

        Only *asked*: say whether there is, and change nothing.
        """
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
            self.table.bind_handle(
                member.handle, member.home_shape, member.home, member.home_priority,
                self.lowest == INT64_MAX,
                self.table.bindings[member.handle].pool)
        if asked or not fits:
            self.table.undo_attempt(mark)
            return fits
        self.table.keep_attempt(mark)
        for k in range(first, end):
            each = at if entry.team == NOWHERE else self.members[k]
            member = &self.entries[each]
            run = active_run(member.record)
            if member.node == NOWHERE:
                member.standing = GUEST if member.was_guest else PLACED_NOW
                self.count_run(each, 1, True)
            member.node = member.home
            member.priority = member.home_priority
            member.leased_at = run.leased_at
            member.took_room = 0
            member.preemptible = 1  # what is not gives no way
            member.verdict = NO_VERDICT
        return True

    # --- why not ----------------------------------------------------------------------------

    cdef int load_avoid(self, int32_t at) except -1 nogil:
        """Read the nodes that the unit of entry *at* would rather not use."""
        cdef const Entry *entry = &self.entries[at]
        cdef const Entry *member
        cdef Py_ssize_t k, first = 0, end = 1
        cdef bint has_past = False
        self.avoided = 0
        if entry.team != NOWHERE:
            first = self.teams[entry.team].first
            end = first + self.teams[entry.team].count
        for k in range(first, end):
            member = entry if entry.team == NOWHERE else &self.entries[self.members[k]]
            has_past = has_past or member.has_past
        if has_past:
            with gil:
                self.ask_avoid(first, end, at)
        return 0

    cdef int ask_avoid(self, Py_ssize_t first, Py_ssize_t end, int32_t at) except -1:
        """The same for a unit that has a past: its members are *first* to *end*, or *at* alone."""
        # Apart, since a function with objects of its own takes the GIL whether it needs it or not.
        cdef Py_ssize_t k, wanted
        cdef void *grown
        cdef list jobs = []
        for k in range(first, end):
            jobs.append(job_view(self.entries[
                at if self.entries[at].team == NOWHERE else self.members[k]].record))
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

    cdef bint is_hopeless(self, int32_t index) noexcept nogil:
        """Whether no open node that matches has as much as *index* asks for, at home or away."""
        cdef Shape *shape = &self.shapes[index]
        cdef int32_t variant = shape.variant
        if shape.hope == UNKNOWN:
            shape.hope = HOPELESS
            if self.may_home and self.could_hold(index):
                shape.hope = HOPEFUL
            while shape.hope == HOPELESS and self.may_away and variant != NOWHERE:
                if self.could_hold(self.variants[variant].shape):
                    shape.hope = HOPEFUL
                variant = self.variants[variant].after
        return shape.hope == HOPELESS

    cdef bint could_hold(self, int32_t index) noexcept nogil:
        """Whether an open node that matches would do if it were empty."""
        cdef const uint8_t *tiers = self.table.masks[index].tiers
        cdef const int64_t *request = self.table.request_of(index)
        cdef const int64_t *base
        cdef Py_ssize_t node, r, columns = self.table.columns
        for node in range(self.table.count):
            # One that holds too much now may open once it does no more.
            if not tiers[node] or not (
                    self.table.open[node] or self.table.over[node] == WAS_OPEN):
                continue
            base = self.table.base + node * columns
            for r in range(columns):
                if request[r] > base[r]:
                    break
            else:
                return True
        return False

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
