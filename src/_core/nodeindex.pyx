# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The nodes of one pool as flat columns: what each could give at each level, and who holds what.

Owns amounts, bindings, best-fit search, attempts that are undone, and victims; relies on a
matcher (a callable) for which nodes a request may use at all. Keeps INV-B1 to INV-B5 and
INV-B7 to INV-B10.

    room [row][resource][node]   row 0: the evicted level, then the class priorities ascending
          row 0          base - all that is owned
          row of level p base - what is owned, not evicted, and has a cutoff of p or more
    bindings [handle]            one for each job; those of a node are a list, newest first

A column holds one resource of all nodes side by side, so that a search reads memory in order.
Amounts owned are counted exactly up to 2**63 - 1 and stop there: `room` is then `base` less
that. `base` is never negative, so no subtraction here can leave int64.
"""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from pyresched._core.resources cimport ResourceVector, saturating_add, saturating_sub, vector_of
from pyresched._core.values cimport Requirements

from pyresched.errors import IllegalBinding, InputError, UnknownNode

cdef extern from "nodescan.h" nogil:
    enum:
        BLOCK "NODESCAN_BLOCK"
    ctypedef Py_ssize_t (*nodescan_fn)(
        const int64_t *rows, Py_ssize_t stride, Py_ssize_t width, const int64_t *request,
        const uint8_t *mask, const uint8_t *open) noexcept nogil
    Py_ssize_t nodescan_portable(
        const int64_t *rows, Py_ssize_t stride, Py_ssize_t width, const int64_t *request,
        const uint8_t *mask, const uint8_t *open) noexcept nogil
    nodescan_fn nodescan_fastest() noexcept nogil

EVICTED = INT64_MIN

cdef nodescan_fn scan_kernel = nodescan_fastest()

cdef enum:  # of `over`
    WAS_OPEN = 1
    WAS_CLOSED = 2

cdef enum:
    MOST_WIDTH = 64
    MOST_STEPS = 20_000  # of the search for fewest victims, after which a small set will do


cdef struct Choice:
    # The search for the fewest victims on one node.
    const int64_t *amounts  # [candidate][resource], ascending in the order
    const int64_t *largest  # [candidate][resource]: the largest amount from there on
    const int64_t *sums  # [candidate][resource]: the sum from there on
    int32_t *chosen
    Py_ssize_t given
    Py_ssize_t width
    Py_ssize_t steps


cdef inline int64_t less(int64_t room, int64_t base, int64_t amount) noexcept nogil:
    """*room* minus *amount*, at least *base* - INT64_MAX. Needs base >= 0 and amount >= 0."""
    # What is used, base - room, lies in 0 .. INT64_MAX.
    if amount > INT64_MAX - (base - room):
        return base - INT64_MAX
    return room - amount


cdef bint choose(Choice *search, Py_ssize_t start, Py_ssize_t depth, Py_ssize_t left,
                 const int64_t *need) noexcept nogil:
    """Whether *left* candidates from *start* on cover *need*; the latest such into `chosen`."""
    cdef int64_t rest[MOST_WIDTH]
    cdef Py_ssize_t i, r
    cdef bint covered = True
    for r in range(search.width):
        if need[r] > 0:
            covered = False
    if left == 0:
        return covered
    i = search.given - left
    while i >= start:
        search.steps += 1
        if search.steps > MOST_STEPS:
            return False
        for r in range(search.width):
            # Bounds: everything from here on, and *left* times the largest from here on.
            if need[r] > search.sums[i * search.width + r]:
                break
            if need[r] > 0 and (need[r] - 1) / left >= search.largest[i * search.width + r]:
                break
        else:
            for r in range(search.width):
                rest[r] = need[r] - search.amounts[i * search.width + r] if need[r] > 0 else 0
            search.chosen[depth] = <int32_t> i
            if choose(search, i + 1, depth + 1, left - 1, rest):
                return True
        i -= 1
    return False


@cython.final
cdef class NodeTable:
    """The nodes of one pool, sorted by id, with what is bound to them.

    `levels` are the class priorities, ascending, without the evicted level; `matcher` maps a
    `Requirements` to (mask, preferred mask or None), each one byte for each node. Not for two
    threads at once; a copy by `fork` shares nothing that either changes.
    """

    def __cinit__(self, tuple levels not None, Py_ssize_t width):
        if not 0 < width <= MOST_WIDTH:
            raise InputError(f"{width} resources; write from 1 to {MOST_WIDTH}")
        if list(levels) != sorted(set(levels)):
            raise InputError(f"levels must ascend without repeats, got {levels}")
        cdef Py_ssize_t i
        self.width = width
        self.height = <int> len(levels)
        self.levels = levels
        self.level_priority = <int64_t *> malloc(max(self.height, 1) * sizeof(int64_t))
        if self.level_priority == NULL:
            raise MemoryError
        for i in range(self.height):
            self.level_priority[i] = levels[i]
        self.node_ids = ()
        self.node_by_id = {}
        self.job_ids = []
        self.handle_by_job = {}
        self.free_handles = []
        self.shape_requirements = []
        self.mask_owners = []
        self.shape_by_requirements = {}
        self.clock = 1
        self.stamps[0] = 1
        self.allot_nodes(0)

    def __dealloc__(self):
        free(self.level_priority)
        free(self.base)
        free(self.room)
        free(self.open)
        free(self.over)
        free(self.clipped)
        free(self.newest)
        free(self.bindings)
        free(self.requests)
        free(self.unfit)
        free(self.masks)
        free(self.preferred)
        free(self.log)

    # --- memory -----------------------------------------------------------------------------

    cdef int allot_nodes(self, Py_ssize_t count) except -1:
        """Make node columns for *count* nodes, uninitialised but the flags."""
        # Whole blocks, so that a search needs no case for the last nodes.
        cdef Py_ssize_t stride = (count + BLOCK - 1) // BLOCK * BLOCK
        cdef size_t cells = max(self.width * stride, 1) * sizeof(int64_t)
        free(self.base)
        free(self.room)
        free(self.open)
        free(self.over)
        free(self.clipped)
        free(self.newest)
        self.base = <int64_t *> malloc(cells)
        self.room = <int64_t *> malloc(cells * (self.height + 1))
        self.open = <uint8_t *> calloc(max(stride, 1), 1)
        self.over = <uint8_t *> calloc(max(stride, 1), 1)
        self.clipped = <uint8_t *> calloc(max(stride, 1), 1)
        self.newest = <int32_t *> malloc(max(count, 1) * sizeof(int32_t))
        if (self.base == NULL or self.room == NULL or self.open == NULL or self.over == NULL
                or self.clipped == NULL or self.newest == NULL):
            self.count = self.stride = 0
            raise MemoryError
        self.count = count
        self.stride = stride
        return 0

    cdef int allot_handles(self, Py_ssize_t wanted) except -1:
        """Make room for *wanted* handles."""
        cdef Py_ssize_t space
        cdef Binding *grown
        if wanted <= self.handle_space:
            return 0
        space = max(wanted, self.handle_space + self.handle_space // 2, 64)
        grown = <Binding *> realloc(self.bindings, space * sizeof(Binding))
        if grown == NULL:
            raise MemoryError
        self.bindings = grown
        self.handle_space = space
        return 0

    cdef int allot_shapes(self, Py_ssize_t wanted) except -1:
        """Make room for *wanted* shapes."""
        cdef Py_ssize_t space
        cdef void *grown
        if wanted <= self.shape_space:
            return 0
        space = max(wanted, self.shape_space + self.shape_space // 2, 16)
        grown = realloc(self.requests, space * self.width * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.requests = <int64_t *> grown
        grown = realloc(self.unfit, space * (self.height + 1) * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.unfit = <int64_t *> grown
        grown = realloc(self.masks, space * sizeof(uint8_t *))
        if grown == NULL:
            raise MemoryError
        self.masks = <const uint8_t **> grown
        grown = realloc(self.preferred, space * sizeof(uint8_t *))
        if grown == NULL:
            raise MemoryError
        self.preferred = <const uint8_t **> grown
        self.shape_space = space
        return 0

    # --- nodes ------------------------------------------------------------------------------

    def set_nodes(self, tuple ids not None, list totals not None, bytes takes_new not None):
        """Replace the set of nodes; *ids* ascend, *takes_new* says what each is open to.

        Bindings on nodes that stay are kept. Returns those of nodes that are gone, as
        (job id, node id, requirements, priority, preemptible), sorted by job id.
        """
        cdef Py_ssize_t i, r, count = len(ids)
        cdef ResourceVector total
        cdef Binding *binding
        cdef int32_t handle
        cdef list homeless = []
        if self.depth:
            raise IllegalBinding("nodes cannot come or go within an attempt")
        if len(totals) != count or len(takes_new) != count:
            raise InputError("ids, totals and takes_new must be of one length")
        if list(ids) != sorted(set(ids)):
            raise InputError("node ids must ascend without repeats")
        for total in totals:
            self._check_amounts(total)
        cdef dict node_by_id = {node_id: i for i, node_id in enumerate(ids)}
        cdef tuple old_ids = self.node_ids
        for i in range(self.handles):
            binding = &self.bindings[i]
            if binding.node != NOWHERE and old_ids[binding.node] not in node_by_id:
                homeless.append((
                    self.job_ids[i], old_ids[binding.node],
                    self.shape_requirements[binding.shape], binding.priority,
                    bool(binding.preemptible),
                ))
        self.allot_nodes(count)
        self.node_ids = ids
        self.node_by_id = node_by_id
        for i in range(count):
            total = <ResourceVector> totals[i]
            for r in range(self.width):
                self.base[r * self.stride + i] = total.amounts[r]
            self.open[i] = 1 if takes_new[i] else 0
            self.newest[i] = NOWHERE
        for i in range(count, self.stride):
            for r in range(self.width):
                self.base[r * self.stride + i] = 0
        for handle in range(<int32_t> self.handles):
            binding = &self.bindings[handle]
            if binding.node != NOWHERE:
                binding.node = <int32_t> node_by_id.get(old_ids[binding.node], NOWHERE)
            if binding.node != NOWHERE:
                self.link(handle)
            elif self.job_ids[handle] is not None:
                self._forget(handle)
        for r in range(self.height + 1):
            memcpy(self.row(<int> r), self.base, self.width * self.stride * sizeof(int64_t))
        for i in range(count):
            self.recount(i)
        self.forget_masks()
        homeless.sort(key=_first)
        return homeless

    def set_node(self, Py_ssize_t node, ResourceVector total not None, *, bint takes_new):
        """Change what one node has, and whether it takes new runs."""
        cdef Py_ssize_t r
        self._check_node(node)
        if self.depth:
            raise IllegalBinding("nodes cannot change within an attempt")
        self._check_amounts(total)
        for r in range(self.width):
            self.base[r * self.stride + node] = total.amounts[r]
        self.open[node] = takes_new
        self.recount(node)
        self.released()

    def forget_masks(self):
        """Ask the matcher anew: labels or taints changed."""
        cdef Py_ssize_t i
        for i in range(self.shapes):
            self.masks[i] = NULL
            self.preferred[i] = NULL
            self.mask_owners[i] = None
        self.released()

    cdef Py_ssize_t node_index(self, str node_id) except -1:
        found = self.node_by_id.get(node_id)
        if found is None:
            raise UnknownNode(node_id)
        return found

    def _check_node(self, Py_ssize_t node):
        if not 0 <= node < self.count:
            raise IndexError(f"node {node} of {self.count}")

    def _check_row(self, int row):
        if not 0 <= row <= self.height:
            raise IndexError(f"row {row} of {self.height + 1}")

    def _check_amounts(self, ResourceVector amounts not None):
        """Raise InputError unless *amounts* has our width and nothing below 0."""
        cdef Py_ssize_t r
        if amounts.width != self.width:
            raise InputError(f"{amounts.width} amounts where there are {self.width} resources")
        for r in range(self.width):
            if amounts.amounts[r] < 0:
                raise InputError(f"amount {amounts.amounts[r]} of resource {r}; write 0 or more")

    # --- rows, shapes, handles --------------------------------------------------------------

    cdef inline int64_t *row(self, int row) noexcept nogil:
        return self.room + row * self.width * self.stride

    cdef int row_of(self, int64_t priority) noexcept nogil:
        """The row that a job of *priority* sees: the highest level up to it."""
        cdef int i
        for i in range(self.height):
            if self.level_priority[i] > priority:
                return i
        return self.height

    cdef int32_t shape_of(self, Requirements requirements) except -1:
        """The shape of *requirements*, with its mask ready. Raises InputError for bad amounts."""
        cdef Py_ssize_t r
        cdef int32_t shape
        known = self.shape_by_requirements.get(requirements)
        if known is not None:
            shape = known
        else:
            if requirements is None:
                raise TypeError("requirements must not be None")
            self._check_amounts(requirements.resources)
            self.allot_shapes(self.shapes + 1)
            shape = <int32_t> self.shapes
            self.shape_requirements.append(requirements)
            self.mask_owners.append(None)
            self.shape_by_requirements[requirements] = shape
            for r in range(self.width):
                self.requests[shape * self.width + r] = requirements.resources.amounts[r]
            for r in range(self.height + 1):
                self.unfit[shape * (self.height + 1) + r] = 0
            self.masks[shape] = NULL
            self.preferred[shape] = NULL
            self.shapes += 1
        if self.masks[shape] == NULL:
            self.load_mask(shape)
        return shape

    cdef int load_mask(self, int32_t shape) except -1:
        cdef bytes mask
        cdef bytes preferred = None
        if self.matcher is None:
            mask = b"\1" * self.stride
        else:
            mask, preferred = self.matcher(self.shape_requirements[shape])
        if len(mask) < self.stride or (preferred is not None and len(preferred) < self.stride):
            raise ValueError("a mask has a byte for each node of whole blocks")
        self.mask_owners[shape] = (mask, preferred)
        self.preferred[shape] = NULL if preferred is None else <const uint8_t *> <char *> preferred
        self.masks[shape] = <const uint8_t *> <char *> mask
        return 0

    cdef int32_t handle_of(self, str job_id) except -1:
        """The handle of a job, made if there is none. A handle by itself holds nothing."""
        cdef int32_t handle
        known = self.handle_by_job.get(job_id)
        if known is not None:
            return known
        if job_id is None:
            raise TypeError("a job id must be text, not None")
        if self.free_handles:
            handle = self.free_handles.pop()
            self.job_ids[handle] = job_id
        else:
            if self.handles >= 0x7FFFFFFF:
                raise MemoryError
            self.allot_handles(self.handles + 1)
            handle = <int32_t> self.handles
            self.job_ids.append(job_id)
            self.handles += 1
        self.handle_by_job[job_id] = handle
        self.bindings[handle].node = NOWHERE
        self.bindings[handle].evicted = 0
        return handle

    def _forget(self, int32_t handle):
        """Give an unbound handle back."""
        assert self.bindings[handle].node == NOWHERE and not self.depth
        del self.handle_by_job[self.job_ids[handle]]
        self.job_ids[handle] = None
        self.free_handles.append(handle)

    # --- what did not fit -------------------------------------------------------------------
    # A shape that found no node at a row finds none until room is given back. Each state is
    # stamped; an attempt starts a new stamp above its parent's, and its end brings that back.

    cdef bint known_unfit(self, int32_t shape, int row) noexcept nogil:
        cdef int i
        cdef int64_t stamp = self.unfit[shape * (self.height + 1) + row]
        if stamp == 0 or self.depth > MOST_NESTED:
            return False
        for i in range(self.floor, self.depth + 1):
            if self.stamps[i] == stamp:
                return True
        return False

    cdef void remember_unfit(self, int32_t shape, int row) noexcept nogil:
        # What lies below a row that gives nothing gives nothing either.
        cdef int i
        if self.depth <= MOST_NESTED:
            for i in range(row + 1):
                self.unfit[shape * (self.height + 1) + i] = self.stamps[self.depth]

    cdef void released(self) noexcept nogil:
        """Room was given back: forget what did not fit."""
        self.floor = self.depth
        if self.depth <= MOST_NESTED:
            self.clock += 1
            self.stamps[self.depth] = self.clock

    # --- search -----------------------------------------------------------------------------

    cdef bint fits(self, Py_ssize_t node, int32_t shape, int row) noexcept nogil:
        """Whether there is room at *row*; asks nothing else."""
        cdef Py_ssize_t r
        cdef const int64_t *room = self.row(row) + node
        cdef const int64_t *request = self.requests + shape * self.width
        for r in range(self.width):
            if request[r] > room[r * self.stride]:
                return False
        return True

    cdef bint fuller(self, int row, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        """Whether *one* comes before *other* in best-fit order."""
        cdef Py_ssize_t r
        cdef const int64_t *column
        for r in range(self.width):
            column = self.row(row) + r * self.stride
            if column[one] != column[other]:
                return column[one] < column[other]
        return one < other

    cdef Py_ssize_t scan(self, const int64_t *request, const uint8_t *mask,
                         int row) noexcept nogil:
        """The first open node of *mask* in best-fit order with room at *row*, or NOWHERE."""
        return scan_kernel(self.row(row), self.stride, self.width, request, mask, self.open)

    cdef Py_ssize_t best_at(self, int32_t shape, int row, const int32_t *avoid,
                            const uint8_t *ranks, Py_ssize_t avoided) noexcept nogil:
        """The best node at *row*: not avoided before avoided by rank; then preferred; best fit."""
        cdef const int64_t *request = self.requests + shape * self.width
        cdef const uint8_t *mask = self.masks[shape]
        cdef const uint8_t *preferred = self.preferred[shape]
        cdef Py_ssize_t i, found = NOWHERE
        # Avoided nodes are closed while the others are searched: bit 1 keeps what was open.
        for i in range(avoided):
            self.open[avoid[i]] = self.open[avoid[i]] << 1
        if preferred != NULL:
            found = self.scan(request, preferred, row)
        if found == NOWHERE:
            found = self.scan(request, mask, row)
        for i in range(avoided):
            self.open[avoid[i]] = self.open[avoid[i]] >> 1
        if found == NOWHERE and avoided:
            found = self.best_among(shape, row, avoid, avoided, avoid, ranks, avoided)
        return found

    cdef Py_ssize_t best_among(self, int32_t shape, int row, const int32_t *only,
                               Py_ssize_t given, const int32_t *avoid, const uint8_t *ranks,
                               Py_ssize_t avoided) noexcept nogil:
        """The same among the few nodes *only*."""
        cdef const uint8_t *mask = self.masks[shape]
        cdef const uint8_t *preferred = self.preferred[shape]
        cdef Py_ssize_t i, k, node, best = NOWHERE
        cdef int rank, best_rank = 0
        for i in range(given):
            node = only[i]
            if not (mask[node] and self.open[node] and self.fits(node, shape, row)):
                continue
            rank = 0
            for k in range(avoided):
                if avoid[k] == node:
                    rank = ranks[k] * 2
            if preferred != NULL and not preferred[node]:
                rank += 1
            if best == NOWHERE or rank < best_rank or (
                rank == best_rank and self.fuller(row, node, best)
            ):
                best = node
                best_rank = rank
        return best

    cdef Py_ssize_t find(self, int32_t shape, int row, int *found) noexcept nogil:
        """The best node for *shape* at the lowest row up to *row* that has one, or NOWHERE."""
        return self.find_avoiding(shape, row, NULL, NULL, 0, found)

    cdef Py_ssize_t find_avoiding(self, int32_t shape, int row, const int32_t *avoid,
                                  const uint8_t *ranks, Py_ssize_t avoided,
                                  int *found) noexcept nogil:
        """The same, trying the nodes of *avoid* (each once, ranks from 1) after all others."""
        cdef Py_ssize_t node
        cdef int i
        if self.known_unfit(shape, row):
            return NOWHERE
        for i in range(row):
            if not self.known_unfit(shape, i):
                node = self.best_at(shape, i, avoid, ranks, avoided)
                if node != NOWHERE:
                    found[0] = i
                    return node
                self.remember_unfit(shape, i)
                if i == 0 and row > 1 and self.best_at(shape, row, NULL, NULL, 0) == NOWHERE:
                    # Room only grows with the row: nothing at the last, nothing between.
                    self.remember_unfit(shape, row)
                    return NOWHERE
        node = self.best_at(shape, row, avoid, ranks, avoided)
        if node == NOWHERE:
            self.remember_unfit(shape, row)
        found[0] = row
        return node

    cdef Py_ssize_t find_among(self, int32_t shape, int row, const int32_t *only,
                               Py_ssize_t given, const int32_t *avoid, const uint8_t *ranks,
                               Py_ssize_t avoided, int *found) noexcept nogil:
        """The same among the nodes *only*."""
        cdef Py_ssize_t node
        cdef int i
        for i in range(row + 1):
            node = self.best_among(shape, i, only, given, avoid, ranks, avoided)
            if node != NOWHERE:
                found[0] = i
                return node
        return NOWHERE

    # --- bindings ---------------------------------------------------------------------------

    cdef void take(self, Py_ssize_t node, const int64_t *request, int low,
                   int high) noexcept nogil:
        """Subtract *request* from the rows *low* to *high*."""
        cdef int row
        cdef Py_ssize_t r
        cdef int64_t base
        cdef int64_t *room
        for row in range(low, high + 1):
            room = self.row(row) + node
            for r in range(self.width):
                base = self.base[r * self.stride + node]
                if request[r] > INT64_MAX - (base - room[0]):
                    self.clipped[node] = 1
                room[0] = less(room[0], base, request[r])
                room += self.stride

    cdef void give(self, Py_ssize_t node, const int64_t *request, int low,
                   int high) noexcept nogil:
        """Add *request* back to the rows *low* to *high*. The binding is changed before."""
        cdef int row
        cdef Py_ssize_t r
        cdef int64_t *room
        if low > high:
            return
        self.released()
        if self.clipped[node]:
            self.recount(node)
            return
        for row in range(low, high + 1):
            room = self.row(row) + node
            for r in range(self.width):
                room[0] += request[r]
                room += self.stride

    cdef void recount(self, Py_ssize_t node) noexcept nogil:
        """Work out what *node* has left from what is bound to it."""
        cdef int row
        cdef Py_ssize_t r
        cdef Binding *binding
        cdef int32_t handle = self.newest[node]
        self.clipped[node] = 0
        for row in range(self.height + 1):
            for r in range(self.width):
                self.row(row)[r * self.stride + node] = self.base[r * self.stride + node]
        while handle != NOWHERE:
            binding = &self.bindings[handle]
            self.take(node, self.requests + binding.shape * self.width, 0,
                      0 if binding.evicted else binding.height)
            handle = binding.older

    cdef void link(self, int32_t handle) noexcept nogil:
        cdef Binding *binding = &self.bindings[handle]
        binding.newer = NOWHERE
        binding.older = self.newest[binding.node]
        self.relink(handle)

    cdef void relink(self, int32_t handle) noexcept nogil:
        """Put a binding between the neighbours that it names."""
        cdef Binding *binding = &self.bindings[handle]
        if binding.newer == NOWHERE:
            self.newest[binding.node] = handle
        else:
            self.bindings[binding.newer].older = handle
        if binding.older != NOWHERE:
            self.bindings[binding.older].newer = handle

    cdef void unlink(self, int32_t handle) noexcept nogil:
        cdef Binding *binding = &self.bindings[handle]
        if binding.newer == NOWHERE:
            self.newest[binding.node] = binding.older
        else:
            self.bindings[binding.newer].older = binding.older
        if binding.older != NOWHERE:
            self.bindings[binding.older].newer = binding.newer

    cdef int reserve_log(self) except -1 nogil:
        cdef Py_ssize_t space
        cdef Undo *grown
        if self.log_length < self.log_space:
            return 0
        space = max(self.log_space * 2, 64)
        grown = <Undo *> realloc(self.log, space * sizeof(Undo))
        if grown == NULL:
            with gil:
                raise MemoryError
        self.log = grown
        self.log_space = space
        return 0

    cdef void record(self, Step step, int32_t handle) noexcept nogil:
        """Remember a binding before it changes, if an attempt is open."""
        cdef Undo *undo
        if self.depth:
            undo = &self.log[self.log_length]
            undo.step = step
            undo.handle = handle
            undo.before = self.bindings[handle]
            self.log_length += 1

    cdef int bind_handle(self, int32_t handle, int32_t shape, Py_ssize_t node, int64_t priority,
                         bint preemptible) except -1 nogil:
        """Bind a job that holds nothing, or one that was evicted from this very node.

        Asks nothing about room: negative amounts are legal in between.
        """
        cdef Binding *binding = &self.bindings[handle]
        cdef bint back = binding.node != NOWHERE
        if back and (binding.node != node or not binding.evicted or binding.shape != shape):
            with gil:
                self._refuse_bind(handle, node)
        self.reserve_log()
        self.record(RETURN if back else BIND, handle)
        binding.priority = priority
        binding.shape = shape
        binding.height = self.row_of(priority) if preemptible else self.height
        binding.evicted = 0
        binding.preemptible = preemptible
        if not back:
            binding.node = <int32_t> node
            self.link(handle)
        self.take(node, self.requests + shape * self.width, 1 if back else 0, binding.height)
        return 0

    cdef int evict_handle(self, int32_t handle) except -1 nogil:
        """Give a job's room to the levels; the evicted level still counts it."""
        cdef Binding *binding = &self.bindings[handle]
        if binding.node == NOWHERE or binding.evicted:
            with gil:
                state = "is evicted already" if binding.evicted else "holds no node"
                raise IllegalBinding(f"job {self.job_ids[handle]!r} cannot be evicted: it {state}")
        self.reserve_log()
        self.record(EVICT, handle)
        binding.evicted = 1
        self.give(binding.node, self.requests + binding.shape * self.width, 1, binding.height)
        return 0

    cdef int unbind_handle(self, int32_t handle) except -1 nogil:
        """Give back all that a job holds. One that holds nothing stays as it is."""
        cdef Binding *binding = &self.bindings[handle]
        cdef Py_ssize_t node = binding.node
        if node == NOWHERE:
            return 0
        self.reserve_log()
        self.record(UNBIND, handle)
        self.unlink(handle)
        binding.node = NOWHERE
        self.give(node, self.requests + binding.shape * self.width, 0,
                  0 if binding.evicted else binding.height)
        binding.evicted = 0
        return 0

    def _refuse_bind(self, int32_t handle, Py_ssize_t node):
        cdef Binding *binding = &self.bindings[handle]
        if binding.node != node:
            state = f"it holds node {self.node_ids[binding.node]!r}; unbind it first"
        elif not binding.evicted:
            state = "it is bound there already"
        else:
            state = "it returns with other requirements; unbind it first"
        raise IllegalBinding(
            f"job {self.job_ids[handle]!r} cannot be bound to {self.node_ids[node]!r}: {state}"
        )

    # --- attempts ---------------------------------------------------------------------------

    cdef Py_ssize_t open_attempt(self) except -1 nogil:
        """Begin an attempt; returns its mark."""
        cdef Undo *undo
        cdef Py_ssize_t mark = self.log_length
        self.reserve_log()
        undo = &self.log[mark]
        undo.step = BEGIN
        undo.floor = self.floor
        undo.stamp = self.stamps[self.depth] if self.depth <= MOST_NESTED else 0
        self.log_length += 1
        self.depth += 1
        if self.depth <= MOST_NESTED:
            self.clock += 1
            self.stamps[self.depth] = self.clock
        return mark

    cdef void keep_attempt(self, Py_ssize_t mark) noexcept nogil:
        """End the innermost attempt; what it did now belongs to the one around it."""
        self.log[mark].step = KEPT
        self.depth -= 1
        if self.floor > self.depth:
            # Room was given back inside: what was known outside may hold no more.
            self.released()
        if self.depth == 0:
            self.log_length = 0

    cdef void undo_attempt(self, Py_ssize_t mark) noexcept nogil:
        """Take back all since *mark*, exactly."""
        cdef Undo *undo
        cdef Binding *binding
        cdef Binding after
        cdef const int64_t *request
        while self.log_length > mark:
            self.log_length -= 1
            undo = &self.log[self.log_length]
            if undo.step == KEPT:
                continue
            if undo.step == BEGIN:
                self.depth -= 1
                self.floor = undo.floor
                if self.depth <= MOST_NESTED:
                    self.stamps[self.depth] = undo.stamp
                continue
            binding = &self.bindings[undo.handle]
            after = binding[0]
            if undo.step == BIND:
                self.unlink(undo.handle)
            binding[0] = undo.before
            request = self.requests + (
                undo.before.shape if undo.step != BIND else after.shape) * self.width
            if undo.step == BIND:
                self.give(after.node, request, 0, after.height)
            elif undo.step == RETURN:
                self.give(after.node, request, 1, after.height)
            elif undo.step == EVICT:
                self.take(binding.node, request, 1, binding.height)
            else:
                self.relink(undo.handle)
                self.take(binding.node, request, 0, 0 if binding.evicted else binding.height)

    # --- victims ----------------------------------------------------------------------------

    cdef Py_ssize_t victims_of(self, int32_t shape, int64_t priority, const int32_t *candidates,
                               Py_ssize_t given, int32_t *victims, Py_ssize_t *count) except -2:
        """The node whose loss lies latest in *candidates*, and the fewest of them that suffice.

        Each candidate stands once. *victims* has room for *given*. NOWHERE if no node would do.
        """
        cdef Py_ssize_t i, r, node, first, width = self.width
        cdef Binding *binding
        cdef const int64_t *request = self.requests + shape * width
        cdef const int64_t *amount
        cdef int64_t *freed = <int64_t *> calloc(max(self.count * width, 1), sizeof(int64_t))
        cdef int64_t had
        cdef bint enough = False
        if freed == NULL:
            raise MemoryError
        count[0] = 0
        first = given
        node = NOWHERE
        try:
            while first > 0 and not enough:
                first -= 1
                binding = &self.bindings[candidates[first]]
                node = binding.node
                if (node == NOWHERE or not binding.preemptible or binding.priority > priority
                        or not self.open[node] or not self.masks[shape][node]
                        or self.clipped[node]):
                    continue
                amount = self.requests + binding.shape * width
                enough = True
                for r in range(width):
                    freed[node * width + r] = saturating_add(freed[node * width + r], amount[r])
                    had = self.room[r * self.stride + node]
                    if request[r] > saturating_add(had, freed[node * width + r]):
                        enough = False
        finally:
            free(freed)
        if not enough:
            return NOWHERE
        for i in range(first, given):
            binding = &self.bindings[candidates[i]]
            if (binding.node == node and binding.preemptible and binding.priority <= priority):
                victims[count[0]] = candidates[i]
                count[0] += 1
        self._fewest(shape, node, victims, count)
        return node

    cdef int _fewest(self, int32_t shape, Py_ssize_t node, int32_t *victims,
                     Py_ssize_t *count) except -1:
        """Cut *victims*, all of which suffice and of which the first is needed, to the fewest.

        Among equally few, those latest in the order.
        """
        cdef Py_ssize_t width = self.width, given = count[0] - 1
        cdef Py_ssize_t i, k, r, wanted
        cdef const int64_t *request = self.requests + shape * width
        cdef const int64_t *amount
        cdef int64_t had
        cdef int64_t need[MOST_WIDTH]
        cdef Choice search
        cdef int64_t *cells = <int64_t *> malloc(3 * max(given, 1) * width * sizeof(int64_t))
        cdef int32_t *chosen = <int32_t *> malloc(max(given, 1) * sizeof(int32_t))
        cdef int64_t *amounts = cells
        cdef int64_t *largest = cells + given * width
        cdef int64_t *sums = cells + 2 * given * width
        try:
            if cells == NULL or chosen == NULL:
                raise MemoryError
            amount = self.requests + self.bindings[victims[0]].shape * width
            for r in range(width):
                had = saturating_add(self.room[r * self.stride + node], amount[r])
                need[r] = max(saturating_sub(request[r], had), 0)
            for i in range(given - 1, -1, -1):
                amount = self.requests + self.bindings[victims[i + 1]].shape * width
                for r in range(width):
                    k = i * width + r
                    amounts[k] = largest[k] = sums[k] = amount[r]
                    if i + 1 < given:
                        largest[k] = max(largest[k], largest[k + width])
                        sums[k] = saturating_add(sums[k], sums[k + width])
            search.amounts = amounts
            search.largest = largest
            search.sums = sums
            search.chosen = chosen
            search.given = given
            search.width = width
            search.steps = 0
            for wanted in range(given + 1):
                if choose(&search, 0, 0, wanted, need):
                    for i in range(wanted):
                        victims[i + 1] = victims[chosen[i] + 1]
                    count[0] = wanted + 1
                    return 0
                if search.steps > MOST_STEPS:
                    break
            # Too many to search: spare each, the first in line first, that is not needed.
            for r in range(width):
                if given:
                    need[r] = saturating_add(sums[r], -need[r])  # what may be spared
            k = 1
            for i in range(given):
                for r in range(width):
                    if amounts[i * width + r] > need[r]:
                        victims[k] = victims[i + 1]
                        k += 1
                        break
                else:
                    for r in range(width):
                        need[r] -= amounts[i * width + r]
            count[0] = k
            return 0
        finally:
            free(cells)
            free(chosen)

    # --- for Python -------------------------------------------------------------------------

    @property
    def in_attempt(self):
        """Whether an attempt is open."""
        return self.depth > 0

    def begin(self):
        """Begin an attempt; returns its mark."""
        return self.open_attempt()

    def keep(self, Py_ssize_t mark):
        """End the innermost attempt, which began at *mark*, and keep what it did."""
        cdef Py_ssize_t i
        self._check_mark(mark)
        for i in range(mark + 1, self.log_length):
            if self.log[i].step == BEGIN:
                raise IllegalBinding("an attempt inside that one is open")
        self.keep_attempt(mark)

    def undo(self, Py_ssize_t mark):
        """Take back all since *mark*, at which an attempt began that is open."""
        self._check_mark(mark)
        self.undo_attempt(mark)

    def _check_mark(self, Py_ssize_t mark):
        if not 0 <= mark < self.log_length or self.log[mark].step != BEGIN:
            raise IllegalBinding(f"no open attempt began at {mark}")

    def row_at(self, int64_t priority):
        """The row that a job of *priority* sees; `EVICTED` and what is below every level see 0."""
        return self.row_of(priority)

    def bind(self, str job_id not None, Requirements requirements not None, str node_id not None,
             int64_t priority, bint preemptible):
        """Bind a job. Raises UnknownNode, IllegalBinding, InputError."""
        cdef Py_ssize_t node = self.node_index(node_id)
        cdef int32_t shape = self.shape_of(requirements)
        self.bind_handle(self.handle_of(job_id), shape, node, priority, preemptible)

    def hold(self, str job_id not None, Requirements requirements not None,
             str node_id not None, int64_t priority, bint preemptible):
        """Make a job hold exactly this, whatever it held before."""
        cdef Py_ssize_t node = self.node_index(node_id)
        cdef int32_t shape = self.shape_of(requirements)
        cdef int32_t handle = self.handle_of(job_id)
        cdef Binding *binding = &self.bindings[handle]
        if (binding.node == node and binding.shape == shape and binding.priority == priority
                and binding.preemptible == preemptible and not binding.evicted):
            return
        self.unbind_handle(handle)
        self.bind_handle(handle, shape, node, priority, preemptible)

    def place_each(self, list job_ids not None, list requirements not None, int64_t priority,
                   bint preemptible):
        """Find a node for each job in turn and bind it there; [node id or None].

        As `find_for` and `bind` one by one. The job of index i has the i-th requirements. Raises
        IllegalBinding before anything is bound when a job holds a node or stands twice.
        """
        cdef Py_ssize_t i, count = len(job_ids)
        cdef int32_t *cells
        cdef int row = self.row_of(priority)
        if len(requirements) != count:
            raise InputError(f"{len(requirements)} requirements for {count} jobs")
        if len(set(job_ids)) != count:
            raise IllegalBinding("a job stands twice")
        cells = <int32_t *> malloc(max(3 * count, 1) * sizeof(int32_t))
        if cells == NULL:
            raise MemoryError
        try:
            for i in range(count):
                cells[i] = self.shape_of(requirements[i])
                cells[count + i] = self.handle_of(job_ids[i])
                if self.bindings[cells[count + i]].node != NOWHERE:
                    self._refuse_bind(cells[count + i], 0)
            with nogil:
                self.place_handles(cells, cells + count, count, row, priority, preemptible,
                                   cells + 2 * count)
            return [None if cells[2 * count + i] == NOWHERE
                    else self.node_ids[cells[2 * count + i]] for i in range(count)]
        finally:
            free(cells)

    cdef int place_handles(self, const int32_t *shapes, const int32_t *handles, Py_ssize_t count,
                           int row, int64_t priority, bint preemptible,
                           int32_t *nodes) except -1 nogil:
        """Find and bind each in turn; the node of each, or NOWHERE, into *nodes*."""
        cdef Py_ssize_t i
        cdef int found = 0
        for i in range(count):
            nodes[i] = <int32_t> self.find(shapes[i], row, &found)
            if nodes[i] != NOWHERE:
                self.bind_handle(handles[i], shapes[i], nodes[i], priority, preemptible)
        return 0

    def evict(self, str job_id not None):
        """Evict a bound job. Raises IllegalBinding."""
        handle = self.handle_by_job.get(job_id)
        if handle is None:
            raise IllegalBinding(f"job {job_id!r} cannot be evicted: it holds no node")
        self.evict_handle(handle)

    def unbind(self, str job_id not None):
        """Unbind a job; one that holds nothing stays as it is."""
        handle = self.handle_by_job.get(job_id)
        if handle is not None:
            self.unbind_handle(handle)

    def drop(self, str job_id not None):
        """Unbind a job and forget its handle."""
        handle = self.handle_by_job.get(job_id)
        if handle is not None:
            self.unbind_handle(handle)
            self._forget(handle)

    def find_for(self, Requirements requirements not None, int row, list avoid=None,
                 list only=None):
        """(node id, row) of the best node up to *row*, or None.

        *avoid* holds (node index, rank) with distinct nodes and ranks from 1 to 100; *only*
        holds node indices.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef Py_ssize_t i, node, avoided = 0, given = 0
        cdef int found = 0
        cdef int32_t *cells = NULL
        cdef uint8_t *ranks = NULL
        cdef int32_t *only_cells
        self._check_row(row)
        if avoid is None and only is None:
            with nogil:
                node = self.find(shape, row, &found)
            return None if node == NOWHERE else (self.node_ids[node], found)
        avoided = 0 if avoid is None else len(avoid)
        given = 0 if only is None else len(only)
        cells = <int32_t *> malloc(max(avoided + given, 1) * sizeof(int32_t))
        ranks = <uint8_t *> malloc(max(avoided, 1))
        try:
            if cells == NULL or ranks == NULL:
                raise MemoryError
            only_cells = cells + avoided
            for i in range(avoided):
                node, ranks[i] = avoid[i]
                self._check_node(node)
                cells[i] = <int32_t> node
            for i in range(given):
                node = only[i]
                self._check_node(node)
                only_cells[i] = <int32_t> node
            with nogil:
                if only is None:
                    node = self.find_avoiding(shape, row, cells, ranks, avoided, &found)
                else:
                    node = self.find_among(shape, row, only_cells, given, cells, ranks, avoided,
                                           &found)
        finally:
            free(cells)
            free(ranks)
        return None if node == NOWHERE else (self.node_ids[node], found)

    def spread_over(self, Requirements requirements not None, Py_ssize_t count, int row,
                    list avoid=None):
        """[(node id, how many)] for up to *count* alike jobs, as `find_for` one by one would say.

        A node that takes one takes all that fit there: it only comes earlier in the order.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef const int64_t *request = self.requests + shape * self.width
        cdef Py_ssize_t i, r, node, avoided = 0 if avoid is None else len(avoid)
        cdef Py_ssize_t rows = (row + 1) * self.width
        cdef int64_t copies, most
        cdef int level = 0
        cdef list placed = []
        cdef dict saved = {}
        self._check_row(row)
        cdef int32_t *cells = <int32_t *> malloc(max(avoided, 1) * sizeof(int32_t))
        cdef uint8_t *ranks = <uint8_t *> malloc(max(avoided, 1))
        cdef int64_t *cell
        try:
            if cells == NULL or ranks == NULL:
                raise MemoryError
            for i in range(avoided):
                node, ranks[i] = avoid[i]
                self._check_node(node)
                cells[i] = <int32_t> node
            while count > 0 and level <= row:
                node = self.best_at(shape, level, cells, ranks, avoided)
                if node == NOWHERE:
                    level += 1
                    continue
                copies = count
                for r in range(self.width):
                    if request[r] > 0:
                        most = self.row(level)[r * self.stride + node] // request[r]
                        copies = min(copies, most)
                if node not in saved:
                    saved[node] = [self.room[i * self.stride + node] for i in range(rows)]
                for i in range((row + 1) * self.width):
                    cell = &self.room[i * self.stride + node]
                    r = i % self.width
                    # At rows below the level there may be less room than that.
                    most = INT64_MAX
                    if request[r] == 0 or copies <= INT64_MAX // request[r]:
                        most = copies * request[r]
                    cell[0] = less(cell[0], self.base[r * self.stride + node], most)
                placed.append((self.node_ids[node], copies))
                count -= copies
        finally:
            for node, amounts in saved.items():
                for i in range(rows):
                    self.room[i * self.stride + node] = amounts[i]
            free(cells)
            free(ranks)
        return placed

    def victims_for(self, Requirements requirements not None, int64_t priority,
                    list candidates not None):
        """(node id, victims in the order of *candidates*), or None. *candidates* are job ids.

        Raises IllegalBinding for a candidate that holds no node.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef Py_ssize_t i, node, count = 0
        cdef dict order = dict.fromkeys(candidates)
        cdef int32_t *handles = <int32_t *> malloc(max(2 * len(order), 1) * sizeof(int32_t))
        cdef int32_t *victims
        cdef int32_t handle
        if handles == NULL:
            raise MemoryError
        victims = handles + len(order)
        try:
            for i, job_id in enumerate(order):
                known = self.handle_by_job.get(job_id)
                if known is None or self.bindings[<int32_t> known].node == NOWHERE:
                    raise IllegalBinding(f"job {job_id!r} cannot be a victim: it holds no node")
                handle = known
                handles[i] = handle
            node = self.best_at(shape, 0, NULL, NULL, 0)
            if node == NOWHERE:
                node = self.victims_of(shape, priority, handles, len(order), victims, &count)
            if node == NOWHERE:
                return None
            return self.node_ids[node], [self.job_ids[victims[i]] for i in range(count)]
        finally:
            free(handles)

    def shortfall(self, Requirements requirements not None, int row, list only=None):
        """(nodes that take part, those that match, best total, best room at *row*).

        A node takes part if it is open, or would be but that it is over-allocated. The best of
        what those that match have: of each resource the most; or, if that would do for each,
        all of the node that is short of the fewest.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef const uint8_t *mask = self.masks[shape]
        cdef const int64_t *request = self.requests + shape * self.width
        cdef Py_ssize_t i, r, node, taking = 0, matching = 0
        cdef bint short_of = False
        cdef ResourceVector total, had
        self._check_row(row)
        cdef uint8_t *chosen = <uint8_t *> calloc(max(self.stride, 1), 1)
        if chosen == NULL:
            raise MemoryError
        try:
            if only is None:
                memset(chosen, 1, self.count)
            else:
                for node in only:
                    self._check_node(node)
                    chosen[node] = 1
            for i in range(self.count):
                chosen[i] &= self.open[i] | (self.over[i] == WAS_OPEN)
                taking += chosen[i]
                chosen[i] &= mask[i]
                matching += chosen[i]
            total = self._best_had(shape, self.base, chosen)
            had = self._best_had(shape, self.row(row), chosen)
            for r in range(self.width):
                if request[r] > had.amounts[r]:
                    short_of = True
            if not short_of and matching:
                # Only over-allocated nodes have room at this level: none of it is free.
                had = self._best_had(shape, self.row(0), chosen)
            return taking, matching, total, had
        finally:
            free(chosen)

    cdef ResourceVector _best_had(self, int32_t shape, const int64_t *rows,
                                  const uint8_t *chosen):
        cdef int64_t had[MOST_WIDTH]
        cdef const int64_t *request = self.requests + shape * self.width
        cdef Py_ssize_t i, r, best = NOWHERE
        cdef int short_of, fewest = 0
        cdef bint enough = True
        memset(had, 0, sizeof(had))
        for i in range(self.count):
            if not chosen[i]:
                continue
            short_of = 0
            for r in range(self.width):
                if best == NOWHERE or rows[r * self.stride + i] > had[r]:
                    had[r] = rows[r * self.stride + i]
                short_of += request[r] > rows[r * self.stride + i]
            if best == NOWHERE or short_of < fewest:
                best = i
                fewest = short_of
        for r in range(self.width):
            if request[r] > had[r]:
                enough = False
        if enough and best != NOWHERE:
            for r in range(self.width):
                had[r] = rows[r * self.stride + best]
        return vector_of(had, self.width)

    def stamp(self):
        """What identifies this state as long as no room is given back, or 0 for none."""
        return self.stamps[self.depth] if self.depth <= MOST_NESTED else 0

    def is_current(self, int64_t stamp):
        """Whether no room was given back since *stamp* was read."""
        cdef int i
        if stamp == 0 or self.depth > MOST_NESTED:
            return False
        for i in range(self.floor, self.depth + 1):
            if self.stamps[i] == stamp:
                return True
        return False

    def binding(self, str job_id not None):
        """(node id, requirements, priority, preemptible, evicted) of a job, or None."""
        handle = self.handle_by_job.get(job_id)
        if handle is None:
            return None
        cdef Binding *binding = &self.bindings[<int32_t> handle]
        if binding.node == NOWHERE:
            return None
        return (
            self.node_ids[binding.node], self.shape_requirements[binding.shape],
            binding.priority, bool(binding.preemptible), bool(binding.evicted),
        )

    def node_of(self, str job_id not None):
        """The node that a job holds, evicted or not, or None."""
        handle = self.handle_by_job.get(job_id)
        if handle is None or self.bindings[<int32_t> handle].node == NOWHERE:
            return None
        return self.node_ids[self.bindings[<int32_t> handle].node]

    def fits_back(self, str job_id not None):
        """Whether an evicted job could return: room at its level, or its node over-allocated."""
        handle = self.handle_by_job.get(job_id)
        if handle is None or self.bindings[<int32_t> handle].node == NOWHERE:
            return False
        cdef Binding *binding = &self.bindings[<int32_t> handle]
        if not binding.evicted:
            return False
        return bool(self.over[binding.node]
                    or self.fits(binding.node, binding.shape, self.row_of(binding.priority)))

    def bound(self, Py_ssize_t node):
        """Ids of the jobs that hold a node, evicted ones too, sorted."""
        return sorted(self.bound_newest_first(node))

    def bound_newest_first(self, Py_ssize_t node):
        """The same in the order of the node's list: the last bound comes first."""
        self._check_node(node)
        cdef int32_t handle = self.newest[node]
        cdef list found = []
        while handle != NOWHERE:
            found.append(self.job_ids[handle])
            handle = self.bindings[handle].older
        return found

    def bound_jobs(self):
        """Ids of all jobs that hold a node, sorted."""
        return sorted([self.job_ids[i] for i in range(self.handles)
                       if self.bindings[i].node != NOWHERE])

    def evicted_jobs(self):
        """Ids of all evicted jobs, sorted."""
        return sorted([self.job_ids[i] for i in range(self.handles)
                       if self.bindings[i].node != NOWHERE and self.bindings[i].evicted])

    def amounts(self, Py_ssize_t node, int row):
        """What *node* has left at *row*."""
        self._check_node(node)
        self._check_row(row)
        return self._column(self.row(row), node)

    def total(self, Py_ssize_t node):
        """What *node* has in total."""
        self._check_node(node)
        return self._column(self.base, node)

    cdef ResourceVector _column(self, const int64_t *rows, Py_ssize_t node):
        cdef int64_t cells[MOST_WIDTH]
        cdef Py_ssize_t r
        for r in range(self.width):
            cells[r] = rows[r * self.stride + node]
        return vector_of(cells, self.width)

    def is_open(self, Py_ssize_t node):
        """Whether *node* takes anything new."""
        self._check_node(node)
        return bool(self.open[node])

    def is_over(self, Py_ssize_t node):
        """Whether *node* held more than it has when this table was forked."""
        self._check_node(node)
        return bool(self.over[node])

    def oversubscribed(self):
        """[(node id, lowest class priority short of room)] but for over-allocated nodes."""
        cdef list found = []
        cdef Py_ssize_t node, r
        cdef int row
        cdef bint short_of
        for node in range(self.count):
            if self.over[node]:
                continue
            for row in range(1, self.height + 1):
                short_of = False
                for r in range(self.width):
                    if self.row(row)[r * self.stride + node] < 0:
                        short_of = True
                if short_of:
                    found.append((self.node_ids[node], self.level_priority[row - 1]))
                    break
        return found

    cdef NodeTable twin(self):
        """A table that equals this one and shares nothing that either changes."""
        cdef NodeTable copy = NodeTable.__new__(NodeTable, self.levels, self.width)
        cdef size_t cells = self.width * self.stride * sizeof(int64_t)
        copy.allot_nodes(self.count)
        memcpy(copy.base, self.base, cells)
        memcpy(copy.room, self.room, cells * (self.height + 1))
        memcpy(copy.open, self.open, self.stride)
        memcpy(copy.over, self.over, self.stride)
        memcpy(copy.clipped, self.clipped, self.stride)
        memcpy(copy.newest, self.newest, self.count * sizeof(int32_t))
        copy.node_ids = self.node_ids
        copy.node_by_id = self.node_by_id
        copy.matcher = self.matcher
        copy.allot_handles(self.handles)
        if self.handles:
            memcpy(copy.bindings, self.bindings, self.handles * sizeof(Binding))
        copy.handles = self.handles
        copy.job_ids = self.job_ids[:]
        copy.handle_by_job = self.handle_by_job.copy()
        copy.free_handles = self.free_handles[:]
        copy.allot_shapes(self.shapes)
        if self.shapes:
            memcpy(copy.requests, self.requests, self.shapes * self.width * sizeof(int64_t))
            memset(copy.unfit, 0, self.shapes * (self.height + 1) * sizeof(int64_t))
            memcpy(copy.masks, self.masks, self.shapes * sizeof(uint8_t *))
            memcpy(copy.preferred, self.preferred, self.shapes * sizeof(uint8_t *))
        copy.shapes = self.shapes
        copy.shape_requirements = self.shape_requirements[:]
        copy.mask_owners = self.mask_owners[:]
        copy.shape_by_requirements = self.shape_by_requirements.copy()
        return copy

    def fork(self):
        """A copy to decide on, outside every attempt. It shares nothing that either changes."""
        return self.twin()

    def close_over_allocated(self):
        """Mark and close each node that holds more than it has."""
        cdef Py_ssize_t node, r
        for node in range(self.count):
            self.over[node] = 0
            for r in range(self.width):
                if self.room[r * self.stride + node] < 0 and not self.over[node]:
                    self.over[node] = WAS_OPEN if self.open[node] else WAS_CLOSED
                    self.open[node] = 0

    def drop_unused_shapes(self):
        """Forget requirements that nothing bound has. Not within an attempt."""
        cdef list used = [0] * self.shapes
        cdef list requirements = []
        cdef list owners = []
        cdef Py_ssize_t i, r, kept = 0, height = self.height + 1
        if self.depth:
            raise IllegalBinding("shapes cannot go within an attempt")
        for i in range(self.handles):
            if self.bindings[i].node != NOWHERE:
                used[self.bindings[i].shape] = 1
        for i in range(self.shapes):
            if not used[i]:
                del self.shape_by_requirements[self.shape_requirements[i]]
                continue
            requirements.append(self.shape_requirements[i])
            owners.append(self.mask_owners[i])
            self.shape_by_requirements[self.shape_requirements[i]] = kept
            for r in range(self.width):
                self.requests[kept * self.width + r] = self.requests[i * self.width + r]
            for r in range(height):
                self.unfit[kept * height + r] = 0
            self.masks[kept] = self.masks[i]
            self.preferred[kept] = self.preferred[i]
            used[i] = kept
            kept += 1
        for i in range(self.handles):
            if self.bindings[i].node != NOWHERE:
                self.bindings[i].shape = used[self.bindings[i].shape]
        self.shapes = kept
        self.shape_requirements = requirements
        self.mask_owners = owners


def _first(tuple row):
    return row[0]


def use_portable_scan(bint portable):
    """Search with the portable kernel or the fastest; for tests. Returns whether they differ."""
    global scan_kernel
    scan_kernel = nodescan_portable if portable else nodescan_fastest()
    return nodescan_fastest() != nodescan_portable
