# cython: language_level=3
# Reads of what may change that make objects on their way.
#
# To make a container may run a collection, that a finaliser, that another thread; one of them could
# change or end the transaction that is being read. Between `pause` and `resume`, which no other
# Python may come between, there is none. There is no collector.pyx.

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()


cdef inline bint pause() noexcept:
    """No collections from here on; whether there were any, for `resume`."""
    return PyGC_Disable() != 0


cdef inline void resume(bint were) noexcept:
    if were:
        PyGC_Enable()
