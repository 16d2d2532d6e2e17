"""A block in one line: read, refused, and written so that it is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from kit.policies import INT64
from pyresched.errors import InputError
from pyresched.model import NANOS, RescheduleBlock
from pyresched.spec import block_text, parse_block


def maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """A written value, or none."""
    return st.one_of(st.just(UNSET), values)


@given(
    st.builds(
        RescheduleBlock,
        attempts=maybe(INT64),
        interval=maybe(INT64),
        delay=maybe(INT64),
        delay_function=maybe(st.sampled_from(["constant", "exponential", "fibonacci", "x"])),
        max_delay=maybe(INT64),
        unlimited=maybe(st.booleans()),
    )
)
def test_a_block_is_read_back_as_it_was_written(block: RescheduleBlock) -> None:
    """Any values of any fields; what is not written stays so."""
    assert parse_block(block_text(block)) == block


def test_blanks_do_not_matter_and_nothing_is_nothing() -> None:
    """As people type."""
    block = parse_block(" attempts = 3 , interval= 1h,unlimited =false ")
    assert block == RescheduleBlock(attempts=3, interval=3600 * NANOS, unlimited=False)
    assert parse_block(" ") == RescheduleBlock()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("attempts", "'attempts' is no name=value"),
        ("attempts=3,", "'' is no name=value"),
        ("=3", "'=3' is no name=value"),
        ("atempts=3", "'atempts' is no field of a reschedule policy; did you mean 'attempts'?"),
        ("attempts=3,attempts=3", "attempts is written twice"),
        ("attempts=many", "attempts: 'many' is no whole number; write a count such as 3"),
        ("attempts=1.5", "attempts: '1.5' is no whole number"),
        ("attempts=٣", "attempts: '٣' is no whole number"),
        ("attempts=9999999999999999999", "attempts: 9999999999999999999 is past what"),
        ("interval=1d", "interval: '1d' is not a duration"),
        ("delay=", "delay: '' is not a duration"),
        ("unlimited=yes", "unlimited: 'yes' is no truth value; write true or false"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, sentence: str) -> None:
    """The field, what it is, what would be right."""
    with pytest.raises(InputError) as refused:
        parse_block(text)
    assert sentence in str(refused.value)
