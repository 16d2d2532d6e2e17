# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The jobs of one round as flat columns: who waits, who runs, in which gangs, of which shapes.

Owns entries, lanes, teams (the gangs of one round), shapes and the reasons of refusals; relies on
the node table for shapes and on its caller for policy. A record is held while the round lives.

    entry  [job]    a queued job or a run, with the node that it holds now and its home
    lane   [queue]  the queued entries of a queue in its order, and what it holds and asks for
    team   [gang]   members that go together
    shape  [shape]  what is known of a shape of the node table
"""

cimport cython
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from pyresched._core.bits cimport prefetch
from pyresched._core.drf cimport DominantResourceFairness
from pyresched._core.ids cimport KIND_HEAP, KIND_ULID, KIND_UUID, form_text
from pyresched._core.jobreader cimport Walk
from pyresched._core.nodeindex cimport NodeTable
from pyresched._core.nodeledger cimport NOWHERE, Binding
from pyresched._core.records cimport (
    Kind, Record, RunPart, active_run, name_text, record_drop, record_hold,
)
from pyresched._core.resources cimport ResourceVector, saturating_add, vector_of
from pyresched._core.values cimport SUCCEEDED, Gang, Requirements
from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)
from pyresched._core.views cimport Job, job_view

from pyresched.errors import InputError

cdef enum:
    NEAR = 3        # jobs ahead: their records are at hand by now, their kinds are asked for
    A_SLICE = 1024  # jobs that are read or let go without a break: a tenth of a millisecond

CODES = (
    "insufficient_resources",
    "exceeds_every_node",
    "no_matching_node",
    "nodes_closed",
    "gang_does_not_fit",
    "gang_incomplete",
    "gang_malformed",
    "unknown_priority_class",
    "invalid_request",
    "past_lookback",
    "no_nodes",
    "queue_cordoned",
    "unknown_queue",
    "invalid_weight",
    "too_crowded",
    "round_limit",
    "rate_limit",
    "gang_exceeds_burst",
    "gang_rate_limit",
    "queue_rate_limit",
    "gang_exceeds_queue_burst",
    "gang_queue_rate_limit",
    "round_budget",
    "queue_budget",
    "class_limit",
    "floating_resources",
)
assert len(CODES) == CODE_COUNT


@cython.final
cdef class Records:
    """The records of jobs one by one: natively from a walk, else from views."""

    cdef Walk walk
    cdef object views
    cdef Job last  # holds its record

    def __cinit__(self, jobs):
        if isinstance(jobs, Walk) and (<Walk> jobs).reader is not None:
            self.walk = jobs
        else:
            self.views = iter(jobs)

    cdef const Record *next(self) except? NULL:
        """The next, NULL at the end."""
        cdef const Record *record
        cdef Walk walk = self.walk
        if walk is not None:
            # Whoever ran meanwhile may have ended the transaction, or changed it: then the walk
            # has kept what is left.
            walk.reader.must_be_open()
            record = walk.step()
            if record != NULL:
                if walk.ahead_at + NEAR < walk.ahead_count:
                    prefetch(walk.ahead[walk.ahead_at + NEAR].kind)
                return record
            if walk.rest is None:
                return NULL
            self.walk = None
            self.views = walk
        for self.last in self.views:
            return self.last.record
        return NULL

    cdef uint32_t slot(self) noexcept:
        """Where the job is that `next` has just given, or nowhere."""
        return <uint32_t> NOWHERE if self.walk is None else self.walk.slot()


cdef inline void let_others_run(Py_ssize_t done) noexcept:
    """Let another thread have the GIL if it waits for it, every so many jobs."""
    if done % A_SLICE == 0:
        with nogil:
            pass


cdef class RoundJobs:
    """What a round reads, before and while it decides."""

    def __cinit__(self, NodeTable table not None, DominantResourceFairness fairness not None,
                  dict classes not None, str pool not None, *, int64_t now=0,
                  Py_ssize_t lookback=0, variants_of=None, members_of=None, bint home=True,
                  **_policy):
        self.width = table.width
        if fairness.width != self.width:
            raise ValueError("table and fairness must agree in the number of resources")
        self.table = table
        self.fairness = fairness
        self.pool = pool
        self.now = now
        self.lookback = lookback
        self.may_home = home
        self.variants_of = variants_of
        self.members_of = members_of
        self.classes = {
            name: (priority, preemptible, i)
            for i, (name, (priority, preemptible)) in enumerate(classes.items())
        }
        self.class_count = len(self.classes)
        self.table_handles = table.jobs.count
        self.queue_names = []
        self.lane_of = {}
        self.gangs = []
        self.team_of = {}
        self.labels = []
        self.label_of = {}
        self.kept_requirements = []
        self.entry_of = <int32_t *> malloc(max(self.table_handles, 1) * sizeof(int32_t))
        self.whole = <int64_t *> calloc(max(self.width, 1), sizeof(int64_t))
        if self.entry_of == NULL or self.whole == NULL:
            raise MemoryError
        memset(self.entry_of, 0xFF, max(self.table_handles, 1) * sizeof(int32_t))

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.entry_count):
            record_drop(<Record *> self.entries[i].record)
            let_others_run(i)
        free(self.entries)
        free(self.entry_of)
        free(self.lanes)
        free(self.vectors)
        free(self.by_class)
        free(self.whole)
        free(self.asked_by_class)
        free(self.teams)
        free(self.members)
        free(self.team_amounts)
        free(self.shapes)
        free(self.variants)
        free(self.reasons)

    # --- who asks for what, who holds what --------------------------------------------------

    cdef int allot_lane(self) except -1:
        """Make room for one more lane, zeroed."""
        cdef Py_ssize_t space = max(2 * self.lane_space, 16)
        cdef Py_ssize_t classes = max(self.class_count, 1)
        cdef Py_ssize_t width = max(self.width, 1), was = self.lane_space
        cdef void *grown
        if self.lane_count < self.lane_space:
            return 0
        grown = realloc(self.lanes, space * sizeof(Lane))
        if grown == NULL:
            raise MemoryError
        self.lanes = <Lane *> grown
        grown = realloc(self.vectors, space * VECTORS * width * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.vectors = <int64_t *> grown
        grown = realloc(self.by_class, space * classes * width * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.by_class = <int64_t *> grown
        grown = realloc(self.asked_by_class, space * classes * width * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.asked_by_class = <int64_t *> grown
        memset(self.lanes + was, 0, (space - was) * sizeof(Lane))
        memset(self.vectors + was * VECTORS * width, 0,
               (space - was) * VECTORS * width * sizeof(int64_t))
        memset(self.by_class + was * classes * width, 0,
               (space - was) * classes * width * sizeof(int64_t))
        memset(self.asked_by_class + was * classes * width, 0,
               (space - was) * classes * width * sizeof(int64_t))
        self.lane_space = space
        return 0

    cdef Entry *new_entry(self, const Record *record, int32_t lane) except NULL:
        """One more entry, which takes a hold of *record*."""
        cdef Py_ssize_t space
        cdef Entry *grown
        cdef Entry *entry
        if self.entry_count == self.entry_space:
            space = max(2 * self.entry_space, 256)
            grown = <Entry *> realloc(self.entries, space * sizeof(Entry))
            if grown == NULL:
                raise MemoryError
            self.entries = grown
            self.entry_space = space
        entry = &self.entries[self.entry_count]
        memset(entry, 0, sizeof(Entry))
        entry.record = record_hold(record)
        # Here the record is at hand; in its turn it would have to come from memory.
        entry.has_past = record.cold != NULL and (
            record.cold.run_count > 0 or record.cold.tracker != NULL)
        entry.lane = lane
        entry.node = entry.home = entry.home_shape = entry.team = NOWHERE
        entry.rank = entry.place = entry.for_entry = entry.handle = NOWHERE
        entry.verdict = NO_VERDICT
        self.entry_count += 1
        return entry

    def add_queue(self, str queue not None, double weight, jobs not None, str closed=None):
        """Add *jobs*, a walk or an iterable: the queued jobs of *queue* here, in its order.

        A queue of weight 0 takes no part: its jobs must be closed, its runs never give way.
        *closed*, one of `CODES`, refuses them all: they are not looked at and ask for nothing.
        """
        cdef Records records = Records(jobs)
        cdef const Record *record
        cdef Entry *entry
        cdef Lane *lane
        cdef Py_ssize_t number = self.lane_count
        cdef int32_t reason = NO_VERDICT, shape, at
        if self.queue_names and <str> self.queue_names[len(self.queue_names) - 1] >= queue:
            raise ValueError("queues must be added in ascending order of their names")
        if closed is None and not weight > 0:
            raise ValueError(f"queue {queue!r} of weight {weight} must be closed")
        self.allot_lane()
        self.lane_count += 1
        self.queue_names.append(queue)
        self.lane_of[queue] = number
        lane = &self.lanes[number]
        lane.weight = weight
        lane.takes_part = weight > 0
        lane.open = closed is None
        lane.first = <int32_t> self.entry_count
        lane.head = NOWHERE
        lane.placed_priority = lane.first_turn = lane.last_turn = -1
        if closed is not None:
            reason = self.new_reason(CODES.index(closed), NOWHERE, 0, 0)
        record = records.next()
        while record != NULL:
            at = <int32_t> self.entry_count
            entry = self.new_entry(record, <int32_t> number)
            entry.slot = records.slot()
            entry.verdict = reason
            if reason == NO_VERDICT:
                shape = self.shape_of_kind(record)
                entry = &self.entries[at]
                entry.shape = shape
                if shape == NOWHERE:
                    entry.verdict = self.new_reason(INVALID_REQUEST, NOWHERE, 0, 0)
                else:
                    self.count_asked(number, shape)
                    if record.cold != NULL and record.cold.gang != NULL:
                        self.muster(at, False)
            let_others_run(at)
            record = records.next()
        lane = &self.lanes[number]
        lane.count = <int32_t> self.entry_count - lane.first
        lane.looked_at = lane.count
        if lane.open and 0 < self.lookback < lane.count:
            lane.looked_at = <int32_t> self.lookback
            reason = self.new_reason(PAST_LOOKBACK, NOWHERE, lane.count, self.lookback)
            for at in range(lane.first + lane.looked_at, lane.first + lane.count):
                self.entries[at].verdict = reason
        return lane.count

    cdef int count_asked(self, Py_ssize_t number, int32_t shape) except -1:
        """Count that a job of *shape* waits in lane *number*."""
        cdef const int64_t *amounts = self.shapes[shape].amounts
        cdef int64_t *asked = self.vector(number, ASKED)
        cdef int64_t *of_class = NULL
        cdef Py_ssize_t r
        if self.shapes[shape].class_index != NOWHERE:
            of_class = self.asked_by_class + (
                number * self.class_count + self.shapes[shape].class_index) * self.width
        for r in range(self.width):
            asked[r] = saturating_add(asked[r], amounts[r])
            if of_class != NULL:
                of_class[r] = saturating_add(of_class[r], amounts[r])
        return 0

    def add_running(self, jobs not None):
        """Add the runs of *jobs* that hold room in this pool, and count what queues hold.

        By submit time, then id: who stands earlier gives way later, all else being equal.
        """
        cdef Records records = Records(jobs)
        cdef const Record *record = records.next()
        cdef Py_ssize_t i = 0
        while record != NULL:
            self.add_run(record)
            i += 1
            let_others_run(i)
            record = records.next()

    cdef int add_run(self, const Record *record) except -1:
        cdef const RunPart *run = active_run(record)
        cdef Kind kind = <Kind> <object> record.kind
        cdef const Binding *binding
        cdef Entry *entry
        cdef int32_t number = NOWHERE, handle, shape, at
        cdef int64_t *cells
        cdef Py_ssize_t r, class_index
        cdef bint ours
        if run == NULL:
            return 0
        ours = <str> run.pool == self.pool
        found = self.lane_of.get(kind.queue)
        if found is not None:
            number = found
        handle = self.table.jobs.find(name_text(&record.id, record.id_kind))
        if not ours and (handle < 0 or self.table.bindings[handle].node == NOWHERE):
            if record.cold.gang != NULL:
                self.count_elsewhere(kind.queue, (<Gang> record.cold.gang).id)
            return 0
        if not ours and self.table.lent[self.table.bindings[handle].node]:
            return 0  # at home there, and no business of ours
        shape = self.shape_of_kind(record)
        if shape == NOWHERE:
            return 0
        if ours or (handle >= 0 and self.table.bindings[handle].node != NOWHERE):
            for r in range(self.width):
                self.whole[r] = saturating_add(self.whole[r], self.shapes[shape].amounts[r])
        if ours and number != NOWHERE:
            class_index = self.shapes[shape].class_index
            for r in range(self.width):
                cells = self.vector(number, HELD)
                cells[r] = saturating_add(cells[r], self.shapes[shape].amounts[r])
                cells = self.vector(number, FULL)
                cells[r] = saturating_add(cells[r], self.shapes[shape].amounts[r])
                if class_index != NOWHERE:
                    cells = self.by_class + (
                        number * self.class_count + class_index) * self.width
                    cells[r] = saturating_add(cells[r], self.shapes[shape].amounts[r])
        if handle < 0 or self.table.bindings[handle].node == NOWHERE:
            # No entry holds the job, and a reader may make each when it is asked for: what takes
            # the place of these requirements must not be taken for them.
            self.kept_requirements.append(kind.requirements)
            if record.cold.gang != NULL:
                self.count_elsewhere(kind.queue, (<Gang> record.cold.gang).id)
            return 0
        if self.entry_of[handle] != NOWHERE:
            raise ValueError(
                f"job {name_text(&record.id, record.id_kind)!r} is twice among those that run")
        at = <int32_t> self.entry_count
        entry = self.new_entry(record, number if ours else NOWHERE)
        binding = &self.table.bindings[handle]
        entry.shape = shape
        entry.handle = handle
        entry.node = entry.home = binding.node
        entry.home_shape = binding.shape
        entry.leased_at = run.leased_at
        entry.priority = entry.home_priority = binding.priority
        if ours and self.may_home and not self.shapes[shape].barred and (
                self.table.masks[shape].tiers[binding.node]):
            # At home its class says how urgent it is, whatever that said when it was placed.
            entry.priority = entry.home_priority = self.shapes[shape].priority
        entry.preemptible = binding.preemptible
        entry.standing = STAYS if ours else GUEST
        entry.was_guest = not ours
        if entry.lane != NOWHERE:
            self.lanes[entry.lane].preemptible_runs += entry.preemptible
        self.entry_of[handle] = at
        if record.cold.gang != NULL:
            self.muster(at, True)
        return 0

    cdef int count_elsewhere(self, str queue, str gang_id) except -1:
        """A member of a running gang is where this round cannot reach it."""
        key = (queue, gang_id, True)
        if key not in self.team_of:
            self.team_of[key] = len(self.gangs)
            self.gangs.append([None, [], 0])
        (<list> self.gangs[<Py_ssize_t> self.team_of[key]])[2] += 1
        return 0

    cdef int muster(self, int32_t at, bint running) except -1:
        """Count the entry *at* with the other members of its gang."""
        cdef const Record *record = self.entries[at].record
        cdef Gang gang = <Gang> record.cold.gang
        key = ((<Kind> <object> record.kind).queue, gang.id, running)
        found = self.team_of.get(key)
        if found is None:
            found = self.team_of[key] = len(self.gangs)
            self.gangs.append([gang, [], 0])
        elif self.gangs[<Py_ssize_t> found][0] is None:
            self.gangs[<Py_ssize_t> found][0] = gang
        (<list> self.gangs[<Py_ssize_t> found][1]).append(at)
        self.entries[at].team = <int32_t> <Py_ssize_t> found
        return 0

    # --- shapes -----------------------------------------------------------------------------

    cdef int32_t shape_of_kind(self, const Record *record) except -2:
        """The shape of what *record* requires; NOWHERE if no node could be asked for it."""
        cdef const void *wanted = <const void *> (<Kind> <object> record.kind).requirements
        cdef SeenWanted *seen = &self.seen[(<size_t> wanted >> 5) % WANTED_KEPT]
        if seen.wanted == wanted:
            return seen.shape
        seen.shape = self.shape_of((<Kind> <object> record.kind).requirements)
        seen.wanted = wanted
        return seen.shape

    cdef int32_t shape_of(self, Requirements requirements) except -2:
        cdef Py_ssize_t space
        cdef Shape *grown
        cdef Shape *shape
        cdef int32_t index
        if requirements.resources.width != self.width:
            return NOWHERE
        try:
            index = self.table.shape_of(requirements)
        except InputError:
            return NOWHERE
        if index >= self.shape_space:
            space = max(self.table.shapes, self.shape_space * 2, 64)
            grown = <Shape *> realloc(self.shapes, space * sizeof(Shape))
            if grown == NULL:
                raise MemoryError
            memset(grown + self.shape_space, 0, (space - self.shape_space) * sizeof(Shape))
            self.shapes = grown
            self.shape_space = space
        shape = &self.shapes[index]
        if shape.known:
            return index
        shape.known = 1
        # The table keeps its own object of that shape alive.
        shape.amounts = (
            <Requirements> self.table.shape_requirements[index]).resources.amounts
        shape.reason = NO_VERDICT
        shape.variant = NOWHERE
        shape.class_index = NOWHERE
        found = self.classes.get(requirements.priority_class)
        if found is None:
            shape.barred = 1
            shape.reason = self.new_reason(UNKNOWN_PRIORITY_CLASS, NOWHERE, 0, 0)
            return index
        shape.priority = (<tuple> found)[0]
        shape.preemptible = (<tuple> found)[1]
        shape.class_index = (<tuple> found)[2]
        if self.variants_of is not None:
            self.add_variants(index, requirements)
        return index

    cdef int add_variants(self, int32_t index, Requirements requirements) except -1:
        """Note what may be tried when *requirements* as they stand find no room."""
        cdef Py_ssize_t space
        cdef Variant *grown
        cdef int32_t other
        cdef int32_t *link = NULL
        cdef int32_t last = NOWHERE
        for varied, priority in self.variants_of(requirements):
            self.kept_requirements.append(varied)
            other = self.shape_of(<Requirements?> varied)
            if other == NOWHERE:
                continue
            if self.variant_count == self.variant_space:
                space = max(2 * self.variant_space, 16)
                grown = <Variant *> realloc(self.variants, space * sizeof(Variant))
                if grown == NULL:
                    raise MemoryError
                self.variants = grown
                self.variant_space = space
            self.variants[self.variant_count] = Variant(priority, other, NOWHERE)
            link = &self.shapes[index].variant if last == NOWHERE else &self.variants[last].after
            link[0] = last = <int32_t> self.variant_count
            self.variant_count += 1
        return 0

    cdef int32_t new_reason(self, int code, int32_t resource, int64_t wanted,
                            int64_t had) except -1 nogil:
        cdef Py_ssize_t space
        cdef Reason *grown
        if self.reason_count == self.reason_space:
            space = max(self.reason_space * 2, 64)
            grown = <Reason *> realloc(self.reasons, space * sizeof(Reason))
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.reasons = grown
            self.reason_space = space
        self.reasons[self.reason_count] = Reason(wanted, had, code, resource)
        self.reason_count += 1
        return <int32_t> self.reason_count - 1

    # --- gangs ------------------------------------------------------------------------------

    cdef int prepare(self) except -1:
        """Lay the gangs out flat, once all jobs are there, and make room for what is placed."""
        cdef Py_ssize_t i, k, r, total = 0
        cdef int32_t at
        cdef Team *team
        cdef list found
        cdef dict signature_of = {}
        cdef int64_t *amounts
        cdef const int64_t *one
        if self.ready:
            return 0
        self.team_count = len(self.gangs)
        for i in range(self.team_count):
            total += len(self.gangs[i][1])
        self.teams = <Team *> calloc(max(self.team_count, 1), sizeof(Team))
        self.members = <int32_t *> malloc(max(total, 1) * sizeof(int32_t))
        self.team_amounts = <int64_t *> calloc(
            max(self.team_count * self.width, 1), sizeof(int64_t))
        if self.teams == NULL or self.members == NULL or self.team_amounts == NULL:
            raise MemoryError
        total = 0
        for i in range(self.team_count):
            gang, found, elsewhere = self.gangs[i]
            team = &self.teams[i]
            team.first = <int32_t> total
            team.count = <int32_t> len(found)
            team.elsewhere = elsewhere
            team.fault = team.shape = team.label = team.last = NOWHERE
            if not found:
                continue
            team.last = found[len(found) - 1]
            team.lane = self.entries[team.last].lane
            team.running = self.entries[team.last].home != NOWHERE
            team.shape = self.entries[<int32_t> found[0]].shape
            amounts = self.team_amounts + i * self.width
            for member in found:
                at = member
                if self.entries[at].shape != team.shape:
                    team.shape = NOWHERE
                one = self.shapes[self.entries[at].shape].amounts
                for r in range(self.width):
                    amounts[r] = saturating_add(amounts[r], one[r])
            if (<Gang> gang).uniformity:
                team.label = self.label_of.setdefault((<Gang> gang).uniformity, len(self.labels))
                if team.label == len(self.labels):
                    self.labels.append((<Gang> gang).uniformity)
            if not team.running:
                self.inspect(<int32_t> i, found, gang)
            found = self.arranged(found)
            for k in range(len(found)):
                self.members[total + k] = found[k]
            total += len(found)
            key = (tuple([self.entries[<int32_t> member].shape for member in found]), team.label)
            team.signature = signature_of.setdefault(key, len(signature_of))
        self.signatures = len(signature_of)
        self.table.allot_handles(self.table_handles + self.entry_count)
        with nogil:
            for i in range(self.entry_count):
                if self.entries[i].handle == NOWHERE:
                    self.entries[i].handle = <int32_t> (self.table_handles + i)
                    self.table.bindings[self.table_handles + i].node = NOWHERE
                    self.table.bindings[self.table_handles + i].newer = NOWHERE
                    self.table.bindings[self.table_handles + i].evicted = 0
        self.ready = True
        return 0

    cdef int inspect(self, int32_t index, list found, object gang) except -1:
        """Find out whether a queued gang can go at all."""
        cdef Team *team = &self.teams[index]
        cdef Lane *lane = &self.lanes[team.lane]
        cdef Job first = job_view(self.entries[<int32_t> found[0]].record)
        cdef Py_ssize_t queued = len(found), needed = (<Gang> gang).cardinality
        cdef bint malformed = False
        cdef int32_t at
        for member in found:
            if not agree(first, job_view(self.entries[<int32_t> member].record)):
                malformed = True
        if queued < needed:
            everyone = self.members_of(first.kind().queue, (<Gang> gang).id)
            malformed = malformed or len(everyone) > needed
            for each in everyone:
                malformed = malformed or not agree(first, <Job?> each)
            for each in everyone:
                needed -= (<Job> each).record.state >= SUCCEEDED
        if malformed or queued > needed:
            team.fault = self.new_reason(
                GANG_MALFORMED, NOWHERE, (<Gang> gang).cardinality, queued)
        elif queued < needed:
            team.fault = self.new_reason(GANG_INCOMPLETE, NOWHERE, needed, queued)
        elif self.shapes[self.entries[team.last].shape].barred:
            team.fault = self.shapes[self.entries[team.last].shape].reason
        elif team.last - lane.first >= lane.looked_at:
            team.fault = self.entries[team.last].verdict
        if team.fault != NOWHERE:
            for member in found:
                at = member
                # What lies past the look-back was not looked at, whatever else is wrong with it.
                if at - lane.first < lane.looked_at:
                    self.entries[at].verdict = team.fault
        return 0

    cdef list arranged(self, list found):
        """The members, the largest first."""
        cdef list sizes = []
        cdef const int64_t *amounts
        cdef int32_t at, first = self.entries[<int32_t> found[0]].shape
        cdef bint alike = True
        for member in found:
            alike = alike and self.entries[<int32_t> member].shape == first
        if alike:
            return found
        for member in found:
            at = member
            amounts = self.shapes[self.entries[at].shape].amounts
            sizes.append((
                -self.fairness.cost(amounts), [-amounts[r] for r in range(self.width)], at))
        sizes.sort()
        return [size[2] for size in sizes]

    # --- for the policy ---------------------------------------------------------------------

    def standings(self):
        """[(queue, weight, held at first, asked for, held now)] of the queues that take part.

        A queue takes part if it has a weight and holds something or has jobs here.
        """
        cdef Py_ssize_t i, r
        cdef bint holds
        cdef list found = []
        for i in range(self.lane_count):
            holds = False
            for r in range(self.width):
                holds = holds or self.vector(i, HELD)[r] != 0
            if self.lanes[i].takes_part and (holds or self.lanes[i].count):
                found.append((
                    self.queue_names[i], self.lanes[i].weight,
                    vector_of(self.vector(i, HELD), self.width),
                    vector_of(self.vector(i, ASKED), self.width),
                    vector_of(self.vector(i, FULL), self.width),
                ))
        return found

    def demands_by_class(self, str queue not None):
        """What *queue* holds and asks for, by class."""
        cdef Py_ssize_t lane = self.lane_of[queue]
        cdef dict found = {}
        cdef Py_ssize_t at
        for name, (_, _, index) in self.classes.items():
            at = (lane * self.class_count + <Py_ssize_t> index) * self.width
            found[name] = ResourceVector([
                saturating_add(self.by_class[at + r], self.asked_by_class[at + r])
                for r in range(self.width)
            ])
        return found

    def set_share(self, str queue not None, double protected_share, double budget,
                  ResourceVector penalty=None):
        """Say up to which share *queue* loses nothing to fairness, and what it should get."""
        cdef Py_ssize_t lane = self.lane_of[queue], r
        self.must_fit(penalty)
        self.lanes[lane].protected_share = protected_share
        self.lanes[lane].budget = budget
        if penalty is not None:
            for r in range(self.width):
                self.vector(lane, PENALTY)[r] = penalty.amounts[r]

    cdef int must_fit(self, ResourceVector amounts) except -1:
        """Raise ValueError for amounts of other resources than the nodes have. None is fine."""
        if amounts is not None and amounts.width != self.width:
            raise ValueError(f"{amounts.width} amounts where there are {self.width} resources")
        return 0


cdef bint agree(Job one, Job other) except -1:
    """Whether two members of a gang say the same of it."""
    return (
        one.membership() == other.membership()
        and (one.kind().requirements.priority_class
             == other.kind().requirements.priority_class)
        and one.kind().pools == other.kind().pools
    )


cdef int text_of(const Record *record, uint8_t *short_text, const uint8_t **text,
                 Py_ssize_t *size) noexcept nogil:
    """The UTF-8 bytes of a job's id; *short_text* has room for 36."""
    if record.id_kind != KIND_HEAP:
        size[0] = form_text(record.id_kind, record.id.hi, record.id.lo, short_text)
        text[0] = short_text
        return 0
    with gil:
        text[0] = <const uint8_t *> PyUnicode_AsUTF8AndSize(
            <object> <PyObject *> <size_t> record.id.lo, size)
    return 0


cdef int compare_records(const Record *one, const Record *other) noexcept nogil:
    cdef uint8_t left[40]
    cdef uint8_t right[40]
    cdef const uint8_t *one_text = NULL
    cdef const uint8_t *other_text = NULL
    cdef Py_ssize_t one_size = 0, other_size = 0
    cdef int order
    if one.submitted_at != other.submitted_at:
        return -1 if one.submitted_at < other.submitted_at else 1
    if one == other:
        return 0
    # Both alphabets ascend as their characters do, so the bits order as the text.
    if one.id_kind == other.id_kind and (one.id_kind == KIND_ULID or one.id_kind == KIND_UUID):
        if one.id.hi != other.id.hi:
            return -1 if one.id.hi < other.id.hi else 1
        return (one.id.lo > other.id.lo) - (one.id.lo < other.id.lo)
    text_of(one, left, &one_text, &one_size)
    text_of(other, right, &other_text, &other_size)
    order = memcmp(one_text, other_text, min(one_size, other_size))
    if order != 0:
        return order
    return (one_size > other_size) - (one_size < other_size)
