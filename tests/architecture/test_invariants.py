"""docs/invariants.md and the tests agree on which invariants there are."""

import re

import pytest

from kit.repository import ROOT, read_text, tracked_files

# A number, or the first and the last of several.
CITED = re.compile(r"\bINV-([A-Z]?)(\d+)\b(?:\s+to\s+INV-\1(\d+)\b)?")
# A definition opens a row of a table, an item of a list or a line.
DEFINED = re.compile(r"^[\s|*-]*(INV-[A-Z]?\d+)\b", re.MULTILINE)


def cited(text):
    """Each invariant that *text* names, alone or within a range."""
    for letter, first, last in CITED.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"INV-{letter}{number}"


def cited_in(*patterns):
    """Each invariant cited in files under *patterns*, with the files that do."""
    found = {}
    for path in tracked_files(*patterns):
        for number in cited(read_text(path)):
            found.setdefault(number, set()).add(str(path.relative_to(ROOT)))
    return found


def defined():
    """The numbers that the page defines, in its order."""
    return DEFINED.findall((ROOT / "docs" / "invariants.md").read_text(encoding="utf-8"))


def test_each_number_is_defined_once():
    """A number is never given twice."""
    numbers = defined()
    assert numbers
    assert sorted(set(numbers)) == sorted(numbers)


def test_each_cited_invariant_is_defined():
    """Sources, tests and documents cite what the page has."""
    known = set(defined())
    unknown = {
        n: files
        for n, files in cited_in("src", "tests", "docs", "benchmarks", "*.md").items()
        if n not in known
    }
    assert unknown == {}


def test_each_invariant_has_a_test():
    """Every invariant is cited by a test that holds it."""
    cited_by_tests = cited_in("tests")
    assert [number for number in defined() if number not in cited_by_tests] == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("keeps INV" + "-D9.", ["INV" + "-D9"]),
        ("INV" + "-2 to INV" + "-4", ["INV" + f"-{n}" for n in (2, 3, 4)]),
        ("XINV" + "-7 and INV" + "-", []),
    ],
)
def test_citations_are_recognised(text, numbers):
    """Control: alone, as a range, not at all."""
    assert list(cited(text)) == numbers
