"""What docs/ says about tests is so: each one that a page names is there."""

import ast
import re

from kit.repository import ROOT, read_text, tracked_files

NAMED = re.compile(r"`(?:[\w/]+/)?(test_\w+)(?:\.py)?`")
ANOMALIES = "tests/scenarios/test_isolation.py"


def names_in_tests() -> set[str]:
    """Every test, every class in the tests, and every file with tests."""
    found = set()
    for path in tracked_files("tests", "src/_core/selftest.pyx"):
        if path.suffix == ".py":
            found.add(path.stem)
            found.update(
                node.name
                for node in ast.walk(ast.parse(read_text(path)))
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
            )
        elif path.suffix == ".pyx":
            found.update(re.findall(r"^def (test_\w+)", read_text(path), re.MULTILINE))
    return found


def rows(page: str, start: str) -> list[list[str]]:
    """The cells of the table of *page* whose head starts with *start*."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(start))
    table = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return table


def test_each_test_that_a_page_names_is_there() -> None:
    """By its name, alone or as a file."""
    there = names_in_tests()
    missing = {
        (path.name, name)
        for path in tracked_files("docs", "*.md")
        if path.suffix == ".md"
        for name in NAMED.findall(read_text(path))
        if name not in there
    }
    assert missing == set()


def test_each_anomaly_has_its_test_and_each_such_test_is_on_the_page() -> None:
    """The table of docs/mvcc.md and the tests that are named after anomalies."""
    table = rows("mvcc.md", "| anomaly |")
    assert len(table) > 10
    tests = set(re.findall(r"def (test_\w+)", read_text(ROOT / ANOMALIES)))
    assert all(set(NAMED.findall(cells[-1])) & tests for cells in table)
    named = set(NAMED.findall(read_text(ROOT / "docs" / "mvcc.md")))
    of_anomalies = {
        name
        for name in tests
        if re.search("read|skew|phantom|lost|dirty|whole", name) and "control" not in name
    }
    assert of_anomalies <= named


def test_each_invariant_of_the_job_db_and_below_was_seen_to_fail() -> None:
    """By a control that docs/invariants.md names, and that is there."""
    there = names_in_tests()
    page = read_text(ROOT / "docs" / "invariants.md")
    found = re.findall(r"^\| (INV-[DN]\d+) \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    assert len(found) == len(re.findall(r"^\| INV-[DN]", page, re.MULTILINE)) > 20
    for number, control in found:
        names = re.findall(r"`(?:[\w/]+/)?(\w+)(?:\.py)?`", control)
        assert names, number
        assert set(names) <= there, (number, set(names) - there)
