# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The fewest of a node's runs whose loss makes the room that is wanted.

Owns one search, over plain numbers. It is a covering problem in as many dimensions as there are
resources, so it is cut off after a fixed number of steps; then it gives a set from which nothing
can be spared. Relies on nothing.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from pyresched._core.resources cimport saturating_add
from pyresched._core.versions cimport tried_malloc as malloc

cdef enum:
    MOST_STEPS = 20_000


cdef struct Search:
    const int64_t *amounts  # [place][width]
    int64_t *largest  # [place][width]: the largest amount from there on
    int64_t *sums  # [place][width]: the sum from there on
    int32_t *chosen
    Py_ssize_t given
    Py_ssize_t width
    Py_ssize_t steps


cdef bint choose(Search *search, Py_ssize_t start, Py_ssize_t depth, Py_ssize_t left,
                 const int64_t *need) noexcept nogil:
    """Whether *left* places from *start* on cover *need*; the latest such into `chosen`."""
    cdef int64_t rest[MOST_AMOUNTS]
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


cdef Py_ssize_t spare(Search *search, const int64_t *need) noexcept nogil:
    """All places but each, the first in line first, that can be spared."""
    cdef int64_t spared[MOST_AMOUNTS]
    cdef Py_ssize_t i, r, count = 0
    for r in range(search.width):
        spared[r] = saturating_add(search.sums[r], -need[r])
    for i in range(search.given):
        for r in range(search.width):
            if search.amounts[i * search.width + r] > spared[r]:
                search.chosen[count] = <int32_t> i
                count += 1
                break
        else:
            for r in range(search.width):
                spared[r] -= search.amounts[i * search.width + r]
    return count


cdef Py_ssize_t fewest(const int64_t *amounts, Py_ssize_t given, Py_ssize_t width,
                       const int64_t *need, int32_t *chosen) except -1:
    cdef Search search
    cdef Py_ssize_t i, r, k, wanted
    cdef int64_t *cells
    if not given:
        return 0
    cells = <int64_t *> malloc(2 * given * width * sizeof(int64_t))
    if cells == NULL:
        raise MemoryError
    search = Search(amounts, cells, cells + given * width, chosen, given, width, 0)
    memcpy(search.largest, amounts, given * width * sizeof(int64_t))
    memcpy(search.sums, amounts, given * width * sizeof(int64_t))
    for i in range(given - 2, -1, -1):
        for r in range(width):
            k = i * width + r
            search.largest[k] = max(search.largest[k], search.largest[k + width])
            search.sums[k] = saturating_add(search.sums[k], search.sums[k + width])
    try:
        for wanted in range(given + 1):
            if choose(&search, 0, 0, wanted, need):
                return wanted
            if search.steps > MOST_STEPS:
                break
        return spare(&search, need)
    finally:
        free(cells)
