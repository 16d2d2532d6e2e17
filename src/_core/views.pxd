# cython: language_level=3
from libc.stdint cimport int64_t

from pyresched._core.records cimport Kind, Record, RunPart, TrackerPart
from pyresched._core.values cimport Gang


cdef class Run:
    cdef RunPart part      # id_kind 0: nothing yet
    cdef str text          # its id, once somebody has asked
    cdef str name(self)
    cdef int put(self, str name, object value) except -1
    cdef int must_be_whole(self) except -1


cdef class RescheduleEvent:
    cdef readonly int64_t time
    cdef readonly str previous_run
    cdef readonly str previous_node
    cdef readonly int64_t delay


cdef class RescheduleTracker:
    cdef TrackerPart *part  # held; NULL: nothing yet


cdef class Job:
    cdef Record *record    # held
    cdef str text          # its id, once somebody has asked
    cdef str name(self)
    cdef Kind kind(self)
    cdef Gang membership(self)
    cdef bint has_past(self) noexcept


# A view of *record*, with a hold of its own.
cdef Job job_view(const Record *record)
cdef Run run_view(const RunPart *part)
