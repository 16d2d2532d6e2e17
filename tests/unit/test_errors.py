"""Errors: the suggestions in their sentences, and their families."""

from pyresched.errors import ConfigError, InputError, PyreschedError, did_you_mean


def test_the_nearest_known_word_is_offered_else_all() -> None:
    """Case does not matter for being near."""
    assert did_you_mean("CPU", ["cpu", "memory"]) == "did you mean 'cpu'?"
    assert did_you_mean("zzz", ["cpu", "memory"]) == "known: cpu, memory"
    assert did_you_mean("zzz", []) == "none is known"
    assert did_you_mean("zzz", [str(n) for n in range(1000)]).endswith(", 18, 19 and 980 more")


def test_what_a_user_wrote_wrong_is_one_family() -> None:
    """A program catches InputError, or ValueError, for all of it."""
    assert issubclass(ConfigError, InputError)
    assert issubclass(InputError, (PyreschedError, ValueError))
