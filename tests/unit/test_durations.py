"""Durations: Go's rules for text, and back."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.durations import saturated, short_duration
from pyresched.errors import InputError
from pyresched.model import format_duration, parse_duration

INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("30s", 30 * 10**9),
        ("1h30m", 5400 * 10**9),
        ("1.5h", 5400 * 10**9),
        ("+5s", 5 * 10**9),
        ("-5s", -5 * 10**9),
        (".5s", 5 * 10**8),
        ("5.s", 5 * 10**9),
        ("1us", 1000),
        ("1µs", 1000),
        ("1\u03bcs", 1000),
        ("10m1ms", 600 * 10**9 + 10**6),
        ("1m1m", 120 * 10**9),
        ("0.3333333333333333333h", 20 * 60 * 10**9),
        ("0.830103483285477580700h", (49 * 60 + 48) * 10**9 + 372539827),
        ("0.9223372036854775807h", 3320413933267),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("000000000000000000000000001s", 10**9),
        (17, 17),
        (-1, -1),
    ],
)
def test_go_duration_text_is_read_as_go_reads_it(text: str | int, nanoseconds: int) -> None:
    """Text and whole nanoseconds give the figure that Go gives."""
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "-", "+", ".", "1", "1m1", "s", ".s", "1..s", "1 s", " 1s", "1s ", "1e3s", "1d", "1hr",
     "3000000h", "9223372036854775808ns", "-9223372036854775809ns", "9" * 5000 + "s", "1S",
     "1\x00s", "٣s", True, 1.5, None, 2**63],
)  # fmt: skip
def test_what_go_refuses_is_refused(text: object) -> None:
    """Anything else is an InputError of one line, never another exception."""
    with pytest.raises(InputError) as caught:
        parse_duration(text)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


SLIPS = {
    "24h": ("d", "day", "days"),
    "168h": ("w", "week", "weeks"),
    "1h": ("hr", "hrs", "hour", "hours", "H"),
    "1m": ("min", "mins", "minute", "minutes", " min"),
    "1s": ("sec", "secs", "second", "seconds", "S"),
    "1ms": ("msec",),
    "1us": ("usec",),
    "1ns": ("nsec",),
}


@pytest.mark.parametrize(
    ("text", "right"),
    [(f"1{unit}", right) for right, units in SLIPS.items() for unit in units]
    + [("7d", "168h"), ("123456789hr", "123456789h")],
)
def test_a_common_slip_is_answered_with_what_to_write(text: str, right: str) -> None:
    """The error names the duration that was probably meant."""
    with pytest.raises(InputError, match=f"write {right}$"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (-1, "-1ns"),
        (1000, "1µs"),
        (1_000_000, "1ms"),
        (1_000_000_000, "1s"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (4 * 60 * 10**9 + 5 * 10**9, "4m5s"),
        (5400 * 10**9, "1h30m0s"),
        (-90 * 10**9, "-1m30s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_durations_are_printed_as_go_prints_them(nanoseconds: int, text: str) -> None:
    """Hours, minutes and seconds, or one smaller unit."""
    assert format_duration(nanoseconds) == text


def test_a_slip_that_is_not_plain_is_answered_with_an_example() -> None:
    """Parts of days and long figures are not worked out."""
    for text in ("1.5d", "1234567890hr", "1fortnight"):
        with pytest.raises(InputError, match="write a duration such as 30s"):
            parse_duration(text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (999, "999ns"),
        (1000, "1µs"),
        (10**6 - 1, "999.999µs"),
        (10**6, "1ms"),
        (10**9, "1s"),
        (60 * 10**9, "1m"),
        (90 * 10**9, "1m30s"),
        (3600 * 10**9, "1h"),
        (3605 * 10**9, "1h0m5s"),
        (36_000 * 10**9, "10h"),
        (5400 * 10**9, "1h30m"),
        (3600 * 10**9 + 600 * 10**9, "1h10m"),
        (10 * 60 * 10**9, "10m"),
        (-3600 * 10**9, "-1h"),
    ],
)
def test_short_text_leaves_out_what_is_zero(nanoseconds: int, text: str) -> None:
    """As people write durations; it reads back to the same."""
    assert short_duration(nanoseconds) == text
    assert parse_duration(text) == nanoseconds


def test_whole_numbers_up_to_the_ends_of_int64_are_durations() -> None:
    """And nothing past them."""
    for end in (-(2**63), 2**63 - 1):
        assert parse_duration(end) == saturated(end) == end
    for past in (-(2**63) - 1, 2**63):
        with pytest.raises(InputError, match="past what can be counted"):
            parse_duration(past)
    assert saturated(2**70) == 2**63 - 1
    assert saturated(-(2**70)) == -(2**63)


@given(INT64)
def test_printing_and_reading_come_back_to_the_same(nanoseconds: int) -> None:
    """Every int64 survives the way to text and back."""
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds
    assert parse_duration(short_duration(nanoseconds)) == nanoseconds


@given(st.text(alphabet="0123456789.+-hmsnuµd ", max_size=24))
def test_no_text_raises_anything_but_an_input_error(text: str) -> None:
    """Bad text is an InputError, good text stays within int64."""
    with suppress(InputError):
        assert -(2**63) <= parse_duration(text) < 2**63
