# cython: language_level=3
# Columns of the jobs of one version, and their order by submission.
from libc.stdint cimport int64_t, uint32_t

from pyresched._core.hamt cimport Maps
from pyresched._core.ids cimport Column
from pyresched._core.jobindex cimport Roots
from pyresched._core.pages cimport Pages

# Name of each column -> what `fill_column` takes.
cdef dict column_fields()
# What the column says of each slot; NEVER of NOWHERE and where a job has none.
cdef void fill_column(const Pages *pages, const Roots *roots, const uint32_t *slots,
                      Py_ssize_t count, int field, int64_t *out) noexcept nogil
# The slots of all jobs by submit time, then id; to be freed. NULL: no memory.
cdef uint32_t *sorted_slots(const Column *column, const Maps *maps, const Pages *pages,
                            const Roots *roots) noexcept nogil
