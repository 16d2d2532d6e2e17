# cython: language_level=3
# Jobs on their way into a store, each id once.
from libc.stdint cimport int32_t, int64_t, uint8_t

from pyresched._core.ids cimport Column, Key
from pyresched._core.records cimport Name, Record


cdef class Batch:
    cdef Record **records
    cdef Key *keys         # of their ids, once `read_keys` has passed
    cdef bint has_keys
    cdef Py_ssize_t count
    cdef list keeper       # the jobs whose records these are; None: they are held here
    cdef int room(self, Py_ssize_t count) except -1
    cdef int read_keys(self, const Column *column) except -1
    cdef int distinct(self) except -1
    cdef void keep(self, Py_ssize_t kept, Py_ssize_t i) noexcept
    cdef void cut(self, Py_ssize_t kept) noexcept
    cdef int resolve(self, Py_ssize_t kept, Py_ssize_t again) except -1


# A column of ids: strs, cells of fixed width, or Arrow's offsets and bytes.
cdef class Texts:
    cdef str name          # of the column, for messages
    cdef list strs         # or None
    cdef Py_buffer cells
    cdef Py_buffer offsets
    cdef bint has_cells
    cdef bint has_offsets
    cdef bint wide         # offsets of 64 bits
    cdef Py_ssize_t first  # in offsets
    cdef Py_ssize_t count

    cdef const uint8_t *cell(self, Py_ssize_t i, size_t *size) noexcept nogil
    # The keys of all rows; how many there were before one that is no ASCII id.
    cdef Py_ssize_t keys(self, const Column *column, Key *keys) noexcept nogil
    cdef int read(self, const Column *column, Py_ssize_t i, Name *name, uint8_t *kind,
                  Key *key) except -1


# A column of int64, or one number for all rows.
cdef class Numbers:
    cdef const int64_t[::1] many
    cdef int64_t one
    cdef bint is_one

    cdef int64_t at(self, Py_ssize_t i) noexcept


# A column of values by codes, or one value for all rows (code 0).
cdef class Coded:
    cdef Py_buffer codes
    cdef bint has_codes        # else one value for all rows
    cdef int lowest
    cdef int64_t limit
    cdef str name
    cdef list values

    cdef int32_t at(self, Py_ssize_t i) except -2
    cdef int64_t read(self, Py_ssize_t i) noexcept


cdef Batch batch_of_jobs(jobs)
# See `Txn.upsert_columns`.
cdef Batch batch_of_columns(const Column *column, ids, submitted_at, queue, requirements, priority,
                            gang, job_set, pools, job_type, policy, rules, validated, payload)
