# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True
"""Resource vectors: whole amounts in the smallest unit of each resource.

Owns nothing but its amounts; the names, units and rounding live in `model.resources`.
Sums and products saturate at the ends of int64, so no arithmetic here can wrap.
"""

cimport cython
from cpython.number cimport PyIndex_Check, PyNumber_Index
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.stdlib cimport free, malloc, realloc


cdef int64_t saturating_add(int64_t a, int64_t b) noexcept nogil:
    if b > 0 and a > INT64_MAX - b:
        return INT64_MAX
    if b < 0 and a < INT64_MIN - b:
        return INT64_MIN
    return a + b


cdef int64_t saturating_sub(int64_t a, int64_t b) noexcept nogil:
    if b < 0 and a > INT64_MAX + b:
        return INT64_MAX
    if b > 0 and a < INT64_MIN + b:
        return INT64_MIN
    return a - b


cdef int64_t saturating_mul(int64_t a, int64_t b) noexcept nogil:
    if a == 0 or b == 0:
        return 0
    if a > 0:
        if b > 0:
            return INT64_MAX if a > INT64_MAX // b else a * b
        return INT64_MIN if b < INT64_MIN // a else a * b
    if b > 0:
        return INT64_MIN if a < INT64_MIN // b else a * b
    return INT64_MAX if a < INT64_MAX // b else a * b


cdef ResourceVector empty_of(Py_ssize_t width):
    """A vector of *width* amounts that the caller has yet to write."""
    cdef ResourceVector vector = ResourceVector.__new__(ResourceVector)
    cdef int64_t *fresh = <int64_t *> realloc(vector.amounts, max(width, 1) * sizeof(int64_t))
    if fresh == NULL:
        raise MemoryError
    vector.amounts = fresh
    vector.width = width
    return vector


cdef ResourceVector vector_of(const int64_t *amounts, Py_ssize_t width):
    """A vector holding a copy of *width* amounts."""
    cdef ResourceVector vector = empty_of(width)
    cdef Py_ssize_t i
    for i in range(width):
        vector.amounts[i] = amounts[i]
    return vector


@cython.final
@cython.no_gc
cdef class ResourceVector:
    """Amounts of each resource, in the order of the `ResourceSpec` that they belong to.

    Immutable and hashable. Each amount is an int64 in the smallest unit of its resource
    (thousandths of a core, bytes, ...). `+`, `-` and `scaled` saturate. Combining vectors
    of different length raises ValueError; an amount outside int64 raises OverflowError.
    """

    def __cinit__(self, amounts=()):
        cdef tuple values = tuple(amounts)
        cdef Py_ssize_t i
        self.amounts = <int64_t *> malloc(max(len(values), 1) * sizeof(int64_t))
        if self.amounts == NULL:
            raise MemoryError
        self.width = len(values)
        for i in range(self.width):
            if not PyIndex_Check(values[i]):  # a float raises: no rounding here
                raise TypeError(f"amount {i} is a whole number, got {values[i]!r}")
            try:
                self.amounts[i] = PyNumber_Index(values[i])
            except OverflowError:
                raise OverflowError(
                    f"amount {i} must be from -2**63 to 2**63 - 1, got {values[i]!r}") from None

    def __dealloc__(self):
        free(self.amounts)

    @staticmethod
    def zero(Py_ssize_t width):
        """The vector of *width* zeros."""
        if width < 0:
            raise ValueError(f"width must not be negative, got {width}")
        cdef ResourceVector vector = empty_of(width)
        cdef Py_ssize_t i
        for i in range(width):
            vector.amounts[i] = 0
        return vector

    def __len__(self):
        return self.width

    def __getitem__(self, Py_ssize_t index):
        if not 0 <= index < self.width:
            raise IndexError(f"resource {index} of {self.width}")
        return self.amounts[index]

    def __iter__(self):
        return iter(self.to_tuple())

    def to_tuple(self):
        """The amounts as a tuple of int."""
        return tuple([self.amounts[i] for i in range(self.width)])

    def __repr__(self):
        return f"ResourceVector({self.to_tuple()!r})"

    def __hash__(self):
        return hash(self.to_tuple())

    def __eq__(self, other):
        if not isinstance(other, ResourceVector):
            return NotImplemented
        cdef ResourceVector that = <ResourceVector> other
        cdef Py_ssize_t i
        if self.width != that.width:
            return False
        for i in range(self.width):
            if self.amounts[i] != that.amounts[i]:
                return False
        return True

    def __reduce__(self):
        return ResourceVector, (self.to_tuple(),)

    cdef int _same_width(self, ResourceVector other) except -1:
        if self.width != other.width:
            raise ValueError(f"vectors of {self.width} and {other.width} resources")
        return 0

    def __add__(self, ResourceVector other not None):
        self._same_width(other)
        cdef ResourceVector total = empty_of(self.width)
        cdef Py_ssize_t i
        for i in range(self.width):
            total.amounts[i] = saturating_add(self.amounts[i], other.amounts[i])
        return total

    def __sub__(self, ResourceVector other not None):
        self._same_width(other)
        cdef ResourceVector rest = empty_of(self.width)
        cdef Py_ssize_t i
        for i in range(self.width):
            rest.amounts[i] = saturating_sub(self.amounts[i], other.amounts[i])
        return rest

    def scaled(self, int64_t factor):
        """Each amount times the whole number *factor*."""
        cdef ResourceVector product = empty_of(self.width)
        cdef Py_ssize_t i
        for i in range(self.width):
            product.amounts[i] = saturating_mul(self.amounts[i], factor)
        return product

    def floor_at_zero(self):
        """The same with negative amounts raised to 0."""
        cdef ResourceVector floored = empty_of(self.width)
        cdef Py_ssize_t i
        for i in range(self.width):
            floored.amounts[i] = max(self.amounts[i], 0)
        return floored

    def capped(self, ResourceVector limit not None):
        """The smaller amount of the two, resource by resource."""
        self._same_width(limit)
        cdef ResourceVector lower = empty_of(self.width)
        cdef Py_ssize_t i
        for i in range(self.width):
            lower.amounts[i] = min(self.amounts[i], limit.amounts[i])
        return lower

    def fits_in(self, ResourceVector available not None):
        """Whether no amount exceeds that of *available*."""
        return self.first_exceeding(available) is None

    def first_exceeding(self, ResourceVector available not None):
        """Index of the first resource of which there is more here than in *available*, or None."""
        self._same_width(available)
        cdef Py_ssize_t i
        for i in range(self.width):
            if self.amounts[i] > available.amounts[i]:
                return i
        return None

    @property
    def is_zero(self):
        """Whether every amount is 0."""
        cdef Py_ssize_t i
        for i in range(self.width):
            if self.amounts[i] != 0:
                return False
        return True

    @property
    def has_negative(self):
        """Whether any amount is below 0."""
        cdef Py_ssize_t i
        for i in range(self.width):
            if self.amounts[i] < 0:
                return True
        return False
