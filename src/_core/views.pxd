# cython: language_level=3
from cpython.object cimport PyObject
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
    cdef readonly bint forced


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

# The last two views that one walk gave out, a reference each. Their records have no hold for
# them: who lends sees to it that the records live, until `lent_end`. Two, since a loop has the
# job before still in its variable when it asks for the next.
cdef struct Lent:
    PyObject *last
    PyObject *before

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
      #define PYRESCHED_LENDING 0
    #else
      #define PYRESCHED_LENDING 1
    #endif
    """
    # Whether views may be lent: a count of one means that nobody else has it under the GIL only.
    const bint LENDING "PYRESCHED_LENDING"

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *) noexcept

# A view with nothing to show yet, its one reference the caller's. Raises MemoryError.
cdef PyObject *blank_view() except NULL
# Give a lent view its hold, and the reference of the lender up.
cdef void lent_keep(PyObject *view) noexcept
# The same for both, before their records may go.
cdef void lent_end(Lent *lent) noexcept


cdef inline Job lend(Lent *lent, const Record *record):
    """A view of *record* for as long as it lives: one that nobody has any more, or another."""
    cdef PyObject *view = lent.before
    lent.before = lent.last
    lent.last = NULL
    if view == NULL or Py_REFCNT(view) != 1:
        if view != NULL:
            lent_keep(view)
        view = blank_view()
    elif (<Job> view).text is not None:
        (<Job> view).text = None
    (<Job> view).record = <Record *> record
    lent.last = view
    return <Job> view
