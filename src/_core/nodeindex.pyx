# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The nodes of one pool to search: the best node, places for many, victims, why not.

Owns which nodes a shape may use and the order to look in at each row; the ledger below it owns
amounts and bindings. Relies on a matcher (a callable) for which nodes a request may use at all.
Keeps INV-B8 to INV-B10.

Order at a row: nodes not to be avoided, then those to be avoided by rank; the tiers of the
matcher; what the spreads of the request want most; least left of the first resource, then of
the next; node id.
"""

cimport cython
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pyresched._core.crowding cimport Crowding
from pyresched._core.nodeledger cimport NOWHERE, OWN_POOL, Binding, NodeLedger, cutoff
from pyresched._core.nodeorder cimport (
    Order,
    order_fault,
    order_first,
    order_new,
    order_refresh,
)
from pyresched._core.resources cimport (
    ResourceVector,
    saturating_add,
    saturating_mul,
    saturating_sub,
    vector_of,
)
from pyresched._core.values cimport Requirements
from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)
from pyresched._core.victims cimport MOST_AMOUNTS, fewest

from pyresched.errors import IllegalBinding, InputError, UnknownNode

EVICTED = INT64_MIN
CROSS_POOL = INT64_MIN + 1

cdef enum:
    # Requirements that nothing bound has any more go when there are this many, and more than
    # twice the jobs.
    MANY_SHAPES = 1024
    MARKED = -2


@cython.final
cdef class NodeTable(NodeLedger):
    """The nodes of one pool, sorted by id, with what is bound to them.

    `matcher` maps `Requirements` to (tiers, dynamic): `tiers` has a byte for each node, 0 where
    the request may not go, else from 1, the best tier, up; `dynamic` is None or what it asks
    about the nodes that others of its scope hold. Not for two threads at once; a copy by `fork`
    shares nothing that either changes.
    """

    def __cinit__(self, tuple levels not None, Py_ssize_t width):
        self.owners = []
        self.crowdings = []

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(min(self.shapes, self.mask_space)):
            free(self.masks[i].kinds)
        free(self.masks)

    # --- shapes -----------------------------------------------------------------------------

    cdef int32_t shape_of(self, Requirements requirements) except -1:
        """The shape of *requirements*, with its mask ready. Raises InputError for bad amounts."""
        cdef int32_t shape
        cdef Py_ssize_t space
        cdef Mask *grown
        known = self.shape_by_requirements.get(requirements)
        if known is not None:
            shape = known
        else:
            if self.shapes == self.mask_space:
                space = max(2 * self.mask_space, 16)
                grown = <Mask *> realloc(self.masks, space * sizeof(Mask))
                if grown == NULL:
                    raise MemoryError
                memset(grown + self.mask_space, 0, (space - self.mask_space) * sizeof(Mask))
                self.masks = grown
                self.mask_space = space
            # One that was refused may have left a place behind.
            while len(self.owners) <= self.shapes:
                self.owners.append(None)
            while len(self.crowdings) <= self.shapes:
                self.crowdings.append(None)
            shape = self.new_shape(requirements)
        if self.masks[shape].tiers == NULL:
            self.load_mask(shape)
        return shape

    cdef int load_mask(self, int32_t shape) except -1:
        """Ask the matcher about *shape*."""
        cdef Mask mask
        cdef Py_ssize_t i
        cdef bytes tiers
        dynamic = None
        crowding = None
        if self.matcher is None:
            tiers = b"\1" * self.count
        else:
            tiers, dynamic = self.matcher(self.shape_requirements[shape])
        if len(tiers) < self.count:
            raise ValueError("a mask has a byte for each node")
        if dynamic is not None:
            crowding = Crowding(dynamic, self.count)
            if self.scope_of[shape] == NOWHERE:
                # Of no scope that has a name: the jobs that ask for the same.
                self.scope_of[shape] = self.use_scope(self.shape_requirements[shape])
        mask.tiers = <const uint8_t *> <char *> tiers
        mask.crowding = NULL if crowding is None else <void *> <object> crowding
        mask.tier_count = 0
        for i in range(self.count):
            mask.tier_count = max(mask.tier_count, mask.tiers[i])
        mask.kinds = <uint64_t *> calloc(mask.tier_count + 1, sizeof(uint64_t))
        if mask.kinds == NULL:
            raise MemoryError
        for i in range(self.count):
            mask.kinds[mask.tiers[i]] |= <uint64_t> 1 << self.kind[i]
        self.owners[shape] = tiers
        self.crowdings[shape] = crowding
        free(self.masks[shape].kinds)
        self.masks[shape] = mask
        return 0

    cdef int forget_mask(self, int32_t shape) except -1:
        self.masks[shape].tiers = NULL
        self.masks[shape].crowding = NULL
        self.owners[shape] = None
        self.crowdings[shape] = None
        return 0

    cdef int nodes_changed(self) except -1:
        cdef int32_t shape
        for shape in range(<int32_t> self.shapes):
            self.forget_mask(shape)
        self.released()
        return 0

    def forget_masks(self):
        """Ask the matcher anew: labels or taints changed."""
        self.nodes_changed()

    def drop_unused_shapes(self):
        """Forget requirements that nothing bound has. Not within an attempt."""
        cdef list kept = [0] * self.shapes
        cdef dict names
        cdef Py_ssize_t i, to = 0
        if self.depth:
            raise IllegalBinding("shapes cannot go within an attempt")
        for i in range(self.jobs.count):
            if self.bindings[i].node != NOWHERE:
                kept[self.bindings[i].shape] = 1
        for i in range(self.shapes):
            to += <Py_ssize_t> kept[i]
            kept[i] = to - 1 if kept[i] else NOWHERE
        names = {self.shape_requirements[i]: kept[i] for i in range(self.shapes)
                 if kept[i] != NOWHERE}
        # From here on nothing asks for memory.
        self.shape_by_requirements = names
        to = 0
        for i in range(self.shapes):
            if kept[i] == NOWHERE:
                free(self.masks[i].kinds)
                continue
            self.shape_requirements[to] = self.shape_requirements[i]
            self.owners[to] = self.owners[i]
            self.crowdings[to] = self.crowdings[i]
            self.scope_of[to] = self.scope_of[i]
            self.masks[to] = self.masks[i]
            memcpy(self.requests + to * self.columns, self.requests + i * self.columns,
                   self.columns * sizeof(int64_t))
            to += 1
        for i in range(self.jobs.count):
            if self.bindings[i].node != NOWHERE:
                self.bindings[i].shape = kept[self.bindings[i].shape]
        memset(self.masks + to, 0, (self.mask_space - to) * sizeof(Mask))
        memset(self.unfit, 0, self.shape_space * self.row_space * sizeof(int64_t))
        del self.shape_requirements[to:]
        del self.owners[to:]
        del self.crowdings[to:]
        self.shapes = to
        self.keep_scopes()

    cdef Py_ssize_t node_index(self, str node_id) except -1:
        found = self.node_by_id.get(node_id)
        if found is None:
            raise UnknownNode(node_id)
        return found

    # --- search -----------------------------------------------------------------------------

    cdef const Order *order_at(self, int row) except NULL nogil:
        """The open nodes in best-fit order at *row*, as they are now."""
        if self.orders[row] == NULL:
            self.orders[row] = order_new(
                self.columns, self.width, self.count, self.pitch, self.open, self.kind)
        order_refresh(self.orders[row], self.room + row * self.columns)
        return self.orders[row]

    cdef bint fuller(self, int row, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        """Whether *one* comes before *other* in best-fit order."""
        cdef Py_ssize_t r
        cdef const int64_t *a = self.cells(one, row)
        cdef const int64_t *b = self.cells(other, row)
        for r in range(self.width):
            if a[r] != b[r]:
                return a[r] < b[r]
        return one < other

    cdef Py_ssize_t best_at(self, int32_t shape, int row, const int32_t *avoid,
                            const uint8_t *ranks, Py_ssize_t avoided) except -2 nogil:
        """The best node at *row*, or NOWHERE."""
        cdef const int64_t *request = self.request_of(shape)
        cdef const Mask *mask = &self.masks[shape]
        cdef const Order *order
        cdef Py_ssize_t i, found = NOWHERE
        cdef int tier
        if mask.crowding != NULL:
            return self.best_of(shape, row, NULL, self.count, avoid, ranks, avoided)
        order = self.order_at(row)
        # Avoided nodes are closed while the others are searched: bit 1 keeps what was open.
        for i in range(avoided):
            self.open[avoid[i]] = self.open[avoid[i]] << 1
        for tier in range(1, mask.tier_count + 1):
            if mask.kinds[tier]:
                found = order_first(order, request, mask.kinds[tier], mask.tiers, <uint8_t> tier)
                if found != NOWHERE:
                    break
        for i in range(avoided):
            self.open[avoid[i]] = self.open[avoid[i]] >> 1
        if found == NOWHERE and avoided:
            found = self.best_of(shape, row, avoid, avoided, avoid, ranks, avoided)
        return found

    cdef Py_ssize_t best_of(self, int32_t shape, int row, const int32_t *only, Py_ssize_t given,
                            const int32_t *avoid, const uint8_t *ranks,
                            Py_ssize_t avoided) noexcept nogil:
        """The same among the *given* nodes *only*, or all if that is NULL, one by one."""
        cdef const uint8_t *tiers = self.masks[shape].tiers
        cdef Py_ssize_t i, k, node, best = NOWHERE
        cdef int rank, best_rank = 0
        cdef int64_t score, best_score = 0
        cdef void *crowding = self.masks[shape].crowding
        if crowding != NULL:
            (<Crowding> crowding).look(&self.tallies[self.scope_of[shape]])
        for i in range(given):
            node = i if only == NULL else only[i]
            if not (tiers[node] and self.open[node] and self.fits(node, shape, row)):
                continue
            score = 0
            if crowding != NULL:
                if (<Crowding> crowding).taken(node) >= 0:
                    continue
                score = (<Crowding> crowding).score(node)
            rank = 0
            for k in range(avoided):
                if avoid[k] == node:
                    rank = ranks[k]
            rank = rank << 8 | tiers[node]
            if best == NOWHERE or rank < best_rank or (rank == best_rank and (
                    score > best_score
                    or (score == best_score and self.fuller(row, node, best)))):
                best = node
                best_rank = rank
                best_score = score
        return best

    cdef Py_ssize_t find(self, int32_t shape, int row, int *found) except -2 nogil:
        """The best node for *shape* at the lowest row up to *row* that has one, or NOWHERE."""
        return self.find_avoiding(shape, row, NULL, NULL, 0, found)

    cdef Py_ssize_t find_avoiding(self, int32_t shape, int row, const int32_t *avoid,
                                  const uint8_t *ranks, Py_ssize_t avoided,
                                  int *found) except -2 nogil:
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
                               Py_ssize_t avoided, int *found) except -2 nogil:
        """The same among the nodes *only*."""
        cdef Py_ssize_t node
        cdef int i
        for i in range(row + 1):
            node = self.best_of(shape, i, only, given, avoid, ranks, avoided)
            if node != NOWHERE:
                found[0] = i
                return node
        return NOWHERE

    def find_for(self, Requirements requirements not None, int64_t priority, list avoid=None,
                 list only=None):
        """(node id, level) of the best node for a job of *priority*, or None.

        *avoid* holds (node index, rank) with distinct nodes and ranks from 1 to 100; *only*
        holds node indices.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef Py_ssize_t node
        cdef int row = self.row_of(priority)
        cdef int found = 0
        cdef int64_t level = 0
        cdef Avoided some
        cdef Py_ssize_t i, given = 0 if only is None else len(only)
        cdef int32_t *cells = NULL
        if avoid is None and only is None:
            with nogil:
                node = self.find(shape, row, &found)
        else:
            some = Avoided(self, avoid)
            cells = <int32_t *> malloc(max(given, 1) * sizeof(int32_t))
            if cells == NULL:
                raise MemoryError
            try:
                for i in range(given):
                    self._check_node(only[i])
                    cells[i] = only[i]
                if only is None:
                    node = self.find_avoiding(
                        shape, row, some.nodes, some.ranks, some.count, &found)
                else:
                    node = self.find_among(
                        shape, row, cells, given, some.nodes, some.ranks, some.count, &found)
            finally:
                free(cells)
        if node == NOWHERE:
            return None
        self.level_of(found, priority, &level)
        return self.node_ids[node], level

    # --- many at once -----------------------------------------------------------------------

    cdef int place_handles(self, const int32_t *shapes, const int32_t *handles, Py_ssize_t count,
                           int64_t priority, bint preemptible,
                           int32_t *nodes) except -1 nogil:
        """Find and bind each in turn; the node of each, or NOWHERE, into *nodes*."""
        cdef Py_ssize_t i, node = NOWHERE
        cdef int found = 0
        for i in range(count):
            # A node that took one like it is still the first that fits: it only came nearer.
            if not (node != NOWHERE and i and shapes[i] == shapes[i - 1]
                    and self.masks[shapes[i]].crowding == NULL
                    and self.fits(node, shapes[i], found)):
                node = self.find(shapes[i], self.row_of(priority), &found)
            nodes[i] = <int32_t> node
            if node != NOWHERE:
                self.bind_handle(handles[i], shapes[i], node, priority, preemptible)
        return 0

    def place_each(self, list job_ids not None, list requirements not None, int64_t priority,
                   bint preemptible):
        """Find a node for each job in turn and bind it there; [node id or None].

        As `find_for` and `bind` one by one. The job of index i has the i-th requirements. Raises
        IllegalBinding before anything is bound when a job holds a node or stands twice.
        """
        cdef Py_ssize_t i, count = len(job_ids)
        cdef int32_t *cells
        cdef Requirements last = None
        cdef int32_t shape = 0
        cdef list placed = [None] * count  # before anything is bound
        if len(requirements) != count:
            raise InputError(f"{len(requirements)} requirements for {count} jobs")
        cells = <int32_t *> malloc(max(3 * count, 1) * sizeof(int32_t))
        if cells == NULL:
            raise MemoryError
        try:
            for i in range(count):
                if last is None or requirements[i] is not last:
                    last = <Requirements?> requirements[i]
                    shape = self.shape_of(last)
                cells[i] = shape
                cells[count + i] = self.handle_of(job_ids[i])
                if self.bindings[cells[count + i]].node != NOWHERE:
                    self._refuse_bind(cells[count + i], 0)
            self.refuse_repeats(cells + count, count)
            with nogil:
                self.place_handles(cells, cells + count, count, priority, preemptible,
                                   cells + 2 * count)
            for i in range(count):
                if cells[2 * count + i] != NOWHERE:
                    placed[i] = self.node_ids[cells[2 * count + i]]
            return placed
        finally:
            free(cells)

    cdef int refuse_repeats(self, const int32_t *handles, Py_ssize_t count) except -1:
        """Raise IllegalBinding if one of *handles*, which hold nothing, stands twice."""
        cdef Py_ssize_t i, seen = 0
        # Who holds nothing is no neighbour of anybody, so that a mark may stand there for now.
        while seen < count and self.bindings[handles[seen]].newer != MARKED:
            self.bindings[handles[seen]].newer = MARKED
            seen += 1
        for i in range(seen):
            self.bindings[handles[i]].newer = NOWHERE
        if seen < count:
            raise IllegalBinding(f"job {self.jobs.job_id(handles[seen])!r} stands twice")
        return 0

    def spread_over(self, Requirements requirements not None, Py_ssize_t count,
                    int64_t priority, list avoid=None):
        """[(node id, how many)] for up to *count* alike jobs, as `find_for` one by one would say.

        A node that takes one takes all that fit there: it only comes earlier in the order.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef const int64_t *request = self.request_of(shape)
        cdef Avoided some = Avoided(self, avoid)
        cdef Py_ssize_t r, node
        cdef int row = self.row_of(priority), at = 0
        cdef int64_t copies
        cdef int64_t *cells
        cdef int64_t taken[MOST_AMOUNTS]
        cdef list placed = []
        cdef dict before = {}
        cdef bint crowds = self.masks[shape].crowding != NULL
        try:
            while count > 0 and at <= row:
                node = self.best_at(shape, at, some.nodes, some.ranks, some.count)
                if node == NOWHERE:
                    at += 1
                    continue
                cells = self.cells(node, at)
                copies = 1 if crowds else count
                for r in range(self.columns):
                    if request[r] > 0:
                        copies = min(copies, cells[r] // request[r])
                for r in range(self.columns):
                    taken[r] = saturating_mul(request[r], copies)
                if node not in before:
                    before[node] = (self._saved(node), bool(self.clipped[node]))
                placed.append((self.node_ids[node], copies))
                if crowds:
                    try:
                        self.tally(shape, node, 1)
                    except MemoryError:
                        placed.pop()
                        raise
                self.take(node, taken, 0, row)
                count -= copies
        finally:
            for node, (saved, clipped) in before.items():
                memcpy(self.cells(node, 0), <char *> <bytes> saved, len(<bytes> saved))
                self.clipped[node] = clipped
                self.touch(node, 0, self.height)
            if crowds:
                for node_id, _ in placed:
                    self.tally(shape, self.node_by_id[node_id], -1)
        return placed

    def _saved(self, Py_ssize_t node):
        """What *node* has left at every row, as bytes."""
        cdef Py_ssize_t size = (self.height + 1) * self.columns * sizeof(int64_t)
        return (<char *> self.cells(node, 0))[:size]

    # --- bindings ---------------------------------------------------------------------------

    cdef int hold_node(self, str job_id, Requirements requirements, Py_ssize_t node,
                       int64_t priority, bint preemptible, str pool) except -1:
        """Make a job hold exactly this, whatever it held before.

        What runs of others hold of a lent node counts at every level: it is not for us to free.
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef int home = self.pool_index(pool)
        cdef int32_t handle = self.handle_of(job_id)
        cdef Binding *binding = &self.bindings[handle]
        preemptible = preemptible and (home == OWN_POOL or not self.lent[node])
        if (binding.node == node and binding.shape == shape and binding.priority == priority
                and binding.preemptible == preemptible and binding.pool == home
                and not binding.evicted):
            return 0
        # Or it would be left without what it held.
        self.reserve_bind(shape, priority, preemptible, <uint16_t> home)
        self.unbind_handle(handle)
        return self.bind_handle(handle, shape, node, priority, preemptible, <uint16_t> home)

    cdef int let_go(self, str job_id) except -1:
        """Unbind a job and forget its handle."""
        cdef int32_t handle = self.jobs.find(job_id)
        if handle >= 0:
            self.unbind_handle(handle)
            self.forget(handle)
        return 0

    def bind(self, str job_id not None, Requirements requirements not None, str node_id not None,
             int64_t priority, bint preemptible):
        """Bind a job. Raises UnknownNode, IllegalBinding, InputError."""
        cdef Py_ssize_t node = self.node_index(node_id)
        cdef int32_t shape = self.shape_of(requirements)
        self.bind_handle(self.handle_of(job_id), shape, node, priority, preemptible)

    def hold(self, str job_id not None, Requirements requirements not None,
             str node_id not None, int64_t priority, bint preemptible, str pool=""):
        """Make a job hold exactly this, whatever it held before; *pool* is that of its run."""
        self.hold_node(job_id, requirements, self.node_index(node_id), priority, preemptible, pool)

    def hold_all(self, NodeTable other not None):
        """Hold besides what jobs hold in *other*, whose nodes are among these, but not its jobs."""
        cdef Py_ssize_t i
        cdef const Binding *binding
        cdef int32_t handle, shape
        cdef Py_ssize_t node
        cdef int home
        cdef bint preemptible
        cdef list shapes = [self.shape_of(each) for each in other.shape_requirements]
        cdef list nodes = [self.node_index(node_id) for node_id in other.node_ids]
        for i in range(other.jobs.count):
            binding = &other.bindings[i]
            if binding.node == NOWHERE:
                continue
            shape = shapes[binding.shape]
            node = nodes[binding.node]
            home = self.pool_index(other.pool_of(binding))
            preemptible = binding.preemptible and (home == OWN_POOL or not self.lent[node])
            handle = self.handle_of(other.jobs.job_id(<int32_t> i))
            self.bind_handle(handle, shape, node, binding.priority, preemptible, <uint16_t> home)

    def held_by_others(self):
        """What runs of other pools hold of lent nodes, together, saturating."""
        cdef int64_t amounts[MOST_AMOUNTS]
        cdef const int64_t *request
        cdef const Binding *binding
        cdef Py_ssize_t i, r
        memset(amounts, 0, sizeof(amounts))
        for i in range(self.jobs.count):
            binding = &self.bindings[i]
            if binding.node != NOWHERE and self.lent[binding.node] and binding.pool != OWN_POOL:
                request = self.request_of(binding.shape)
                for r in range(self.width):
                    amounts[r] = saturating_add(amounts[r], request[r])
        return vector_of(amounts, self.width)

    def evict(self, str job_id not None):
        """Evict a bound job. Raises IllegalBinding."""
        cdef int32_t handle = self.jobs.find(job_id)
        if handle < 0:
            raise IllegalBinding(f"job {job_id!r} cannot be evicted: it holds no node")
        self.evict_handle(handle)

    def unbind(self, str job_id not None):
        """Unbind a job; one that holds nothing stays as it is."""
        cdef int32_t handle = self.jobs.find(job_id)
        if handle >= 0:
            self.unbind_handle(handle)

    def drop(self, str job_id not None):
        """Unbind a job and forget its handle."""
        self.let_go(job_id)

    # --- victims ----------------------------------------------------------------------------

    cdef Py_ssize_t victims_of(self, int32_t shape, int64_t priority, const int32_t *candidates,
                               Py_ssize_t given, int32_t *victims, Py_ssize_t *count) except -2:
        """The node whose loss lies latest in *candidates*, and the fewest of them that suffice.

        Each candidate stands once. *victims* has room for *given*. NOWHERE if no node would do.
        Those of the scope of *shape* count for its distinct constraints, victims or not.
        """
        cdef Py_ssize_t i, r, node = NOWHERE, first = given, width = self.columns
        cdef Binding *binding
        cdef const int64_t *request = self.request_of(shape)
        cdef const int64_t *amount
        cdef const int64_t *had
        cdef int64_t *freed = <int64_t *> calloc(max(self.count * width, 1), sizeof(int64_t))
        cdef int64_t *cell
        cdef bint enough = False
        cdef Crowding crowding = self.crowdings[shape]
        if freed == NULL:
            raise MemoryError
        if crowding is not None:
            crowding.look(&self.tallies[self.scope_of[shape]])
        count[0] = 0
        while first > 0 and not enough:
            first -= 1
            binding = &self.bindings[candidates[first]]
            node = binding.node
            if (node == NOWHERE or not binding.preemptible or cutoff(binding) > priority
                    or not self.open[node] or not self.masks[shape].tiers[node]
                    or self.clipped[node]
                    or (crowding is not None and crowding.taken(node) >= 0)):
                continue
            amount = self.request_of(binding.shape)
            cell = freed + node * width
            had = self.cells(node, 0)
            enough = True
            for r in range(width):
                cell[r] = saturating_add(cell[r], amount[r])
                if request[r] > saturating_add(had[r], cell[r]):
                    enough = False
        free(freed)
        if not enough:
            return NOWHERE
        for i in range(first, given):
            binding = &self.bindings[candidates[i]]
            if binding.node == node and binding.preemptible and cutoff(binding) <= priority:
                victims[count[0]] = candidates[i]
                count[0] += 1
        self.cut_victims(shape, node, victims, count)
        return node

    cdef int cut_victims(self, int32_t shape, Py_ssize_t node, int32_t *victims,
                         Py_ssize_t *count) except -1:
        """Cut *victims*, all of which suffice and of which the first is needed, to the fewest.

        Among equally few, those latest in the order.
        """
        cdef Py_ssize_t width = self.columns, given = count[0] - 1, i
        cdef const int64_t *request = self.request_of(shape)
        cdef const int64_t *first = self.request_of(self.bindings[victims[0]].shape)
        cdef const int64_t *had = self.cells(node, 0)
        cdef int64_t need[MOST_AMOUNTS]
        cdef int64_t *amounts = <int64_t *> malloc(max(given, 1) * width * sizeof(int64_t))
        cdef int32_t *chosen = <int32_t *> malloc(max(given, 1) * sizeof(int32_t))
        try:
            if amounts == NULL or chosen == NULL:
                raise MemoryError
            for i in range(width):
                need[i] = max(saturating_sub(request[i], saturating_add(had[i], first[i])), 0)
            for i in range(given):
                memcpy(amounts + i * width, self.request_of(self.bindings[victims[i + 1]].shape),
                       width * sizeof(int64_t))
            count[0] = 1 + fewest(amounts, given, width, need, chosen)
            for i in range(count[0] - 1):
                victims[i + 1] = victims[chosen[i] + 1]
            return 0
        finally:
            free(amounts)
            free(chosen)

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
                handle = self.jobs.find(job_id)
                if handle < 0 or self.bindings[handle].node == NOWHERE:
                    raise IllegalBinding(f"job {job_id!r} cannot be a victim: it holds no node")
                handles[i] = handle
            node = self.best_at(shape, 0, NULL, NULL, 0)
            if node == NOWHERE:
                node = self.victims_of(shape, priority, handles, len(order), victims, &count)
            if node == NOWHERE:
                return None
            return self.node_ids[node], [self.jobs.job_id(victims[i]) for i in range(count)]
        finally:
            free(handles)

    # --- why not ----------------------------------------------------------------------------

    def shortfall(self, Requirements requirements not None, int64_t priority, list only=None):
        """(nodes that take part, those that match, best total, best room, short, taken).

        A node takes part if it is open, or would be but that it is over-allocated. The best of
        what those that match have: of each resource the most; or, if that would do for each,
        all of the node that is short of the fewest. `taken` counts the nodes that match and
        have enough other jobs of the scope, by property, at the end by host. `short` counts the
        other ones by the first amount that they are short of (the resources, then places for
        jobs), each as (nodes, the most that one of them has).
        """
        cdef int32_t shape = self.shape_of(requirements)
        cdef const uint8_t *tiers = self.masks[shape].tiers
        cdef const int64_t *request = self.request_of(shape)
        cdef const int64_t *had_there
        cdef Crowding crowding = self.crowdings[shape]
        cdef Py_ssize_t i, r, blocked, taking = 0, matching = 0
        cdef Py_ssize_t short_count[MOST_AMOUNTS]
        cdef int64_t short_best[MOST_AMOUNTS]
        cdef int row = self.row_of(priority)
        cdef bint short_of = False
        cdef ResourceVector total, had
        cdef list taken = []
        cdef uint8_t *chosen = <uint8_t *> calloc(max(self.count, 1), 1)
        if chosen == NULL:
            raise MemoryError
        memset(short_count, 0, sizeof(short_count))
        memset(short_best, 0, sizeof(short_best))
        if crowding is not None:
            crowding.look(&self.tallies[self.scope_of[shape]])
            taken = [0] * (crowding.property_count + 1)
        try:
            if only is None:
                memset(chosen, 1, self.count)
            else:
                for node in only:
                    self._check_node(node)
                    chosen[<Py_ssize_t> node] = 1
            for i in range(self.count):
                chosen[i] &= self.open[i] | (self.over[i] == WAS_OPEN)
                taking += chosen[i]
                chosen[i] &= tiers[i] != 0
                if not chosen[i]:
                    continue
                matching += 1
                blocked = -1 if crowding is None else crowding.taken(i)
                if blocked >= 0:
                    taken[blocked] += 1
                    continue
                # What levels show of an over-allocated node is not free.
                had_there = self.cells(i, 0 if self.over[i] else row)
                for r in range(self.columns):
                    if request[r] > had_there[r]:
                        if short_count[r] == 0 or had_there[r] > short_best[r]:
                            short_best[r] = had_there[r]
                        short_count[r] += 1
                        break
            total = self.best_had(shape, NOWHERE, chosen)
            had = self.best_had(shape, row, chosen)
            for r in range(self.width):
                if request[r] > had.amounts[r]:
                    short_of = True
            if not short_of and matching:
                # Only over-allocated nodes have room at this level: none of it is free.
                had = self.best_had(shape, 0, chosen)
            short = tuple([(short_count[r], short_best[r]) for r in range(self.columns)])
            return taking, matching, total, had, short, tuple(taken)
        finally:
            free(chosen)

    cdef ResourceVector best_had(self, int32_t shape, int row, const uint8_t *chosen):
        """Of the *chosen* nodes, at *row*, or in total where that is NOWHERE."""
        cdef int64_t had[MOST_AMOUNTS]
        cdef const int64_t *request = self.request_of(shape)
        cdef const int64_t *there
        cdef Py_ssize_t i, r, best = NOWHERE
        cdef int short_of, fewest_short = 0
        cdef bint enough = True
        memset(had, 0, sizeof(had))
        for i in range(self.count):
            if not chosen[i]:
                continue
            there = self.base + i * self.columns if row == NOWHERE else self.cells(i, row)
            short_of = 0
            for r in range(self.width):
                if best == NOWHERE or there[r] > had[r]:
                    had[r] = there[r]
                short_of += request[r] > there[r]
            if best == NOWHERE or short_of < fewest_short:
                best = i
                fewest_short = short_of
        for r in range(self.width):
            if request[r] > had[r]:
                enough = False
        if enough and best != NOWHERE:
            there = self.base + best * self.columns if row == NOWHERE else self.cells(best, row)
            memcpy(had, there, self.width * sizeof(int64_t))
        return vector_of(had, self.width)

    # --- what is where ----------------------------------------------------------------------

    def binding(self, str job_id not None):
        """(node id, requirements, priority, preemptible, evicted) of a job, or None."""
        cdef int32_t handle = self.jobs.find(job_id)
        cdef Binding *binding
        if handle < 0 or self.bindings[handle].node == NOWHERE:
            return None
        binding = &self.bindings[handle]
        return (
            self.node_ids[binding.node], self.shape_requirements[binding.shape],
            cutoff(binding) if binding.preemptible else binding.priority,
            bool(binding.preemptible), bool(binding.evicted),
        )

    def node_of(self, str job_id not None):
        """The node that a job holds, evicted or not, or None."""
        cdef int32_t handle = self.jobs.find(job_id)
        if handle < 0 or self.bindings[handle].node == NOWHERE:
            return None
        return self.node_ids[self.bindings[handle].node]

    def fits_back(self, str job_id not None):
        """Whether an evicted job could return: room at its level, or its node over-allocated."""
        cdef int32_t handle = self.jobs.find(job_id)
        cdef Binding *binding
        if handle < 0 or self.bindings[handle].node == NOWHERE:
            return False
        binding = &self.bindings[handle]
        if not binding.evicted:
            return False
        return bool(self.over[binding.node]
                    or self.fits(binding.node, binding.shape, self.last_row(binding)))

    def bound(self, Py_ssize_t node):
        """Ids of the jobs that hold a node, evicted ones too, sorted."""
        return sorted(self.bound_newest_first(node))

    def bound_newest_first(self, Py_ssize_t node):
        """The same in the order of the node's list: the last bound comes first."""
        self._check_node(node)
        cdef int32_t handle = self.newest[node]
        cdef list found = []
        while handle != NOWHERE:
            found.append(self.jobs.job_id(handle))
            handle = self.bindings[handle].older
        return found

    def bound_jobs(self):
        """Ids of all jobs that hold a node, sorted."""
        return sorted([self.jobs.job_id(i) for i in range(<int32_t> self.jobs.count)
                       if self.bindings[i].node != NOWHERE])

    def evicted_jobs(self):
        """Ids of all evicted jobs, sorted."""
        return sorted([self.jobs.job_id(i) for i in range(<int32_t> self.jobs.count)
                       if self.bindings[i].node != NOWHERE and self.bindings[i].evicted])

    def amounts(self, Py_ssize_t node, int64_t priority):
        """What *node* has left for a job of *priority*; `EVICTED`: what nobody holds."""
        self._check_node(node)
        return vector_of(self.cells(node, self.row_of(priority)), self.width)

    def left(self, Py_ssize_t node):
        """What nobody holds of *node*; if jobs are counted, places for them come last."""
        self._check_node(node)
        return vector_of(self.cells(node, 0), self.columns)

    def total(self, Py_ssize_t node):
        """What *node* has in total."""
        self._check_node(node)
        return vector_of(self.base + node * self.columns, self.width)

    def is_open(self, Py_ssize_t node):
        """Whether *node* takes anything new."""
        self._check_node(node)
        return bool(self.open[node])

    def is_over(self, Py_ssize_t node):
        """Whether *node* held more than it has when this table was forked."""
        self._check_node(node)
        return bool(self.over[node])

    @property
    def held(self):
        """How many jobs hold a node."""
        cdef Py_ssize_t i, found = 0
        for i in range(self.jobs.count):
            found += self.bindings[i].node != NOWHERE
        return found

    @property
    def handles(self):
        """How many handles there are, also those that stand for nothing."""
        return self.jobs.count

    @property
    def rows(self):
        """How many levels there are to keep: the evicted one, those in use, and the last."""
        return self.height + 1

    def oversubscribed(self):
        """[(node id, lowest class priority short of room)] but for over-allocated nodes."""
        cdef list found = []
        cdef Py_ssize_t node, r
        cdef const int64_t *had
        for node in range(self.count):
            if self.over[node]:
                continue
            for level in self.levels:
                had = self.cells(node, self.row_of(level))
                for r in range(self.columns):
                    if had[r] < 0:
                        break
                else:
                    continue
                found.append((self.node_ids[node], level))
                break
        return found

    def check_orders(self):
        """Breaches of INV-B11, as sentences."""
        cdef int row, fault
        cdef list found = []
        for row in range(self.height + 1):
            if self.orders[row] != NULL:
                fault = order_fault(self.orders[row], self.room + row * self.columns)
                if fault:
                    found.append(f"INV-B11: the order at row {row} fails its test {fault}")
        return found

    # --- copies -----------------------------------------------------------------------------

    def fork(self):
        """A copy to decide on, outside every attempt. It shares nothing that either changes."""
        cdef NodeTable copy = NodeTable.__new__(NodeTable, self.levels, self.width)
        self.copy_ledger(copy)
        copy.matcher = self.matcher
        copy.masks = <Mask *> calloc(max(self.shapes, 1), sizeof(Mask))
        if copy.masks == NULL:
            raise MemoryError
        copy.mask_space = max(self.shapes, 1)
        # A crowding serves one table, and masks are cheap to ask for again.
        copy.owners = [None] * self.shapes
        copy.crowdings = [None] * self.shapes
        return copy

    def close_over_allocated(self):
        """Mark and close each node that holds more than it has; open those that no longer do."""
        cdef Py_ssize_t node, r
        cdef const int64_t *had
        for node in range(self.count):
            if self.over[node] == WAS_OPEN:
                self.open[node] = 1
                self.touch(node, 0, self.height)
                self.released()
            self.over[node] = 0
            had = self.cells(node, 0)
            for r in range(self.columns):
                if had[r] < 0:
                    self.over[node] = WAS_OPEN if self.open[node] else WAS_CLOSED
                    self.open[node] = 0
                    self.touch(node, 0, self.height)
                    break

    cdef void close_node(self, Py_ssize_t node) noexcept:
        """Let nothing new go to *node*."""
        self.open[node] = 0
        if self.over[node]:
            self.over[node] = WAS_CLOSED
        self.touch(node, 0, self.height)

    def tidy(self):
        """Forget requirements, handles and levels that nothing bound has, if they are many."""
        if self.depth:
            raise IllegalBinding("nothing can be tidied within an attempt")
        if self.shapes > max(MANY_SHAPES, 2 * self.jobs.count):
            self.drop_unused_shapes()
        if self.height - 1 > len(self.levels) + 1:
            self.drop_levels()
        if self.jobs.wasteful():
            self.compact()


@cython.final
cdef class Avoided:
    """The nodes to try last, each with its rank."""

    cdef int32_t *nodes
    cdef uint8_t *ranks
    cdef Py_ssize_t count

    def __cinit__(self, NodeTable table not None, list avoid):
        cdef Py_ssize_t i, given = 0 if avoid is None else len(avoid)
        self.nodes = <int32_t *> malloc(max(given, 1) * sizeof(int32_t))
        self.ranks = <uint8_t *> malloc(max(given, 1))
        if self.nodes == NULL or self.ranks == NULL:
            raise MemoryError
        for i in range(given):
            node, rank = avoid[i]
            table._check_node(node)
            self.nodes[i] = node
            self.ranks[i] = rank
            self.count += 1

    def __dealloc__(self):
        free(self.nodes)
        free(self.ranks)
