"""Records of node failures: columns, times, outages that overlap, the way to a cluster's nodes."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.errors import InputError
from pyresched.model import NANOS, NodeId
from pyresched.simulator.formats.failures import (
    FailureLog,
    NodeFailure,
    outages,
    parse_failures,
    read_failures,
)

MINUTE = 60 * NANOS
NODES = [NodeId(f"n{number}") for number in range(4)]


def read(*rows: str, header: str = "nodenumz,Prob Started,Prob Fixed") -> FailureLog:
    """The failures of *rows* under *header*."""
    return parse_failures([header, *rows], name="failures.csv")


def test_a_row_becomes_a_failure_counted_from_the_first() -> None:
    """Rows need not be in order."""
    log = read("3,1/2/2002 0:00,1/2/2002 0:30", "510,12/31/2001 23:00,1/1/2002 1:00")
    assert log.failures == (
        NodeFailure(node=510, after=0, length=120 * MINUTE),
        NodeFailure(node=3, after=25 * 60 * MINUTE, length=30 * MINUTE),
    )
    assert (log.lines.read, log.lines.skipped) == (2, 0)


def test_columns_are_found_by_name() -> None:
    """Others may stand between them, and blank rows count for nothing."""
    log = read(
        'a,"1/1/2002 0:05, or so",2,1/1/2002 0:01,1/1/2002 0:00',
        "",
        header='x,note, nodenumz ,"Prob Fixed",Prob Started',
    )
    assert log.failures == (NodeFailure(node=2, after=0, length=MINUTE),)
    assert log.lines_read == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1", "has 1 columns"),
        ("x,1/1/2002 0:00,1/1/2002 0:01", "nodenumz is 'x', not a node counted from 0"),
        ("-1,1/1/2002 0:00,1/1/2002 0:01", "nodenumz is '-1'"),
        ("1,1/1/2002 0:00,", "Prob Fixed is '', not a time like 12/31/2001 13:56"),
        ("1,13/1/2002 0:00,1/1/2002 0:01", "Prob Started is '13/1/2002 0:00'"),
        ("1,1/1/2002 0:02,1/1/2002 0:01", "Prob Fixed (1/1/2002 0:01) is before Prob Started"),
    ],
)
def test_a_row_that_cannot_be_used_is_kept_with_its_number(row: str, reason: str) -> None:
    """It is counted and named, and the rows around it still count."""
    log = read("0,1/1/2002 0:00,1/1/2002 0:01", row, "0,1/1/2002 0:00,1/1/2002 0:01")
    assert len(log.failures) == 2
    assert [skip.number for skip in log.skipped] == [3]
    assert log.skipped[0].reason.startswith(reason)


def test_a_file_without_the_columns_or_without_a_usable_row_is_refused(tmp_path: Path) -> None:
    """The line names the file and what would be right; no failure at all is no mistake."""
    with pytest.raises(InputError, match=r"failures.csv: line 1 has no column 'Prob Fixed'"):
        read(header="nodenumz,Prob Started")
    with pytest.raises(InputError, match=r"none of its 1 failures can be used \(line 2"):
        read("x,y,z")
    assert read().failures == ()
    with pytest.raises(InputError, match="is a folder"):
        read_failures(tmp_path)


def failure(node: int, after: int, length: int) -> NodeFailure:
    """Node *node* away for *length* ns from *after* on."""
    return NodeFailure(node=node, after=after, length=length)


def spans(*failures: NodeFailure, start: int = 0) -> list[tuple[str, int, int | None]]:
    """Node, loss and return of the outages that *failures* make."""
    return [(o.node_id, o.lost_at, o.back_at) for o in outages(failures, NODES, start=start)]


def test_the_first_failure_begins_with_the_log() -> None:
    """Node index goes to node index, modulo the number of nodes."""
    assert spans(failure(0, 0, 5), failure(6, 7, 1), start=100) == [
        ("n0", 100, 105),
        ("n2", 107, 108),
    ]


def test_a_node_is_back_when_its_last_overlapping_outage_ends() -> None:
    """Also when one lies within another, or when they only touch."""
    overlapping = (failure(0, 0, 10), failure(4, 2, 3), failure(0, 10, 5), failure(0, 16, 1))
    assert spans(*overlapping) == [("n0", 0, 15), ("n0", 16, 17)]


@given(
    st.lists(
        st.builds(failure, st.integers(0, 9), st.integers(0, 40), st.integers(0, 9)), max_size=30
    )
)
def test_merged_outages_cover_the_same_moments(failures: list[NodeFailure]) -> None:
    """Outages of one node are apart, in order, and away is away whichever way it is counted."""
    failures.sort(key=lambda f: (f.after, f.node))
    merged = spans(*failures)
    assert merged == sorted(merged, key=lambda span: (span[1], span[0]))
    for node in range(4):
        own = [(lost, back) for name, lost, back in merged if name == f"n{node}"]
        assert all(before[1] < after[0] for before, after in itertools.pairwise(own))
        for moment in range(60):
            away = any(
                f.node % 4 == node and f.after <= moment < f.after + f.length for f in failures
            )
            assert away == any(lost <= moment < back for lost, back in own)
