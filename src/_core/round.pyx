# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The inner loop of a round: who is next, and is there a node for it.

Owns the heap of queues, the walk along each queue, what each queue holds so far, the memo of
what found no room, and why each job was refused. Relies on `NodeTable` for nodes and on its
caller for policy: shares and victims come through a callable, once for each kind of candidate
that found no room. Keeps INV-R1, INV-R2, INV-R3 and INV-R7.

    lane   [job]    the queued jobs of a queue, in its order, with their shapes and verdicts
    heap   [lane]   the next candidate of each lane: class priority, then cost, then queue name
    shape  [shape]  when it last found no room, and why: nothing equal is tried until a run
                    gives way (the epoch goes up)
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from pyresched._core.drf cimport DominantResourceFairness
from pyresched._core.nodeindex cimport NodeTable
from pyresched._core.nodeledger cimport NOWHERE
from pyresched._core.resources cimport ResourceVector, saturating_add, saturating_sub, vector_of
from pyresched._core.records cimport Kind, RunPart, active_run
from pyresched._core.values cimport SUCCEEDED, Gang, Requirements
from pyresched._core.views cimport Job

from pyresched.errors import InputError

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
)
assert len(CODES) == CODE_COUNT

# How room was found, where nothing gave way.
cdef str FREE = "no_preemption"


@cython.final
cdef class QueuedGang:
    """The queued members of a gang in one lane, by their positions."""

    def __cinit__(self, Job first not None, Py_ssize_t position, int32_t shape):
        self.gang = first.membership()
        self.first = first
        self.positions = []
        self.last = position
        self.shape = shape
        self.fault = NOWHERE


@cython.final
cdef class Lane:
    """One queue in one round. `preemptible` are its runs that a round may take at all."""

    def __cinit__(self, str queue not None, double weight, list jobs not None, Py_ssize_t width):
        cdef Py_ssize_t i
        self.queue = queue
        self.weight = weight
        self.jobs = jobs
        self.count = len(jobs)
        self.width = width
        self.preemptible = []
        self.gangs = []
        self.gang_by_id = {}
        self.shapes = <int32_t *> malloc(max(self.count, 1) * sizeof(int32_t))
        self.verdicts = <int32_t *> malloc(max(self.count, 1) * sizeof(int32_t))
        self.held = <int64_t *> calloc(3 * max(width, 1), sizeof(int64_t))
        if self.shapes == NULL or self.verdicts == NULL or self.held == NULL:
            raise MemoryError
        self.allocated = self.held + width
        self.waiting = self.allocated + width
        for i in range(self.count):
            self.verdicts[i] = WAITING

    def __dealloc__(self):
        free(self.shapes)
        free(self.verdicts)
        free(self.gang_at)
        free(self.held)


@cython.final
cdef class Refused:
    """Why each job of a round got no node, as columns; (code, resource, wanted, had) a reason.

    Holds the jobs and a number for each, so that it costs the same for one as for many.
    """

    cdef list lanes
    cdef readonly tuple reasons
    cdef Py_ssize_t size

    def __init__(self, list lanes not None, tuple reasons not None):
        cdef Lane lane
        cdef Py_ssize_t i
        self.lanes = lanes
        self.reasons = reasons
        for lane in lanes:
            for i in range(lane.count):
                self.size += lane.verdicts[i] >= 0

    def __len__(self):
        return self.size

    def counts(self):
        """How many jobs have each of `reasons`, in their order."""
        cdef Lane lane
        cdef Py_ssize_t i
        cdef list counts = [0] * len(self.reasons)
        cdef int64_t *tally = <int64_t *> calloc(max(len(counts), 1), sizeof(int64_t))
        if tally == NULL:
            raise MemoryError
        for lane in self.lanes:
            for i in range(lane.count):
                if lane.verdicts[i] >= 0:
                    tally[lane.verdicts[i]] += 1
        for i in range(len(counts)):
            counts[i] = tally[i]
        free(tally)
        return counts

    def items(self):
        """[(job id, index in `reasons`)] by queue and then in the order of the queue."""
        cdef Lane lane
        cdef Py_ssize_t i
        cdef list items = []
        for lane in self.lanes:
            for i in range(lane.count):
                if lane.verdicts[i] >= 0:
                    items.append(((<Job> lane.jobs[i]).name(), lane.verdicts[i]))
        return items


