# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How crowded nodes are with jobs of one scope: distinct hosts, distinct values, spread.

Owns limits and targets by value of a label, and the counts by node that a ledger keeps of each
scope. Relies on the matcher's `Dynamic`. A crowding serves one table: what it last counted stays
in it.

A spread wants, of the jobs of a scope, a share of each value. The score of a node is how far its
value is behind its share once one more job is there, so the most wanting value comes first:
share * (jobs + 1) - (jobs with the value + 1), in steps of 1 / 10,000, times the weight.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove, memset

from pyresched._core.versions cimport (
    tried_calloc as calloc,
    tried_malloc as malloc,
    tried_realloc as realloc,
)

cdef enum:
    WHOLE = 10_000  # a share of 100 %


cdef int tally_reserve(Tally *tally) except -1 nogil:
    cdef Py_ssize_t space
    cdef void *grown
    if tally.count < tally.space:
        return 0
    space = max(2 * tally.space, 4)
    grown = realloc(tally.nodes, space * sizeof(int32_t))
    if grown != NULL:
        tally.nodes = <int32_t *> grown
        grown = realloc(tally.jobs, space * sizeof(int32_t))
    if grown == NULL:
        with gil:
            raise MemoryError
    tally.jobs = <int32_t *> grown
    tally.space = space
    return 0


cdef int tally_add(Tally *tally, Py_ssize_t node, int by) except -1 nogil:
    cdef Py_ssize_t low = 0, high = tally.count, middle
    while low < high:
        middle = (low + high) // 2
        if tally.nodes[middle] < node:
            low = middle + 1
        else:
            high = middle
    if low < tally.count and tally.nodes[low] == node:
        tally.jobs[low] += by
        if tally.jobs[low]:
            return 0
        tally.count -= 1
        memmove(&tally.nodes[low], &tally.nodes[low + 1], (tally.count - low) * sizeof(int32_t))
        memmove(&tally.jobs[low], &tally.jobs[low + 1], (tally.count - low) * sizeof(int32_t))
        return 0
    tally_reserve(tally)
    memmove(&tally.nodes[low + 1], &tally.nodes[low], (tally.count - low) * sizeof(int32_t))
    memmove(&tally.jobs[low + 1], &tally.jobs[low], (tally.count - low) * sizeof(int32_t))
    tally.nodes[low] = <int32_t> node
    tally.jobs[low] = by
    tally.count += 1
    return 0


cdef int tally_copy(const Tally *tally, Tally *copy) except -1:
    cdef size_t size = max(tally.count, 1) * sizeof(int32_t)
    copy.count = tally.count
    copy.space = max(tally.count, 1)
    copy.nodes = <int32_t *> malloc(size)
    copy.jobs = <int32_t *> malloc(size)
    if copy.nodes == NULL or copy.jobs == NULL:
        tally_free(copy)
        raise MemoryError
    if tally.count:
        memcpy(copy.nodes, tally.nodes, size)
        memcpy(copy.jobs, tally.jobs, size)
    return 0


cdef void tally_free(Tally *tally) noexcept nogil:
    free(tally.nodes)
    free(tally.jobs)
    memset(tally, 0, sizeof(Tally))


@cython.final
cdef class Crowding:
    """The limits and spreads of a request, from the matcher's `Dynamic` for *count* nodes."""

    def __cinit__(self, dynamic, Py_ssize_t count):
        cdef Property *each
        cdef Py_ssize_t i, v
        cdef bytes values
        self.host_limit = dynamic.host_limit
        self.owners = []
        self.nodes = count
        self.jobs = <int32_t *> calloc(max(count, 1), sizeof(int32_t))
        self.properties = <Property *> calloc(max(len(dynamic.properties), 1), sizeof(Property))
        if self.properties == NULL or self.jobs == NULL:
            raise MemoryError
        for given in dynamic.properties:
            each = &self.properties[self.property_count]
            values = given.values
            if len(values) < count * <Py_ssize_t> sizeof(int32_t):
                raise ValueError("a property has a value for each node")
            self.owners.append(values)
            each.limit = given.limit
            each.weight = given.weight
            each.values = <const int32_t *> <char *> values
            for i in range(count):
                each.value_count = max(each.value_count, each.values[i] + 1)
            each.desired = <int64_t *> calloc(max(each.value_count, 1), sizeof(int64_t))
            each.used = <int64_t *> calloc(max(each.value_count, 1), sizeof(int64_t))
            self.property_count += 1
            if each.desired == NULL or each.used == NULL:
                raise MemoryError
            for v in range(each.value_count):
                if not given.desired:
                    each.desired[v] = WHOLE // each.value_count
                elif v < len(given.desired):
                    each.desired[v] = given.desired[v] * (WHOLE // 100)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.property_count):
            free(self.properties[i].desired)
            free(self.properties[i].used)
        free(self.properties)
        free(self.jobs)

    cdef void look(self, const Tally *tally) noexcept nogil:
        """Count the jobs of the scope by node and by value."""
        cdef Py_ssize_t i, p
        cdef int32_t value
        cdef Property *each
        self.total = 0
        memset(self.jobs, 0, self.nodes * sizeof(int32_t))
        for i in range(tally.count):
            self.jobs[tally.nodes[i]] = tally.jobs[i]
            self.total += tally.jobs[i]
        for p in range(self.property_count):
            each = &self.properties[p]
            memset(each.used, 0, each.value_count * sizeof(int64_t))
            for i in range(tally.count):
                value = each.values[tally.nodes[i]]
                if value >= 0:
                    each.used[value] += tally.jobs[i]

    cdef Py_ssize_t taken(self, Py_ssize_t node) noexcept nogil:
        """Why no other job of the scope may use *node*: the property whose limit is reached, the
        number of properties for that of hosts, or -1 if one may."""
        cdef Py_ssize_t p
        cdef Property *each
        if self.host_limit and self.jobs[node] >= self.host_limit:
            return self.property_count
        for p in range(self.property_count):
            each = &self.properties[p]
            if each.limit and (
                each.values[node] < 0 or each.used[each.values[node]] >= each.limit
            ):
                return p
        return -1

    cdef int64_t score(self, Py_ssize_t node) noexcept nogil:
        """How much the spreads want one more job on *node*: more is better."""
        cdef Py_ssize_t p
        cdef int64_t found = 0
        cdef Property *each
        for p in range(self.property_count):
            each = &self.properties[p]
            if not each.weight:
                continue
            if each.values[node] < 0:
                # Without the label it counts for no value: after all that have one.
                return -INT64_MAX
            found += each.weight * (
                each.desired[each.values[node]] * (self.total + 1)
                - WHOLE * (each.used[each.values[node]] + 1))
        return found
