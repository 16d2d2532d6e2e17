# cython: language_level=3
# The job store behind `JobDb`.
from pyresched._core.jobindex cimport JobIndex


cdef class JobStore(JobIndex):
    cdef object after_commit
