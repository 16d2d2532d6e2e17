# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The ledger of a pool's nodes: what each could give at each level, who holds what, undo.

Owns amounts, levels, bindings and attempts; `NodeTable` adds the search. Relies on `Handles` for
ids and on `nodeorder` only to note which nodes changed. Keeps INV-B1 to INV-B5, INV-B7.

    room [node][row][column]   row 0: the evicted level, base - all that is owned
                               row of cutoff c: base - what is owned, not evicted, with a
                               cutoff of c or more
                               the last row: base - what is owned, not evicted, not preemptible
    bindings [handle]          one for each job; those of a node are a list, newest first

There is a row for each priority at which something preemptible was bound, and no other: a
priority between two sees what the higher of them sees, so classes that nobody uses cost nothing.
Amounts owned are counted exactly up to 2**63 - 1 and stop there: `room` is then `base` less
that. `base` is never negative, so no subtraction here can leave int64.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyresched._core.crowding cimport (
    Tally,
    tally_add,
    tally_copy,
    tally_free,
    tally_reserve,
)
from pyresched._core.handles cimport Handles
from pyresched._core.nodeorder cimport order_free, order_touch
from pyresched._core.resources cimport ResourceVector
from pyresched._core.values cimport Requirements
from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)
from pyresched._core.victims cimport MOST_AMOUNTS

from pyresched.errors import IllegalBinding, InputError

cdef enum:  # of `over`
    WAS_OPEN = 1
    WAS_CLOSED = 2


cdef inline int64_t less(int64_t room, int64_t base, int64_t amount) noexcept nogil:
    """*room* minus *amount*, at least *base* - INT64_MAX. Needs base >= 0 and amount >= 0."""
    # What is used, base - room, lies in 0 .. INT64_MAX.
    if amount > INT64_MAX - (base - room):
        return base - INT64_MAX
    return room - amount


