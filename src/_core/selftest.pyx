# cython: boundscheck=False, wraparound=False, cdivision=True
"""Cases for native functions that Python cannot reach; `tests/native` runs each `test_*`.

In builds with PYRESCHED_SELFTEST only, above every other module, named by no door. A case
takes nothing, returns nothing and fails by `assert`, so the build must keep asserts.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

from pyresched._core.resources cimport saturating_add, saturating_mul, saturating_sub
from pyresched._core.versions cimport fail_allocations

# Both ends, zero, one, and the square roots of the ends, where a product is about to leave.
EDGES = [
    INT64_MIN, INT64_MIN + 1, -3037000500, -2, -1, 0, 1, 2, 3037000499, 3037000500,
    INT64_MAX - 1, INT64_MAX,
]


def let_allocations_fail(int64_t after):
    """From now on the allocations of the native structures fail, after so many; -1: none does."""
    fail_allocations(after)


cdef object clamped(object exact):
    """*exact*, an int of any size, at the nearer end of int64 if it lies outside."""
    return max(INT64_MIN, min(INT64_MAX, exact))


def asserts_are_on():
    """Whether a false assert raises in this build: if not, no case here can fail."""
    try:
        assert False, "on purpose"
    except AssertionError:
        return True
    return False


def test_saturating_arithmetic_is_exact_or_at_the_nearer_end():
    """Sum, difference and product equal unbounded arithmetic, cut to int64."""
    cdef int64_t a, b
    for a in EDGES:
        for b in EDGES:
            exact_a, exact_b = int(a), int(b)
            assert saturating_add(a, b) == clamped(exact_a + exact_b), (a, b)
            assert saturating_sub(a, b) == clamped(exact_a - exact_b), (a, b)
            assert saturating_mul(a, b) == clamped(exact_a * exact_b), (a, b)
