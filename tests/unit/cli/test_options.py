"""Values as people type them."""

import pytest

from pyresched.cli.options import duration, queue_numbers
from pyresched.errors import InputError
from pyresched.model import NANOS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("10s", 10), ("36h", 129_600), ("1h30m", 5400), ("604800", 604_800), ("0.5", 0.5)],
)
def test_a_duration_has_a_unit_or_is_seconds(text: str, seconds: float) -> None:
    """Logs count in seconds, people in hours."""
    assert duration(text, option="--until") == seconds * NANOS


@pytest.mark.parametrize("text", ["", "-5", "-1h", "7d", "x", "9" * 30, "1e3", "nan", "\u0663s"])
def test_anything_else_is_refused_by_the_name_of_its_option(text: str) -> None:
    """One line, with what would be right."""
    with pytest.raises(InputError, match=r"^--until: ") as refusal:
        duration(text, option="--until")
    assert "\n" not in str(refusal.value)


def test_queues_are_numbers_or_none() -> None:
    """Nothing written is not the same as none."""
    assert queue_numbers([], option="--q") is None
    assert queue_numbers(["none"], option="--q") == frozenset()
    assert queue_numbers(["2", "0"], option="--q") == {0, 2}
    for wrong in (["x"], ["-1"], ["\u0663"]):
        with pytest.raises(InputError, match=r"--q: .* is no queue of a log"):
            queue_numbers(wrong, option="--q")
    with pytest.raises(InputError, match=r"--q: none stands alone"):
        queue_numbers(["2", "none"], option="--q")
