# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Dominant resource fairness: what an allocation costs, and who should get how much.

Owns the arithmetic only; which queues take part and what they may ask for is decided by the
round. Amounts are int64, costs and shares are doubles; nothing here depends on an order.
"""

cimport cython
from cpython.buffer cimport (
    Py_buffer,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, isfinite, isnan
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from pyresched._core.bits cimport dominant
from pyresched._core.resources cimport ResourceVector

from array import array

from pyresched.errors import InputError

cdef object ONE = array("d", [0.0])


cdef double checked_weight(object weight) except -1.0:
    """*weight* as a double. Raises InputError unless it is finite and above 0."""
    cdef double value = weight
    if not (isfinite(value) and value > 0.0):
        raise InputError(f"weight {weight!r}; write a finite number above 0")
    return value


@cython.final
cdef class DominantResourceFairness:
    """The cost of allocations in a pool of *total*: the largest share of any resource.

    *multipliers* say what each resource counts for, in the order of the vector; 0 leaves it out.
    A resource of which the pool has none counts 0, and no cost is below 0. Raises InputError
    for a multiplier or an amount of *total* that is negative, or a multiplier not finite.
    """

    def __cinit__(self, ResourceVector total not None, multipliers not None):
        cdef Py_ssize_t i
        cdef tuple factors = tuple(multipliers)
        if len(factors) != total.width:
            raise InputError(f"{len(factors)} multipliers for {total.width} resources")
        self.width = total.width
        self.total = <double *> malloc(max(2 * self.width, 1) * sizeof(double))
        if self.total == NULL:
            raise MemoryError
        self.multiplier = self.total + self.width
        for i in range(self.width):
            self.total[i] = <double> total.amounts[i]
            self.multiplier[i] = factors[i]
            if total.amounts[i] < 0:
                raise InputError(f"total {total.amounts[i]} of resource {i}; write 0 or more")
            if not (isfinite(self.multiplier[i]) and self.multiplier[i] >= 0.0):
                raise InputError(
                    f"multiplier {factors[i]!r} of resource {i}; write a finite number from 0"
                )
            if total.amounts[i] == 0:  # of what there is none, any amount is a share of 0
                self.total[i] = 1.0
                self.multiplier[i] = 0.0

    def __dealloc__(self):
        free(self.total)

    cdef double cost(self, const int64_t *allocation) noexcept nogil:
        return dominant(allocation, self.total, self.multiplier, self.width)

    cdef void _costs(
        self, const int64_t *rows, const double *weights, double *costs, Py_ssize_t count
    ) noexcept nogil:
        """The cost of each row, over its weight if there are weights."""
        cdef Py_ssize_t i, width = self.width
        cdef const double *total = self.total
        cdef const double *multiplier = self.multiplier
        if weights == NULL:
            for i in range(count):
                costs[i] = dominant(rows + i * width, total, multiplier, width)
        else:
            for i in range(count):
                costs[i] = dominant(rows + i * width, total, multiplier, width) / weights[i]

    cdef int _check(self, Py_ssize_t width) except -1:
        if width != self.width:
            raise InputError(f"an allocation of {width} amounts; there are {self.width} resources")
        return 0

    def unweighted_cost(self, ResourceVector allocation not None):
        """The dominant share of *allocation*."""
        self._check(allocation.width)
        return self.cost(allocation.amounts)

    def weighted_cost(self, ResourceVector allocation not None, weight):
        """The dominant share of *allocation* divided by *weight*, which is above 0 and finite."""
        self._check(allocation.width)
        return self.cost(allocation.amounts) / checked_weight(weight)

    def unweighted_costs(self, allocations not None):
        """The cost of each allocation.

        *allocations* are vectors (gives a list), or a two-dimensional C-ordered int64 buffer of
        one row each (gives an array of double).
        """
        if PyObject_CheckBuffer(allocations):
            return self._rows(allocations, None)
        return self._vectors(allocations, None)

    def weighted_costs(self, allocations not None, weights not None):
        """The same, each divided by its weight; for a buffer *weights* may be a double buffer."""
        if PyObject_CheckBuffer(allocations):
            return self._rows(allocations, weights)
        return self._vectors(allocations, weights)

    cdef list _vectors(self, object allocations, object weights):
        cdef ResourceVector allocation
        cdef list costs = []
        cdef list given = list(allocations)
        cdef list factors = None if weights is None else list(weights)
        cdef Py_ssize_t i
        if factors is not None and len(factors) != len(given):
            raise InputError(f"{len(factors)} weights for {len(given)} allocations")
        for i in range(len(given)):
            allocation = given[i]
            if allocation is None:
                raise TypeError("an allocation must not be None")
            self._check(allocation.width)
            if factors is None:
                costs.append(self.cost(allocation.amounts))
            else:
                costs.append(self.cost(allocation.amounts) / checked_weight(factors[i]))
        return costs

    cdef object _rows(self, object allocations, object weights):
        cdef const int64_t[:, ::1] rows = allocations
        cdef const double[::1] factors = None
        cdef const double *divisors = NULL
        cdef Py_ssize_t i, count = rows.shape[0]
        cdef Py_buffer out
        cdef object costs = ONE * count
        self._check(rows.shape[1])
        if weights is not None:
            if not PyObject_CheckBuffer(weights):
                weights = array("d", weights)
            factors = weights
            if factors.shape[0] != count:
                raise InputError(f"{factors.shape[0]} weights for {count} allocations")
            if count:
                divisors = &factors[0]
            for i in range(count):
                if not 0.0 < divisors[i] <= DBL_MAX:
                    raise InputError(f"weight {divisors[i]!r}; write a finite number above 0")
        if self.width == 0 or count == 0:
            return costs
        PyObject_GetBuffer(costs, &out, PyBUF_WRITABLE)
        with nogil:
            self._costs(&rows[0, 0], divisors, <double *> out.buf, count)
        PyBuffer_Release(&out)
        return costs


def water_levels(list weights not None, list demands not None):
    """(fair, adjusted, uncapped) shares of 1.0, a list each, in the order given.

    fair: weight over all weights. adjusted: what each gets when nobody gets more than its
    demand and what is left over goes to the others by weight, until the demands or the whole
    are used up. uncapped: what each would get if its own demand had no end. Exact but for
    rounding: the level is found by sorting, O(n log n). Raises InputError for a weight that is
    not finite and above 0, or a demand that is negative or not a number (infinite is fine).
    """
    cdef Py_ssize_t count = len(weights), i, k, low, high, middle, own
    cdef double *cells
    cdef double *weight
    cdef double *demand
    cdef double *full  # the level at which each has its demand, in sorted order
    cdef double *before  # demands of those before it in sorted order
    cdef double *after  # weights of it and those after it
    cdef double largest = 0.0, level, met, rest, total
    cdef list order, fair, adjusted, uncapped
    if len(demands) != count:
        raise InputError(f"{count} weights for {len(demands)} demands")
    cells = <double *> malloc((5 * count + 2) * sizeof(double))
    if cells == NULL:
        raise MemoryError
    try:
        weight = cells
        demand = cells + count
        full = cells + 2 * count
        before = cells + 3 * count
        after = cells + 4 * count + 1
        for i in range(count):
            weight[i] = checked_weight(weights[i])
            demand[i] = demands[i]
            if isnan(demand[i]) or demand[i] < 0.0:
                raise InputError(f"demand {demands[i]!r}; write a share from 0")
            largest = max(largest, weight[i])
        # Relative to the largest, so that no sum of weights leaves the range of a double;
        # ratios past 1e300 count as 1e300, so that none sinks to 0.
        for i in range(count):
            weight[i] = max(weight[i] / largest, 1e-300)
        order = sorted(range(count), key=[fullness(demand[i], weight[i])
                                          for i in range(count)].__getitem__)
        before[0] = 0.0
        for k in range(count):
            i = order[k]
            full[k] = fullness(demand[i], weight[i])
            before[k + 1] = before[k] + demand[i]
        after[count] = 0.0
        for k in range(count - 1, -1, -1):
            after[k] = after[k + 1] + weight[<Py_ssize_t> order[k]]
        total = after[0]
        fair = [weight[i] / total for i in range(count)]
        adjusted = [0.0] * count
        uncapped = [0.0] * count
        # Those before *met_count* have their demand; the others share what is left by weight.
        met_count = count
        level = INFINITY
        for k in range(count):
            rest = max(1.0 - before[k], 0.0)
            if rest <= full[k] * after[k]:
                met_count = k
                level = rest / after[k]
                break
        for k in range(count):
            i = order[k]
            if k >= met_count:
                adjusted[i] = min(weight[i] * level, demand[i])
                uncapped[i] = weight[i] * level
                continue
            adjusted[i] = demand[i]
            # The same with k's own demand infinite: fewer of the others have theirs.
            low, high = 0, met_count
            own = k
            while low < high:
                middle = (low + high) // 2
                met = before[middle] - (demand[i] if own < middle else 0.0)
                rest = after[middle] + (weight[i] if own < middle else 0.0)
                if 1.0 - met > full[middle] * rest:
                    low = middle + 1
                else:
                    high = middle
            met = before[low] - (demand[i] if own < low else 0.0)
            rest = after[low] + (weight[i] if own < low else 0.0)
            uncapped[i] = max(weight[i] * max(1.0 - met, 0.0) / rest, demand[i])
        return fair, adjusted, uncapped
    finally:
        free(cells)


cdef double fullness(double demand, double weight) noexcept nogil:
    """The level at which a queue has its demand."""
    if demand == 0.0:
        return 0.0
    return demand / weight
