# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How crowded nodes are with jobs of one scope: distinct hosts, distinct values, spread.

Owns limits and targets by value of a label; the counts by node are the ledger's. Relies on the
matcher's `Dynamic`. A crowding serves one table: what it last counted stays in it.

A spread wants, of the jobs of a scope, a share of each value. The score of a node is how far its
value is behind its share once one more job is there, so the most wanting value comes first:
share * (jobs + 1) - (jobs with the value + 1), in steps of 1 / 10,000, times the weight.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport calloc, free

cdef enum:
    WHOLE = 10_000  # a share of 100 %


cdef class Crowding:
    """The limits and spreads of a request, from the matcher's `Dynamic` for *count* nodes."""

    def __cinit__(self, dynamic, Py_ssize_t count):
        cdef Property *each
        cdef Py_ssize_t i, v
        cdef bytes values
        self.scope = dynamic.scope
        self.host_limit = dynamic.host_limit
        self.owners = []
        self.properties = <Property *> calloc(max(len(dynamic.properties), 1), sizeof(Property))
        if self.properties == NULL:
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

    cdef void look(self, const int32_t *tally, Py_ssize_t count) noexcept nogil:
        """Count the jobs of the scope by value; *tally* has them by node."""
        cdef Py_ssize_t i, p, v
        cdef Property *each
        self.total = 0
        for i in range(count):
            self.total += tally[i]
        for p in range(self.property_count):
            each = &self.properties[p]
            for v in range(each.value_count):
                each.used[v] = 0
            for i in range(count):
                if tally[i] and each.values[i] >= 0:
                    each.used[each.values[i]] += tally[i]

    cdef bint allows(self, const int32_t *tally, Py_ssize_t node) noexcept nogil:
        """Whether one more job of the scope may use *node*."""
        return self.taken(tally, node) < 0

    cdef Py_ssize_t taken(self, const int32_t *tally, Py_ssize_t node) noexcept nogil:
        """Why no other job of the scope may use *node*: the property whose limit is reached, the
        number of properties for that of hosts, or -1 if one may."""
        cdef Py_ssize_t p
        cdef Property *each
        if self.host_limit and tally[node] >= self.host_limit:
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
