# cython: language_level=3
# Persistent arrays of fixed-size rows: copy-on-write pages under a radix. See docs/hamt.md.
from libc.stdint cimport uint32_t, uint64_t

from pyresched._core.versions cimport EditLog, Meter

cdef enum:
    PAGE_BITS = 6
    PAGE_ROWS = 64
    RADIX_BITS = 5
    RADIX_WAYS = 32

# What all versions of one array (or of many alike) share.
cdef struct Pages:
    Meter meter
    uint32_t row_size  # bytes, a multiple of 8

# One version of one array: copy the struct to keep it. {NULL, 0, 0} is the empty array.
cdef struct Paged:
    void *root
    uint32_t height    # levels of directories above the pages
    uint64_t length    # one more than the highest row ever written

# Called for each row that differs; NULL stands for a row whose page one side lacks.
ctypedef int (*RowVisitor)(void *context, uint32_t row, const void *old, const void *new) except -1

# Called for each row of each page that was ever written.
ctypedef int (*EachRow)(void *context, uint32_t row, void *at) except -1

cdef void pages_init(Pages *pages, uint32_t row_size) noexcept nogil
# The row, or NULL when its page was never written; read only.
cdef const void *page_read(const Pages *pages, const Paged *array, uint32_t row) noexcept nogil
# The same for each of *count* rows, which begin to come from memory: for who reads them soon.
cdef void pages_fetch(const Pages *pages, const Paged *array, const uint32_t *rows,
                      uint32_t count, const void **at) noexcept nogil
# The row, for writing in this edit; a fresh page is all zeros. Raises MemoryError.
cdef void *page_write(Pages *pages, Paged *array, EditLog *log, uint32_t row) except NULL nogil
# Each row that differs between the two, in ascending order.
cdef int pages_diff(const Pages *pages, const Paged *old, const Paged *new,
                    RowVisitor visit, void *context) except -1
# Add the nodes of this version to *meter*.
cdef void pages_measure(const Pages *pages, const Paged *array, Meter *meter) noexcept nogil
# Give back every node of this version; its owner ends and nobody reads another.
cdef void pages_free(Pages *pages, Paged *array) noexcept nogil
# Each row in ascending order, empty ones too.
cdef int pages_each(const Pages *pages, const Paged *array, EachRow visit,
                    void *context) except -1