@cython.final
cdef class RoundWalk:
    """One round over the nodes of *table*, which it changes.

    *classes* maps a class name to (priority, preemptible); *avoid_of* gives (node id, rank)
    pairs for a list of jobs and *values_of* the lists of node indices that share a value of a
    label. Queues are added first, in ascending order of their names, then what runs, then
    `place` is called once.
    """

    def __cinit__(self, NodeTable table not None, DominantResourceFairness fairness not None,
                  dict classes not None, *, Py_ssize_t lookback, avoid_of, values_of):
        self.width = table.width
        if fairness.width != self.width:
            raise ValueError("table and fairness must agree in the number of resources")
        self.table = table
        self.fairness = fairness
        self.classes = classes
        self.lookback = lookback
        self.avoid_of = avoid_of
        self.values_of = values_of
        self.placed = []
        self.lanes = []
        self.lane_by_queue = {}
        self.failed_gangs = {}
        self.wanted = <int64_t *> malloc(2 * max(self.width, 1) * sizeof(int64_t))
        if self.wanted == NULL:
            raise MemoryError
        self.proposed = self.wanted + self.width

    def __dealloc__(self):
        free(self.wanted)
        free(self.shapes)
        free(self.reasons)
        free(self.heap)
        free(self.freed)
        free(self.avoid)
        free(self.ranks)

    # --- who asks for what, who holds what --------------------------------------------------

    def add_queue(self, str queue not None, double weight, list jobs not None, str closed=None):
        """Add the queued *jobs* of *queue* in their order.

        A queue of weight 0 takes no part: its jobs must be closed, its runs never give way.
        *closed*, one of `CODES`, refuses them all: they are not looked at and ask for nothing.
        """
        cdef Lane lane = Lane(queue, weight, jobs, self.width)
        cdef Job job
        cdef Py_ssize_t i, r
        cdef int32_t shape, reason
        cdef const int64_t *request
        if self.lanes and (<Lane> self.lanes[len(self.lanes) - 1]).queue >= queue:
            raise ValueError("queues must be added in ascending order of their names")
        if closed is None and not weight > 0:
            raise ValueError(f"queue {queue!r} of weight {weight} must be closed")
        self.lanes.append(lane)
        self.lane_by_queue[queue] = lane
        if closed is not None:
            reason = self.new_reason(CODES.index(closed), NOWHERE, 0, 0)
            for i in range(lane.count):
                lane.verdicts[i] = reason
            return
        lane.open = True
        for i in range(lane.count):
            job = <Job?> jobs[i]
            # Not through methods of the view: this is done for every job that waits.
            shape = self.shape_of((<Kind> job.record.kind).requirements)
            lane.shapes[i] = shape
            if shape == NOWHERE:
                lane.verdicts[i] = self.new_reason(INVALID_REQUEST, NOWHERE, 0, 0)
                continue
            request = self.table.request_of(shape)
            for r in range(self.width):
                lane.waiting[r] = saturating_add(lane.waiting[r], request[r])
            if job.record.cold != NULL and job.record.cold.gang != NULL:
                self.muster(lane, i, job, shape)
        lane.looked_at = lane.count
        if 0 < self.lookback < lane.count:
            lane.looked_at = self.lookback
            reason = self.new_reason(PAST_LOOKBACK, NOWHERE, lane.count, self.lookback)
            for i in range(self.lookback, lane.count):
                lane.verdicts[i] = reason

    def add_running(self, jobs, str pool not None):
        """Count what the runs of *jobs* in *pool* hold, for the queues that were added."""
        cdef Job job
        cdef const RunPart *run
        cdef Lane lane
        cdef Kind kind
        cdef ResourceVector amounts
        cdef Py_ssize_t r
        for each in jobs:
            job = <Job?> each
            run = active_run(job.record)
            if run == NULL or <str> run.pool != pool:
                continue
            kind = <Kind> job.record.kind
            found = self.lane_by_queue.get(kind.queue)
            if found is None:
                continue
            lane = <Lane> found
            amounts = kind.requirements.resources
            if amounts.width != self.width:
                continue
            for r in range(self.width):
                lane.held[r] = saturating_add(lane.held[r], amounts.amounts[r])
            class_ = self.classes.get(kind.requirements.priority_class)
            if class_ is not None and (<tuple> class_)[1]:
                lane.preemptible.append(job)
        for lane in self.lanes:
            for r in range(self.width):
                lane.allocated[r] = lane.held[r]

    cdef int32_t shape_of(self, Requirements requirements) except -2:
        """The shape of *requirements*, known to us; NOWHERE if no node could be asked for it."""
        cdef Seen *seen = &self.seen[<size_t> requirements.cached_hash % REQUIREMENTS_KEPT]
        cdef Py_ssize_t space
        cdef Shape *grown
        cdef Shape *shape
        cdef int32_t index
        # Most jobs are like one seen before; a look here saves asking the table's dict.
        if seen.requirements == <void *> requirements or (
            seen.requirements != NULL and alike(<Requirements> seen.requirements, requirements)
        ):
            return seen.shape
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
        if not shape.known:
            shape.known = 1
            shape.failed_at = NOWHERE
            class_ = self.classes.get(requirements.priority_class)
            if class_ is None:
                shape.barred = 1
                shape.reason = self.new_reason(UNKNOWN_PRIORITY_CLASS, NOWHERE, 0, 0)
            else:
                shape.priority = (<tuple> class_)[0]
                shape.preemptible = (<tuple> class_)[1]
        # The table keeps its own object of that shape alive.
        seen.requirements = <void *> <object> self.table.shape_requirements[index]
        seen.shape = index
        return index

    cdef int32_t new_reason(self, int code, int32_t resource, int64_t wanted,
                            int64_t had) except -1:
        cdef Py_ssize_t space
        cdef Reason *grown
        if self.reason_count == self.reason_space:
            space = max(self.reason_space * 2, 64)
            grown = <Reason *> realloc(self.reasons, space * sizeof(Reason))
            if grown == NULL:
                raise MemoryError
            self.reasons = grown
            self.reason_space = space
        self.reasons[self.reason_count] = Reason(wanted, had, code, resource)
        self.reason_count += 1
        return <int32_t> self.reason_count - 1

    # --- gangs ------------------------------------------------------------------------------

    cdef int muster(self, Lane lane, Py_ssize_t position, Job job, int32_t shape) except -1:
        """Count the job at *position* with the other queued members of its gang."""
        cdef QueuedGang gang
        cdef Py_ssize_t i
        cdef Gang declared = job.membership()
        if lane.gang_at == NULL:
            lane.gang_at = <int32_t *> malloc(lane.count * sizeof(int32_t))
            if lane.gang_at == NULL:
                raise MemoryError
            for i in range(lane.count):
                lane.gang_at[i] = NOWHERE
        found = lane.gang_by_id.get(declared.id)
        if found is None:
            lane.gang_at[position] = <int32_t> len(lane.gangs)
            gang = QueuedGang(job, position, shape)
            lane.gang_by_id[declared.id] = len(lane.gangs)
            lane.gangs.append(gang)
        else:
            lane.gang_at[position] = found
            gang = <QueuedGang> lane.gangs[<Py_ssize_t> found]
            if not agree(gang.first, job):
                gang.malformed = True
            if gang.shape != shape:
                gang.shape = NOWHERE
        gang.positions.append(position)
        gang.last = position
        return 0

    cdef int inspect(self, Lane lane, QueuedGang gang, object members_of) except -1:
        """Find out whether *gang* can go at all; *members_of* as in `place`."""
        cdef Py_ssize_t queued = len(gang.positions)
        cdef Py_ssize_t needed = gang.gang.cardinality
        cdef Py_ssize_t position
        cdef Job member
        if queued < needed:
            everyone = members_of(lane.queue, gang.gang.id)
            if len(everyone) > needed:
                gang.malformed = True
            for each in everyone:
                member = <Job?> each
                if not agree(gang.first, member):
                    gang.malformed = True
            for each in everyone:
                needed -= (<Job> each).record.state >= SUCCEEDED
        if gang.malformed or queued > needed:
            gang.fault = self.new_reason(GANG_MALFORMED, NOWHERE, gang.gang.cardinality, queued)
        elif queued < needed:
            gang.fault = self.new_reason(GANG_INCOMPLETE, NOWHERE, needed, queued)
        elif self.shapes[lane.shapes[gang.last]].barred:
            gang.fault = self.shapes[lane.shapes[gang.last]].reason
        elif gang.last >= lane.looked_at:
            gang.fault = lane.verdicts[gang.last]
        if gang.fault != NOWHERE:
            for position in gang.positions:
                # What lies past the look-back was not looked at, whatever else is wrong with it.
                if position < lane.looked_at:
                    lane.verdicts[position] = gang.fault
        return 0

    cdef int arrange(self, Lane lane, QueuedGang gang) except -1:
        """Put the members largest first and name what fails with them alike."""
        cdef Py_ssize_t position
        cdef int32_t shape
        if gang.order is not None:
            return 0
        if gang.shape != NOWHERE:
            gang.order = gang.positions
            gang.signature = (gang.shape, len(gang.positions), gang.gang.uniformity)
            return 0
        sizes = []
        for position in gang.positions:
            shape = lane.shapes[position]
            amounts = [-self.table.request_of(shape)[i] for i in range(self.width)]
            size = self.fairness.cost(self.table.request_of(shape))
            sizes.append((-size, amounts, position, shape))
        sizes.sort()
        gang.order = [each[2] for each in sizes]
        gang.signature = (tuple([each[3] for each in sizes]), gang.gang.uniformity)
        return 0

    cdef int refuse(self, Lane lane, QueuedGang gang, Py_ssize_t position,
                    int32_t reason) except -1:
        """Refuse the job at *position*, or every member of *gang*."""
        if gang is None:
            lane.verdicts[position] = reason
            return 0
        for position in gang.positions:
            lane.verdicts[position] = reason
        return 0

    # --- order ------------------------------------------------------------------------------

    cdef bint pull(self, Lane lane) except -1:
        """Move *lane* to its next candidate that may fit. False: there is none."""
        cdef Py_ssize_t i
        cdef Shape *shape
        cdef QueuedGang gang
        while lane.cursor < lane.looked_at:
            i = lane.cursor
            lane.cursor += 1
            if lane.verdicts[i] == PLACED or lane.shapes[i] == NOWHERE:
                continue
            shape = &self.shapes[lane.shapes[i]]
            if lane.gang_at == NULL or lane.gang_at[i] == NOWHERE:
                if shape.barred or shape.failed_at == self.epoch:
                    lane.verdicts[i] = shape.reason
                    continue
                lane.head_gang = None
                lane.head = i
                return True
            gang = <QueuedGang> lane.gangs[lane.gang_at[i]]
            if i != gang.last or gang.fault != NOWHERE:
                continue
            if (gang.shape != NOWHERE and shape.failed_at == self.epoch
                    and not gang.gang.uniformity):
                # Where not one finds room, several do not.
                self.refuse(lane, gang, 0, shape.reason)
                continue
            self.arrange(lane, gang)
            failed = self.failed_gangs.get(gang.signature)
            if failed is not None and (<tuple> failed)[0] == self.epoch:
                self.refuse(lane, gang, 0, (<tuple> failed)[1])
                continue
            lane.head_gang = gang
            lane.head = i
            return True
        return False

    cdef int rate(self, Head *head) except -1:
        """Work out the turn of the candidate that the lane of *head* is at."""
        cdef Lane lane = <Lane> self.lanes[head.lane]
        cdef int32_t shape = lane.shapes[lane.head]
        cdef const int64_t *request = self.table.request_of(shape)
        cdef Py_ssize_t position, r
        head.priority = self.shapes[shape].priority
        if lane.head_gang is not None:
            memset(self.wanted, 0, self.width * sizeof(int64_t))
            for position in lane.head_gang.positions:
                request = self.table.request_of(lane.shapes[position])
                for r in range(self.width):
                    self.wanted[r] = saturating_add(self.wanted[r], request[r])
            request = self.wanted
        for r in range(self.width):
            self.proposed[r] = saturating_add(lane.allocated[r], request[r])
        head.cost = self.fairness.cost(self.proposed) / lane.weight
        return 0

    cdef bint before(self, Head *one, Head *other) noexcept:
        if one.priority != other.priority:
            return one.priority > other.priority
        if one.cost != other.cost:
            return one.cost < other.cost
        return one.lane < other.lane

    cdef void sift_down(self, Py_ssize_t at) noexcept:
        cdef Head moved = self.heap[at]
        cdef Py_ssize_t child
        while True:
            child = 2 * at + 1
            if child >= self.heap_length:
                break
            if (child + 1 < self.heap_length
                    and self.before(&self.heap[child + 1], &self.heap[child])):
                child += 1
            if not self.before(&self.heap[child], &moved):
                break
            self.heap[at] = self.heap[child]
            at = child
        self.heap[at] = moved

    cdef void heapify(self) noexcept:
        cdef Py_ssize_t at
        for at in range(self.heap_length // 2 - 1, -1, -1):
            self.sift_down(at)

    # --- the walk ---------------------------------------------------------------------------

    def place(self, *, members_of, room_maker):
        """Place what can be placed.

        *members_of* (queue, gang id) gives all members of a gang; *room_maker* (jobs, priority,
        avoid, only) binds them where runs give way and returns (node id, method) for each, or
        None; *avoid* are (node index, rank) pairs, *only* node indices or None. Runs give way
        only to candidates that are not preemptible.
        """
        cdef Lane lane
        cdef QueuedGang gang
        cdef int64_t epoch
        free(self.heap)
        self.heap = <Head *> malloc(max(len(self.lanes), 1) * sizeof(Head))
        if self.heap == NULL:
            raise MemoryError
        self.room_maker = room_maker
        for lane in self.lanes:
            for gang in lane.gangs:
                self.inspect(lane, gang, members_of)
        while True:
            epoch = self.epoch
            self.one_pass()
            # A run that gave way may have left room for what was refused before.
            if self.epoch == epoch:
                return

    cdef int one_pass(self) except -1:
        cdef Lane lane
        cdef Py_ssize_t i
        cdef int64_t epoch
        self.heap_length = 0
        for i in range(len(self.lanes)):
            lane = <Lane> self.lanes[i]
            lane.cursor = 0
            if lane.open and self.pull(lane):
                self.heap[self.heap_length].lane = <int32_t> i
                self.rate(&self.heap[self.heap_length])
                self.heap_length += 1
        self.heapify()
        while self.heap_length:
            lane = <Lane> self.lanes[self.heap[0].lane]
            epoch = self.epoch
            if lane.head_gang is None:
                self.attempt(lane)
            else:
                self.attempt_gang(lane)
            if self.pull(lane):
                self.rate(&self.heap[0])
            else:
                self.heap_length -= 1
                self.heap[0] = self.heap[self.heap_length]
            if self.epoch == epoch:
                if self.heap_length:
                    self.sift_down(0)
                continue
            # Victims made their queues cheaper, so every turn is worked out anew.
            for i in range(self.heap_length):
                self.rate(&self.heap[i])
            self.heapify()
        return 0

    cdef int attempt(self, Lane lane) except -1:
        """Place the lone job at the head of *lane*, or refuse it."""
        cdef Py_ssize_t node
        cdef int row = 0
        cdef int32_t index = lane.shapes[lane.head]
        cdef Shape *shape = &self.shapes[index]
        cdef Job job = <Job> lane.jobs[lane.head]
        self.load_avoid(lane, [lane.head] if job.has_past() else None)
        node = self.table.find_avoiding(
            index, 0, self.avoid, self.ranks, self.avoided, &row)
        if node != NOWHERE:
            self.table.bind_handle(
                self.table.handle_of(job.name()), index, node, shape.priority, shape.preemptible)
            return self.settle(lane, lane.head, <str> self.table.node_ids[node], FREE)
        if (not shape.preemptible and self.room_maker is not None
                and (self.freed == NULL or self.reaches_any(index))
                and self.make_room(lane, [lane.head], None)):
            return 0
        # `room_maker` may have made us ask for other shapes.
        shape = &self.shapes[index]
        shape.failed_at = self.epoch
        shape.reason = self.why_not(index, None)
        lane.verdicts[lane.head] = shape.reason
        return 0

    cdef int attempt_gang(self, Lane lane) except -1:
        """Place every member of the gang at the head of *lane*, or refuse them all."""
        cdef QueuedGang gang = lane.head_gang
        cdef Py_ssize_t position
        cdef Job job
        cdef bint has_past = False  # then it may have nodes to avoid
        cdef list values = [None]
        cdef list only = None
        for position in gang.order:
            job = <Job> lane.jobs[position]
            has_past = has_past or job.has_past()
        self.load_avoid(lane, gang.order if has_past else None)
        self.most_members = NOWHERE
        if gang.gang.uniformity:
            values = self.values_of(gang.gang.uniformity)
        for only in values:
            if self.place_gang(lane, gang, only):
                return 0
        if not self.shapes[lane.shapes[gang.last]].preemptible and self.room_maker is not None:
            for only in values:
                if self.make_room(lane, gang.order, only):
                    return 0
        if not values:
            self.gang_reason = self.new_reason(NO_MATCHING_NODE, NOWHERE, 0, 0)
        self.failed_gangs[gang.signature] = (self.epoch, self.gang_reason)
        return self.refuse(lane, gang, 0, self.gang_reason)

    cdef bint place_gang(self, Lane lane, QueuedGang gang, list only) except -1:
        """Bind all members, in order. If one has no node, none stays.

        `gang_reason` then says why, of the try that bound the most.
        """
        cdef Py_ssize_t position, k, node = NOWHERE, given = 0, size = len(gang.order)
        cdef Py_ssize_t mark
        cdef int row = 0
        cdef int32_t index, reason
        cdef Shape *shape
        cdef int32_t *nodes = <int32_t *> malloc(size * sizeof(int32_t))
        cdef int32_t *only_nodes = NULL
        try:
            if only is not None:
                given = len(only)
                only_nodes = <int32_t *> malloc(max(given, 1) * sizeof(int32_t))
            if nodes == NULL or (only is not None and only_nodes == NULL):
                raise MemoryError
            for k in range(given):
                only_nodes[k] = <int32_t> self.checked(only[k])
            mark = self.table.open_attempt()
            for k in range(size):
                position = gang.order[k]
                index = lane.shapes[position]
                shape = &self.shapes[index]
                if only is None:
                    node = self.table.find_avoiding(
                        index, 0, self.avoid, self.ranks, self.avoided, &row)
                else:
                    node = self.table.find_among(
                        index, 0, only_nodes, given, self.avoid, self.ranks, self.avoided, &row)
                if node == NOWHERE:
                    # Asked before the others leave: it is for them that there is no room.
                    if k > self.most_members:
                        self.most_members = k
                        reason = self.why_not(index, only)
                        if k and self.reasons[reason].code == INSUFFICIENT_RESOURCES:
                            reason = self.new_reason(GANG_DOES_NOT_FIT, NOWHERE, size, k)
                        self.gang_reason = reason
                    self.table.undo_attempt(mark)
                    return False
                nodes[k] = <int32_t> node
                self.table.bind_handle(
                    self.table.handle_of((<Job> lane.jobs[position]).name()), index, node,
                    shape.priority, shape.preemptible)
            self.table.keep_attempt(mark)
            for k in range(size):
                self.settle(lane, gang.order[k], <str> self.table.node_ids[nodes[k]], FREE)
            return True
        finally:
            free(nodes)
            free(only_nodes)

    cdef bint make_room(self, Lane lane, list positions, object only) except -1:
        """Let runs give way to the jobs at *positions*. False: nothing has changed."""
        cdef Shape *shape = &self.shapes[lane.shapes[lane.head]]
        cdef Py_ssize_t i
        avoid = [(self.avoid[i], self.ranks[i]) for i in range(self.avoided)]
        jobs = [lane.jobs[<Py_ssize_t> position] for position in positions]
        placed = self.room_maker(jobs, shape.priority, avoid, only)
        if placed is None:
            return False
        for i in range(len(positions)):
            node_id, method = placed[i]
            self.settle(lane, positions[i], node_id, method)
        self.epoch += 1
        return True

    cdef int settle(self, Lane lane, Py_ssize_t position, str node_id, object method) except -1:
        """Note that the job at *position* is bound."""
        cdef int32_t shape = lane.shapes[position]
        cdef const int64_t *request = self.table.request_of(shape)
        cdef Py_ssize_t r
        for r in range(self.width):
            lane.allocated[r] = saturating_add(lane.allocated[r], request[r])
        lane.verdicts[position] = PLACED
        self.placed.append(
            ((<Job> lane.jobs[position]).name(), node_id, self.shapes[shape].priority, method))
        return 0

    cdef int load_avoid(self, Lane lane, list positions) except -1:
        """Read the nodes that the jobs at *positions* would rather not use; None: none of them."""
        cdef Py_ssize_t wanted
        cdef void *grown
        self.avoided = 0
        if positions is None:
            return 0
        pairs = self.avoid_of([lane.jobs[position] for position in positions])
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

    # --- why not ----------------------------------------------------------------------------

    cdef int32_t why_not(self, int32_t shape, list only) except -1:
        """Why *shape* finds no free room (among *only*), by the node that is nearest to it."""
        cdef int32_t resource = NOWHERE
        cdef int64_t had = 0
        cdef const int64_t *request = self.table.request_of(shape)
        cdef int lacking = self.nearest(shape, NOWHERE, False, only, &resource, &had)
        cdef int code = EXCEEDS_EVERY_NODE
        if lacking == NOWHERE:
            return self.new_reason(NO_MATCHING_NODE, NOWHERE, 0, 0)
        if not lacking:
            code = INSUFFICIENT_RESOURCES
            lacking = self.nearest(shape, 0, True, only, &resource, &had)
            if lacking == NOWHERE:
                return self.new_reason(NODES_CLOSED, NOWHERE, 0, 0)
            if not lacking:
                assert self.table.crowdings[shape] is not None, "a shape was refused that fits"
                return self.new_reason(TOO_CROWDED, NOWHERE, 0, 0)
        return self.new_reason(code, resource, request[resource], had)

    cdef int nearest(self, int32_t shape, int row, bint open_only, list only,
                     int32_t *resource, int64_t *had) except -2:
        """Of how many amounts the nearest matching node has too little, or NOWHERE.

        At *row*, or in total where that is NOWHERE.

        The nearest lacks the fewest, then the least part of the one that it lacks most of,
        which goes to *resource*.
        """
        cdef NodeTable table = self.table
        cdef const uint8_t *tiers = table.masks[shape].tiers
        cdef const int64_t *request = table.request_of(shape)
        cdef const int64_t *there
        cdef Py_ssize_t i, r, node
        cdef Py_ssize_t given = table.count if only is None else len(only)
        cdef int lacking, fewest = NOWHERE
        cdef int32_t scarcest
        cdef double part, worst, best = 0.0
        for i in range(given):
            node = i if only is None else only[i]
            if not tiers[node] or (open_only and not table.open[node]):
                continue
            lacking = 0
            scarcest = NOWHERE
            worst = 0.0
            there = table.cells(node, row) if row != NOWHERE else (
                table.base + node * table.columns)
            for r in range(table.columns):
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

    def refused(self):
        """Why each job was refused that was added and not placed."""
        cdef Py_ssize_t i
        cdef Reason *reason
        cdef list reasons = []
        for i in range(self.reason_count):
            reason = &self.reasons[i]
            reasons.append((CODES[reason.code], reason.resource, reason.wanted, reason.had))
        return Refused(self.lanes, tuple(reasons))

    # --- for the policy ---------------------------------------------------------------------

    def standings(self):
        """[(queue, weight, held at first, asked for, held now)] of the queues that take part.

        A queue takes part if it has a weight and holds something or has jobs here.
        """
        cdef Lane lane
        cdef list found = []
        cdef Py_ssize_t r
        cdef bint holds
        for lane in self.lanes:
            holds = False
            for r in range(self.width):
                holds = holds or lane.held[r] != 0
            if lane.weight > 0 and (holds or lane.count):
                found.append((
                    lane.queue, lane.weight, vector_of(lane.held, self.width),
                    vector_of(lane.waiting, self.width), vector_of(lane.allocated, self.width),
                ))
        return found

    def runs_that_may_give_way(self, str queue not None):
        """The jobs of *queue* whose runs are preemptible, as they were added."""
        return (<Lane> self.lane_by_queue[queue]).preemptible

    def has_preemptible_runs(self):
        """Whether any queue has a run that is preemptible."""
        cdef Lane lane
        for lane in self.lanes:
            if lane.preemptible:
                return True
        return False

    def offer(self, list job_ids not None):
        """Say that no other runs than those of *job_ids* can give way from now on."""
        cdef Py_ssize_t r, node
        cdef int32_t handle
        cdef const int64_t *request
        cdef int64_t *cell
        if self.freed == NULL:
            self.freed = <int64_t *> malloc(
                max(self.table.columns * self.table.count, 1) * sizeof(int64_t))
            if self.freed == NULL:
                raise MemoryError
        memset(self.freed, 0, self.table.columns * self.table.count * sizeof(int64_t))
        for job_id in job_ids:
            handle = self.table.jobs.find(job_id)
            node = NOWHERE if handle < 0 else self.table.bindings[handle].node
            if node == NOWHERE:
                continue
            request = self.table.request_of(self.table.bindings[handle].shape)
            for r in range(self.table.columns):
                cell = &self.freed[node * self.table.columns + r]
                cell[0] = saturating_add(cell[0], request[r])

    def reach(self, Requirements requirements not None, list only=None):
        """The nodes (by index, ascending) with room if all that was offered gave way."""
        cdef int32_t shape = self.table.shape_of(requirements)
        if self.freed == NULL:
            raise ValueError("nothing was offered")
        if self.table.masks[shape].crowding != NULL:
            return []
        nodes = range(self.table.count) if only is None else only
        return [node for node in nodes if self.reachable(shape, self.checked(node))]

    cdef Py_ssize_t checked(self, Py_ssize_t node) except -1:
        if not 0 <= node < self.table.count:
            raise IndexError(f"node {node} of {self.table.count}")
        return node

    cdef bint reachable(self, int32_t shape, Py_ssize_t node) noexcept:
        cdef const int64_t *request = self.table.request_of(shape)
        cdef const int64_t *room = self.table.cells(node, 0)
        cdef const int64_t *freed = self.freed + node * self.table.columns
        cdef Py_ssize_t r
        if not (self.table.masks[shape].tiers[node] and self.table.open[node]):
            return False
        for r in range(self.table.columns):
            if request[r] > saturating_add(room[r], freed[r]):
                return False
        return True

    cdef bint reaches_any(self, int32_t shape) noexcept:
        cdef Py_ssize_t node
        if self.table.masks[shape].crowding != NULL:
            # Whom to move for a request that counts its neighbours is not worked out.
            return False
        for node in range(self.table.count):
            if self.reachable(shape, node):
                return True
        return False

    def lose(self, str queue not None, ResourceVector amounts not None):
        """Count that *queue* holds *amounts* less."""
        cdef Lane lane = <Lane> self.lane_by_queue[queue]
        cdef Py_ssize_t r
        if amounts.width != self.width:
            raise ValueError(f"{amounts.width} amounts where there are {self.width} resources")
        for r in range(self.width):
            lane.allocated[r] = saturating_sub(lane.allocated[r], amounts.amounts[r])

    def regain(self, str queue not None, ResourceVector amounts not None):
        """Count that *queue* holds *amounts* again."""
        cdef Lane lane = <Lane> self.lane_by_queue[queue]
        cdef Py_ssize_t r
        if amounts.width != self.width:
            raise ValueError(f"{amounts.width} amounts where there are {self.width} resources")
        for r in range(self.width):
            lane.allocated[r] = saturating_add(lane.allocated[r], amounts.amounts[r])


cdef bint alike(Requirements one, Requirements other) except -1:
    """Whether two are equal; says no at once for most that are not."""
    cdef Py_ssize_t r, width = one.resources.width
    if one.cached_hash != other.cached_hash or width != other.resources.width:
        return False
    for r in range(width):
        if one.resources.amounts[r] != other.resources.amounts[r]:
            return False
    return (
        one.priority_class == other.priority_class
        and (one.selector is other.selector or one.selector == other.selector)
        and (one.tolerations is other.tolerations or one.tolerations == other.tolerations)
        and (one.rules is other.rules or one.rules == other.rules)
    )


cdef bint agree(Job one, Job other) except -1:
    """Whether two members of a gang say the same of it."""
    return (
        one.membership() == other.membership()
        and (one.kind().requirements.priority_class
             == other.kind().requirements.priority_class)
        and one.kind().pools == other.kind().pools
    )
