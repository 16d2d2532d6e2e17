"""Regular expressions: the same answers as the standard library's, and never a long search."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.errors import InputError
from pyresched.model.patterns import Pattern

pieces = st.sampled_from(
    ["a", "b", "c", ".", "[ab]", "[^a]", "[a-c-]", "[]a]", r"\d", r"\W", r"[\w-]", r"\.", "-", "1"]
) | st.sampled_from(["^", "$", r"\b", r"\B", r"\A", "(?i:B)", r"\n", "{", "x{,2}"])
repeats = st.sampled_from(["", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{0,}", "{2,}?"])


def expressions():
    """What both engines can read."""
    return st.recursive(
        st.tuples(pieces, repeats).map(
            lambda pair: pair[0] + pair[1] if pair[0][0] not in "^$\\{x" else pair[0]
        ),
        lambda inner: (
            st.lists(inner, max_size=3).map("".join)
            | st.tuples(inner, inner).map("|".join)
            | st.tuples(st.sampled_from(["(", "(?:", "(?P<n>", "(?i:"]), inner, repeats).map(
                lambda parts: f"{parts[0]}{parts[1]}){parts[2]}"
            )
        ),
        max_leaves=8,
    ).filter(lambda text: text.count("P<n>") <= 1)


@given(expressions(), st.lists(st.text("abcAB1-. \n{x", max_size=8), min_size=1, max_size=5))
def test_searches_find_what_the_standard_library_finds(text, values):
    """But for `$`, which is the end of the text alone, as in Nomad."""
    # An x{,2} is five characters to RE2, and one up to two x to the standard library.
    theirs = re.compile(text.replace("$", r"\Z").replace("x{,2}", r"x\{,2\}"), re.ASCII)
    ours = Pattern(text)
    for value in values:
        if not value and r"\B" in text:
            continue  # no edge in "": true to RE2, which the standard library says of late only
        assert ours.found_in(value) == (theirs.search(value) is not None)
        assert ours.found_in(value) == (theirs.search(value) is not None)  # from memory


@pytest.mark.parametrize(
    ("text", "found", "missed"),
    [
        ("", ["", "a"], []),
        ("gpu-[0-9]+", ["gpu-1", "a gpu-77 b"], ["gpu-", "GPU-1"]),
        ("(?i)gpu", ["GPU", "xgPu"], ["gp"]),
        ("(?i:g)pu", ["Gpu"], ["GPU"]),
        ("a(?i)b|c", ["aB", "C"], ["AB"]),
        ("^v1$", ["v1"], ["v1\n", "v10"]),
        (r"^a|b$", ["ax", "xb"], ["xa", "bx"]),
        (r"\bnode\b", ["a node", "node-1"], ["nodes"]),
        (r"[\]\-a]", ["]", "-", "a"], ["\\"]),
        (r"[\d_]", ["1", "_"], ["a"]),
        (r"a{2,3}b", ["aab", "aaab"], ["ab"]),
        ("a{,2}", ["a{,2}"], ["aa"]),
        ("(a|b)*c", ["c", "abac"], ["ab"]),
        ("(?P<name>x)(?<P>y)", ["xy"], ["x"]),
        (".", ["a"], ["", "\n"]),
        ("ü+", ["für"], ["fur"]),
    ],
)
def test_facts_of_the_syntax(text, found, missed):
    """As RE2 reads it."""
    pattern = Pattern(text)
    assert [value for value in found if not pattern.found_in(value)] == []
    assert [value for value in missed if pattern.found_in(value)] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a(", "lacks a )"),
        ("a)", "has a ) too many"),
        ("[a", "lacks a ]"),
        ("[]", "lacks a ]"),
        ("*a", "repeats nothing"),
        ("a**", "repeats a repetition"),
        ("a{3,2}", "the least first"),
        ("a{1001}", "write up to 1000"),
        ("a\\", "ends in a backslash"),
        ("[b-a]", "the lower end first"),
        (r"(a)\1", "takes no linear time"),
        ("(?=a)", "write (?: ) for a group"),
        ("(?<=a)", "looks behind"),
        ("(?P<>a)", "without a name"),
        ("(?s)a", "write (?: ) for a group"),
        ("[[:alpha:]]", "write \\d, \\w or \\s"),
        ("(" * 60, "nested too deeply"),
        ("(a{100}){100}", "too large"),
        ("[a-z]{1,63}" * 9, "too large"),
    ],
)
def test_what_is_no_regular_expression_is_refused(text, why):
    """One line that says why."""
    with pytest.raises(InputError) as bad:
        Pattern(text)
    assert why in str(bad.value)
    assert "\n" not in str(bad.value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["(a+)+$", "(a*)*b", "(a|a)*b", "(a?){60}a{60}$", "a*a*a*a*a*a*a*b", "(.*){9}x"]
)
def test_no_expression_takes_long(text):
    """Each of these takes a searcher that goes back years; ours, milliseconds."""
    pattern = Pattern(text)
    for _ in range(20):
        assert not pattern.found_in("a" * 59 + "!" + "a" * 1 + "?")