cdef class NodeLedger:
    """What the nodes of one pool have, sorted by id, and what is bound to them.

    `levels` are the class priorities, ascending: they name levels, they cost nothing. Not for
    two threads at once.
    """

    def __cinit__(self, tuple levels not None, Py_ssize_t width):
        if not 0 < width < MOST_AMOUNTS:
            raise InputError(f"{width} resources; write from 1 to {MOST_AMOUNTS - 1}")
        if list(levels) != sorted(set(levels)):
            raise InputError(f"levels must ascend without repeats, got {levels}")
        self.width = self.columns = width
        self.levels = levels
        self.pool = ""
        self.guests_first = True
        self.pool_names = [None, ""]
        self.height = 1
        self.row_space = 2
        self.pitch = self.row_space * width
        self.node_ids = ()
        self.node_by_id = {}
        self.jobs = Handles()
        self.shape_requirements = []
        self.shape_by_requirements = {}
        self.scope_by_name = {}
        self.clock = 1
        self.stamps[0] = 1
        self.cutoffs = <int64_t *> malloc(sizeof(int64_t))
        self.orders = <Order **> calloc(self.row_space, sizeof(Order *))
        if self.cutoffs == NULL or self.orders == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.orders != NULL:
            self.forget_orders()
        for i in range(self.scopes):
            tally_free(&self.tallies[i])
        free(self.tallies)
        free(self.orders)
        free(self.cutoffs)
        free(self.base)
        free(self.room)
        free(self.open)
        free(self.newest)
        free(self.bindings)
        free(self.requests)
        free(self.unfit)
        free(self.scope_of)
        free(self.log)

    # --- memory -----------------------------------------------------------------------------

    cdef void forget_orders(self) noexcept nogil:
        """The next search at each row sorts anew."""
        cdef int row
        for row in range(self.row_space):
            order_free(self.orders[row])
            self.orders[row] = NULL

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
        grown = realloc(self.requests, space * self.columns * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.requests = <int64_t *> grown
        grown = realloc(self.unfit, space * self.row_space * sizeof(int64_t))
        if grown == NULL:
            raise MemoryError
        self.unfit = <int64_t *> grown
        grown = realloc(self.scope_of, space * sizeof(int32_t))
        if grown == NULL:
            raise MemoryError
        self.scope_of = <int32_t *> grown
        self.shape_space = space
        return 0

    # --- levels -----------------------------------------------------------------------------

    cdef int row_of(self, int64_t priority) noexcept nogil:
        """The row that a job of *priority* sees; INT64_MIN asks for the evicted level."""
        cdef int i
        if priority == INT64_MIN:
            return 0
        for i in range(self.height - 1):
            if self.cutoffs[i] >= priority:
                return i + 1
        return self.height

    cdef int level_of(self, int row, int64_t priority, int64_t *level) except -1:
        """The lowest class priority that sees what *row* shows to one of *priority*."""
        if row == 0:
            level[0] = INT64_MIN
            return 0
        level[0] = priority
        for each in self.levels:
            if row == 1 or self.cutoffs[row - 2] < each:
                level[0] = min(priority, <int64_t> each)
                break
        return 0

    cdef int lay_out(self, int row_space) except -1 nogil:
        """Make room for *row_space* rows."""
        cdef Py_ssize_t i, pitch = row_space * self.columns
        cdef int64_t *room = <int64_t *> malloc(max(self.count * pitch, 1) * sizeof(int64_t))
        cdef int64_t *unfit = <int64_t *> calloc(
            max(self.shape_space * row_space, 1), sizeof(int64_t))
        cdef int64_t *cutoffs = <int64_t *> malloc(row_space * sizeof(int64_t))
        cdef Order **orders = <Order **> calloc(row_space, sizeof(Order *))
        if room == NULL or unfit == NULL or cutoffs == NULL or orders == NULL:
            free(room)
            free(unfit)
            free(cutoffs)
            free(orders)
            with gil:
                raise MemoryError
        for i in range(self.count):
            memcpy(room + i * pitch, self.room + i * self.pitch,
                   (self.height + 1) * self.columns * sizeof(int64_t))
        memcpy(cutoffs, self.cutoffs, (self.height - 1) * sizeof(int64_t))
        memcpy(orders, self.orders, (self.height + 1) * sizeof(Order *))
        for i in range(self.height + 1):
            if orders[i] != NULL:
                orders[i].pitch = pitch
        free(self.room)
        free(self.unfit)
        free(self.cutoffs)
        free(self.orders)
        self.room = room
        self.unfit = unfit
        self.cutoffs = cutoffs
        self.orders = orders
        self.row_space = row_space
        self.pitch = pitch
        return 0

    cdef int use_level(self, int64_t priority) except -1 nogil:
        """See to it that there is a row whose cutoff is *priority*."""
        cdef int row = self.row_of(priority), i
        cdef Py_ssize_t node
        cdef int64_t *cells
        if row < self.height and self.cutoffs[row - 1] == priority:
            return 0
        if self.height + 1 == self.row_space:
            self.lay_out(self.row_space + max(self.row_space // 2, 1))
        # Until something is bound there, it sees what the row above it sees.
        for node in range(self.count):
            cells = self.room + node * self.pitch
            i = self.height
            while i >= row:
                memcpy(cells + (i + 1) * self.columns, cells + i * self.columns,
                       self.columns * sizeof(int64_t))
                i -= 1
        i = self.height
        while i >= row:
            self.orders[i + 1] = self.orders[i]
            if i < self.height:
                self.cutoffs[i] = self.cutoffs[i - 1]
            i -= 1
        self.orders[row] = NULL
        self.cutoffs[row - 1] = priority
        self.height += 1
        # What did not fit is remembered by row.
        memset(self.unfit, 0, self.shape_space * self.row_space * sizeof(int64_t))
        return 0

    cdef int drop_levels(self) except -1:
        """Drop the rows whose cutoff nothing bound has any more. Not within an attempt."""
        cdef Py_ssize_t i, node
        cdef int row, to
        cdef int64_t *cells
        cdef set used = set()
        for i in range(self.jobs.count):
            if self.bindings[i].node != NOWHERE and self.bindings[i].preemptible:
                used.add(cutoff(&self.bindings[i]))
        if len(used) == self.height - 1:
            return 0
        self.forget_orders()
        to = 1
        for row in range(1, self.height + 1):
            if row < self.height and self.cutoffs[row - 1] not in used:
                continue
            for node in range(self.count if to < row else 0):
                cells = self.room + node * self.pitch
                memcpy(cells + to * self.columns, cells + row * self.columns,
                       self.columns * sizeof(int64_t))
            if row < self.height:
                self.cutoffs[to - 1] = self.cutoffs[row - 1]
            to += 1
        self.height = to - 1
        memset(self.unfit, 0, self.shape_space * self.row_space * sizeof(int64_t))
        return 0

    # --- nodes ------------------------------------------------------------------------------

    def set_nodes(self, tuple ids not None, list totals not None, bytes takes_new not None,
                  list most_jobs=None, bytes lent=None):
        """Replace the set of nodes; *ids* ascend, *takes_new* says what each is open to.

        *most_jobs* limits how many jobs hold each node at once, None: as many as there is room
        for. *lent* has a byte for each node, 1 for one of another pool: what runs of others hold
        there from now on is not for us to free. Bindings on nodes that stay are kept. Returns
        those of nodes that are gone, as (job id, node id, requirements, priority, preemptible,
        pool), sorted by job id.
        """
        cdef Py_ssize_t i, count = len(ids)
        cdef ResourceVector total
        cdef bint limited
        if self.depth:
            raise IllegalBinding("nodes cannot come or go within an attempt")
        if len(totals) != count or len(takes_new) != count or (
                most_jobs is not None and len(most_jobs) != count) or (
                lent is not None and len(lent) != count):
            raise InputError("ids, totals and takes_new must be of one length")
        if list(ids) != sorted(set(ids)):
            raise InputError("node ids must ascend without repeats")
        for total in totals:
            self.check_amounts(total)
        for most in most_jobs or ():
            _limit(most)
        limited = most_jobs is not None and most_jobs.count(None) < count
        cdef dict node_by_id = {node_id: i for i, node_id in enumerate(ids)}
        cdef list homeless = self._homeless(node_by_id)
        self._move_nodes(ids, node_by_id, self.width + limited)
        for i in range(count):
            self._set_total(i, totals[i], None if most_jobs is None else most_jobs[i])
            self.open[i] = 1 if takes_new[i] else 0
            self.lent[i] = lent is not None and lent[i]
        self.nodes_changed()
        return homeless

    cdef int nodes_changed(self) except -1:
        self.released()
        return 0

    def _homeless(self, dict node_by_id):
        """What jobs hold of nodes that are not of *node_by_id*, sorted by job id."""
        cdef Py_ssize_t i
        cdef Binding *binding
        cdef list homeless = []
        for i in range(self.jobs.count):
            binding = &self.bindings[i]
            if binding.node != NOWHERE and self.node_ids[binding.node] not in node_by_id:
                homeless.append((
                    self.jobs.job_id(<int32_t> i), self.node_ids[binding.node],
                    self.shape_requirements[binding.shape], binding.priority,
                    bool(binding.preemptible),
                    self.pool_of(binding),
                ))
        homeless.sort(key=_first)
        return homeless

    def _move_nodes(self, tuple ids, dict node_by_id, Py_ssize_t columns):
        """Make room for *ids* with *columns* amounts each: what is kept by node goes with it."""
        cdef Py_ssize_t count = len(ids), i, room = max(count, 1)
        cdef int32_t handle
        cdef Binding *binding
        cdef int64_t *base = <int64_t *> malloc(room * columns * sizeof(int64_t))
        cdef int64_t *cells = <int64_t *> malloc(
            room * self.row_space * columns * sizeof(int64_t))
        cdef int64_t *requests = <int64_t *> malloc(
            max(self.shape_space, 1) * columns * sizeof(int64_t))
        cdef uint8_t *flags = <uint8_t *> calloc(room, 5)
        cdef int32_t *newest = <int32_t *> malloc(room * sizeof(int32_t))
        if (base == NULL or cells == NULL or requests == NULL or flags == NULL
                or newest == NULL):
            free(base)
            free(cells)
            free(requests)
            free(flags)
            free(newest)
            raise MemoryError
        for i in range(count):
            was = self.node_by_id.get(ids[i])
            newest[i] = NOWHERE if was is None else self.newest[<Py_ssize_t> was]
        # Nothing from here on fails for want of memory: no scope has more nodes than before.
        for i in range(self.scopes):
            self.tallies[i].count = 0
        for handle in range(<int32_t> self.jobs.count):
            binding = &self.bindings[handle]
            if binding.node != NOWHERE:
                found = node_by_id.get(self.node_ids[binding.node])
                binding.node = NOWHERE if found is None else <int32_t> found
                if found is not None:
                    self.tally(binding.shape, binding.node, 1)
                    continue
                try:
                    self.forget(handle)
                except MemoryError:
                    pass  # a handle that holds nothing is no harm
        for i in range(self.shapes):
            requests[(i + 1) * columns - 1] = 1  # a place for a job, if these are counted
            memcpy(requests + i * columns, self.requests + i * self.columns,
                   self.width * sizeof(int64_t))
        self.forget_orders()
        free(self.base)
        free(self.room)
        free(self.requests)
        free(self.open)
        free(self.newest)
        self.base = base
        self.room = cells
        self.requests = requests
        self.columns = columns
        self.open = flags
        self.over = flags + room
        self.clipped = flags + 2 * room
        self.kind = flags + 3 * room
        self.lent = flags + 4 * room
        self.newest = newest
        self.count = count
        self.pitch = self.row_space * self.columns
        self.node_ids = ids
        self.node_by_id = node_by_id

    def _set_total(self, Py_ssize_t node, ResourceVector total, most):
        """Put what *node* has, and work out what is left of it."""
        cdef Py_ssize_t r
        cdef int64_t limit = _limit(most)
        for r in range(self.width):
            self.base[node * self.columns + r] = total.amounts[r]
        if self.columns > self.width:
            self.base[node * self.columns + self.width] = limit
        self.recount(node)

    def set_node(self, Py_ssize_t node, ResourceVector total not None, *, bint takes_new,
                 most_jobs=None):
        """Change what one node has, and whether it takes new runs.

        Raises InputError for a limit of jobs where `set_nodes` was told of none.
        """
        self._check_node(node)
        if self.depth:
            raise IllegalBinding("nodes cannot change within an attempt")
        self.check_amounts(total)
        if most_jobs is not None and self.columns == self.width:
            raise InputError("jobs are not counted here; set the nodes anew")
        self._set_total(node, total, most_jobs)
        self.open[node] = takes_new
        self.touch(node, 0, self.height)
        self.released()

    def set_kinds(self, bytes kinds not None):
        """Say which of 64 kinds each node is of: a search skips where there are none it may use."""
        cdef Py_ssize_t i
        if len(kinds) < self.count or any([kind > 63 for kind in kinds]):
            raise InputError(f"write a kind from 0 to 63 for each of {self.count} nodes")
        for i in range(self.count):
            self.kind[i] = kinds[i]
        self.forget_orders()
        self.nodes_changed()

    def _check_node(self, Py_ssize_t node):
        if not 0 <= node < self.count:
            raise IndexError(f"node {node} of {self.count}")

    cdef int check_amounts(self, ResourceVector amounts) except -1:
        """Raise InputError unless *amounts* has our width and nothing below 0."""
        cdef Py_ssize_t r
        if amounts is None:
            raise TypeError("amounts must not be None")
        if amounts.width != self.width:
            raise InputError(f"{amounts.width} amounts where there are {self.width} resources")
        for r in range(self.width):
            if amounts.amounts[r] < 0:
                raise InputError(f"amount {amounts.amounts[r]} of resource {r}; write 0 or more")
        return 0

    # --- shapes, scopes, handles ------------------------------------------------------------

    cdef int32_t new_shape(self, Requirements requirements) except -1:
        """A shape for *requirements*, which has none. Raises InputError for bad amounts."""
        cdef Py_ssize_t r
        cdef int32_t shape
        if requirements is None:
            raise TypeError("requirements must not be None")
        self.check_amounts(requirements.resources)
        self.allot_shapes(self.shapes + 1)
        shape = <int32_t> self.shapes
        self.scope_of[shape] = NOWHERE
        if requirements.scope:
            self.scope_of[shape] = self.use_scope(requirements.scope)
        self.shape_requirements.append(requirements)
        try:
            self.shape_by_requirements[requirements] = shape
        except BaseException:
            self.shape_requirements.pop()
            raise
        for r in range(self.width):
            self.requests[shape * self.columns + r] = requirements.resources.amounts[r]
        if self.columns > self.width:
            self.requests[shape * self.columns + self.width] = 1
        memset(self.unfit + shape * self.row_space, 0, self.row_space * sizeof(int64_t))
        self.shapes += 1
        return shape

    cdef int32_t use_scope(self, object name) except -1:
        """The scope *name*, whose jobs are counted by node."""
        cdef Tally *grown
        known = self.scope_by_name.get(name)
        if known is not None:
            return known
        grown = <Tally *> realloc(self.tallies, (self.scopes + 1) * sizeof(Tally))
        if grown == NULL:
            raise MemoryError
        self.tallies = grown
        memset(&grown[self.scopes], 0, sizeof(Tally))
        self.scope_by_name[name] = self.scopes
        self.scopes += 1
        return <int32_t> (self.scopes - 1)

    cdef int keep_scopes(self) except -1:
        """Forget the scopes of no shape, and number the others anew."""
        cdef list kept = [NOWHERE] * self.scopes
        cdef dict names
        cdef Py_ssize_t i, to = 0
        for i in range(self.shapes):
            if self.scope_of[i] != NOWHERE:
                kept[self.scope_of[i]] = 0
        for i in range(self.scopes):
            if kept[i] != NOWHERE:
                kept[i] = to
                to += 1
        names = {name: kept[was] for name, was in self.scope_by_name.items()
                 if kept[was] != NOWHERE}
        # From here on nothing asks for memory.
        for i in range(self.scopes):
            if kept[i] == NOWHERE:
                tally_free(&self.tallies[i])
            else:
                self.tallies[<Py_ssize_t> kept[i]] = self.tallies[i]
        self.scopes = to
        self.scope_by_name = names
        for i in range(self.shapes):
            if self.scope_of[i] != NOWHERE:
                self.scope_of[i] = kept[self.scope_of[i]]
        return 0

    cdef int tally(self, int32_t shape, Py_ssize_t node, int by) except -1 nogil:
        """*by* more of the jobs of the scope of *shape* hold *node*."""
        if self.scope_of[shape] != NOWHERE:
            tally_add(&self.tallies[self.scope_of[shape]], node, by)
        return 0

    cdef int32_t handle_of(self, str job_id) except -1:
        """The handle of a job, made if there is none. A handle by itself holds nothing."""
        cdef int32_t handle = self.jobs.find(job_id)
        if handle >= 0:
            return handle
        self.allot_handles(self.jobs.count + 1)
        handle = self.jobs.add(job_id)
        self.bindings[handle].node = NOWHERE
        self.bindings[handle].newer = NOWHERE
        self.bindings[handle].evicted = 0
        return handle

    cdef int forget(self, int32_t handle) except -1:
        """Give an unbound handle back."""
        assert self.bindings[handle].node == NOWHERE and not self.depth
        return self.jobs.forget(handle)

    cdef int compact(self) except -1:
        """Number the handles anew, without those that stand for nothing. Not in an attempt."""
        cdef Handles fresh = Handles()
        cdef list ids = self.jobs.ids()
        cdef list renumbered = []
        cdef Py_ssize_t i
        cdef int32_t to
        cdef Binding *binding
        cdef Binding *kept
        for i in range(len(ids)):
            renumbered.append(NOWHERE if ids[i] is None else fresh.add(ids[i]))
        kept = <Binding *> malloc(max(fresh.count, 64) * sizeof(Binding))
        if kept == NULL:
            raise MemoryError
        for i in range(len(ids)):
            to = renumbered[i]
            if to == NOWHERE:
                continue
            kept[to] = self.bindings[i]
            binding = &kept[to]
            if binding.node != NOWHERE:
                if binding.newer != NOWHERE:
                    binding.newer = renumbered[binding.newer]
                else:
                    self.newest[binding.node] = to
                if binding.older != NOWHERE:
                    binding.older = renumbered[binding.older]
        free(self.bindings)
        self.bindings = kept
        self.handle_space = max(fresh.count, 64)
        self.jobs = fresh
        return 0

    # --- what did not fit -------------------------------------------------------------------
    # A shape that found no node at a row finds none until room is given back. Each state is
    # stamped; an attempt starts a new stamp above its parent's, and its end brings that back.

    cdef bint known_unfit(self, int32_t shape, int row) noexcept nogil:
        cdef int i
        cdef int64_t stamp = self.unfit[shape * self.row_space + row]
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
                self.unfit[shape * self.row_space + i] = self.stamps[self.depth]

    cdef void released(self) noexcept nogil:
        """Room was given back: forget what did not fit."""
        self.floor = self.depth
        if self.depth <= MOST_NESTED:
            self.clock += 1
            self.stamps[self.depth] = self.clock

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

    # --- amounts ----------------------------------------------------------------------------

    cdef bint fits(self, Py_ssize_t node, int32_t shape, int row) noexcept nogil:
        """Whether there is room at *row*; asks nothing else."""
        cdef Py_ssize_t r
        cdef const int64_t *room = self.cells(node, row)
        cdef const int64_t *request = self.request_of(shape)
        for r in range(self.columns):
            if request[r] > room[r]:
                return False
        return True

    cdef int last_row(self, const Binding *binding) noexcept nogil:
        """The last row at which a binding holds its request while it is not evicted."""
        return self.row_of(cutoff(binding)) if binding.preemptible else self.height

    cdef inline void touch(self, Py_ssize_t node, int low, int high) noexcept nogil:
        cdef int row
        for row in range(low, high + 1):
            if self.orders[row] != NULL:
                order_touch(self.orders[row], node)

    cdef void take(self, Py_ssize_t node, const int64_t *request, int low,
                   int high) noexcept nogil:
        """Subtract *request* from the rows *low* to *high*."""
        cdef Py_ssize_t r
        cdef const int64_t *base = self.base + node * self.columns
        cdef int64_t *room = self.cells(node, low)
        cdef int64_t *end = self.cells(node, high + 1)
        while room < end:
            for r in range(self.columns):
                if request[r] > INT64_MAX - (base[r] - room[r]):
                    self.clipped[node] = 1
                room[r] = less(room[r], base[r], request[r])
            room += self.columns
        self.touch(node, low, high)

    cdef void give(self, Py_ssize_t node, const int64_t *request, int low,
                   int high) noexcept nogil:
        """Add *request* back to the rows *low* to *high*. The binding is changed before."""
        cdef Py_ssize_t r
        cdef int64_t *room
        cdef int64_t *end
        if low > high:
            return
        self.released()
        if self.clipped[node]:
            self.recount(node)
            return
        room = self.cells(node, low)
        end = self.cells(node, high + 1)
        while room < end:
            for r in range(self.columns):
                room[r] += request[r]
            room += self.columns
        self.touch(node, low, high)

    cdef void recount(self, Py_ssize_t node) noexcept nogil:
        """Work out what *node* has left from what is bound to it."""
        cdef int row
        cdef Binding *binding
        cdef int32_t handle = self.newest[node]
        self.clipped[node] = 0
        for row in range(self.height + 1):
            memcpy(self.cells(node, row), self.base + node * self.columns,
                   self.columns * sizeof(int64_t))
        while handle != NOWHERE:
            binding = &self.bindings[handle]
            self.take(node, self.request_of(binding.shape), 0,
                      0 if binding.evicted else self.last_row(binding))
            handle = binding.older
        self.touch(node, 0, self.height)

    # --- bindings ---------------------------------------------------------------------------

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
        """Make room for two more steps: a job may leave one node and take another."""
        cdef Py_ssize_t space
        cdef Undo *grown
        if self.log_length + 1 < self.log_space:
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

    cdef int reserve_bind(self, int32_t shape, int64_t priority, bint preemptible,
                          uint16_t pool) except -1 nogil:
        """See to all that may keep a job from being bound so, for want of memory too."""
        self.reserve_log()
        if preemptible:
            if priority <= INT64_MIN + 1:
                with gil:
                    raise InputError(f"priority {priority} is none that a job may have")
            self.use_level(INT64_MIN + 1 if counts_below(pool) else priority)
        if self.scope_of[shape] != NOWHERE:
            tally_reserve(&self.tallies[self.scope_of[shape]])
        return 0

    cdef int bind_handle(self, int32_t handle, int32_t shape, Py_ssize_t node, int64_t priority,
                         bint preemptible, uint16_t pool=0) except -1 nogil:
        """Bind a job that holds nothing, or one that was evicted from this very node.

        *pool* is that of its run, of one that returns as it was. Asks nothing about room:
        negative amounts are legal in between.
        """
        cdef Binding *binding = &self.bindings[handle]
        cdef bint back = binding.node != NOWHERE
        if back and (binding.node != node or not binding.evicted or binding.shape != shape):
            with gil:
                self._refuse_bind(handle, node)
        self.reserve_bind(shape, priority, preemptible, binding.pool if back else pool)
        if not back:
            self.tally(shape, node, 1)
        self.record(RETURN if back else BIND, handle)
        binding.priority = priority
        binding.shape = shape
        binding.evicted = 0
        binding.preemptible = preemptible
        if not back:
            binding.pool = pool
            binding.node = <int32_t> node
            self.link(handle)
        self.take(node, self.request_of(shape), 1 if back else 0, self.last_row(binding))
        return 0

    cdef int pool_index(self, str pool) except -1:
        """The place of a run's *pool* in `pool_names`, and how it counts there."""
        cdef int index
        if pool == self.pool or (pool and not self.pool):
            return OWN_POOL
        if pool not in self.pool_names:
            if len(self.pool_names) >= AT_ITS_LEVEL:
                raise InputError(f"pool {pool!r}: runs of more pools than can be told apart")
            self.pool_names.append(pool)
        index = self.pool_names.index(pool)
        return index if index == NO_POOL or self.guests_first else index | AT_ITS_LEVEL

    cdef str pool_of(self, const Binding *binding):
        """The pool of the run by which a job holds its node."""
        if binding.pool == OWN_POOL:
            return self.pool
        return self.pool_names[binding.pool & ~AT_ITS_LEVEL]

    cdef int evict_handle(self, int32_t handle) except -1 nogil:
        """Give a job's room to the levels; the evicted level still counts it."""
        cdef Binding *binding = &self.bindings[handle]
        if binding.node == NOWHERE or binding.evicted:
            with gil:
                state = "is evicted already" if binding.node != NOWHERE else "holds no node"
                raise IllegalBinding(
                    f"job {self.jobs.job_id(handle)!r} cannot be evicted: it {state}")
        self.reserve_log()
        self.record(EVICT, handle)
        binding.evicted = 1
        self.give(binding.node, self.request_of(binding.shape), 1, self.last_row(binding))
        return 0

    cdef int unbind_handle(self, int32_t handle) except -1 nogil:
        """Give back all that a job holds. One that holds nothing stays as it is."""
        cdef Binding *binding = &self.bindings[handle]
        cdef Py_ssize_t node = binding.node
        cdef int last = 0 if binding.evicted else self.last_row(binding)
        if node == NOWHERE:
            return 0
        self.reserve_log()
        self.record(UNBIND, handle)
        self.unlink(handle)
        self.tally(binding.shape, node, -1)
        binding.node = NOWHERE
        binding.evicted = 0
        self.give(node, self.request_of(binding.shape), 0, last)
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
            f"job {self.jobs.job_id(handle)!r} cannot be bound to "
            f"{self.node_ids[node]!r}: {state}"
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
                self.tally(after.shape, after.node, -1)
            binding[0] = undo.before
            request = self.request_of(after.shape if undo.step == BIND else undo.before.shape)
            if undo.step == BIND:
                self.give(after.node, request, 0, self.last_row(&after))
            elif undo.step == RETURN:
                self.give(after.node, request, 1, self.last_row(&after))
            elif undo.step == EVICT:
                self.take(binding.node, request, 1, self.last_row(binding))
            else:
                self.relink(undo.handle)
                self.tally(binding.shape, binding.node, 1)
                self.take(binding.node, request, 0,
                          0 if binding.evicted else self.last_row(binding))

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
        with nogil:
            self.undo_attempt(mark)

    def _check_mark(self, Py_ssize_t mark):
        if not 0 <= mark < self.log_length or self.log[mark].step != BEGIN:
            raise IllegalBinding(f"no open attempt began at {mark}")

    # --- copies -----------------------------------------------------------------------------

    cdef int copy_ledger(self, NodeLedger copy) except -1:
        """Make *copy*, new and empty, equal to this outside every attempt."""
        cdef Py_ssize_t nodes = max(self.count, 1), rows = self.height + 1, i
        cdef Py_ssize_t pitch = rows * self.columns
        cdef size_t cell = sizeof(int64_t)
        free(copy.cutoffs)
        free(copy.orders)
        copy.cutoffs = <int64_t *> malloc(rows * cell)
        copy.orders = <Order **> calloc(rows, sizeof(Order *))
        copy.base = <int64_t *> malloc(nodes * self.columns * cell)
        copy.room = <int64_t *> malloc(nodes * pitch * cell)
        copy.open = <uint8_t *> malloc(nodes * 5)
        copy.newest = <int32_t *> malloc(nodes * sizeof(int32_t))
        copy.tallies = <Tally *> calloc(max(self.scopes, 1), sizeof(Tally))
        if (copy.cutoffs == NULL or copy.orders == NULL or copy.base == NULL
                or copy.room == NULL or copy.open == NULL or copy.newest == NULL
                or copy.tallies == NULL):
            free(copy.orders)
            copy.orders = NULL
            raise MemoryError
        copy.row_space = <int> rows
        copy.height = self.height
        copy.columns = self.columns
        copy.pitch = pitch
        copy.count = self.count
        memcpy(copy.cutoffs, self.cutoffs, (self.height - 1) * cell)
        if self.count:
            memcpy(copy.base, self.base, self.count * self.columns * cell)
            memcpy(copy.open, self.open, nodes * 5)
            memcpy(copy.newest, self.newest, self.count * sizeof(int32_t))
        for i in range(self.count):
            memcpy(copy.room + i * pitch, self.room + i * self.pitch, pitch * cell)
        copy.over = copy.open + nodes
        copy.clipped = copy.over + nodes
        copy.kind = copy.clipped + nodes
        copy.lent = copy.kind + nodes
        copy.pool = self.pool
        copy.guests_first = self.guests_first
        copy.pool_names = self.pool_names[:]
        copy.node_ids = self.node_ids
        copy.node_by_id = self.node_by_id
        copy.jobs = self.jobs.twin()
        copy.allot_handles(self.jobs.count)
        if self.jobs.count:
            memcpy(copy.bindings, self.bindings, self.jobs.count * sizeof(Binding))
        copy.allot_shapes(self.shapes)
        if self.shapes:
            memcpy(copy.requests, self.requests, self.shapes * self.columns * cell)
            memset(copy.unfit, 0, self.shapes * rows * cell)
            memcpy(copy.scope_of, self.scope_of, self.shapes * sizeof(int32_t))
        copy.shapes = self.shapes
        copy.shape_requirements = self.shape_requirements[:]
        copy.shape_by_requirements = self.shape_by_requirements.copy()
        copy.scope_by_name = self.scope_by_name.copy()
        copy.scopes = self.scopes
        for i in range(self.scopes):
            tally_copy(&self.tallies[i], &copy.tallies[i])
        return 0


cdef int64_t _limit(object most_jobs) except -1:
    """How many jobs a node may hold. Raises InputError for a number below 0."""
    if most_jobs is None:
        return INT64_MAX
    if most_jobs < 0:
        raise InputError(f"{most_jobs} jobs at most; write 0 or more")
    return most_jobs


def _first(tuple row):
    return row[0]
