"""Negative controls: every checker of the job db reports a store that was damaged in its way."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.jobs import backing_off, ended, gang, job, leased, run
from pyresched.jobdb import CHECKERS, JobDb, Txn, breaches
from pyresched.model import Gang, Job

QUEUED = job("queued", priority=3, pools=("p1", "p2"), submitted_at=5)
LEASED = leased(job("leased", submitted_at=4))
WAITING = backing_off(leased(job("waiting", submitted_at=3)))
NEW = job("new", validated=False, submitted_at=2)
MEMBERS = gang("gang", submitted_at=1)
ENDED = ended(leased(job("ended")))
JOBS = [QUEUED, LEASED, WAITING, NEW, *MEMBERS, ENDED]

# What is done to which index with which job (its id names the slot, its fields the place).
Damage = tuple[str, Job, bool]
OUT, IN = False, True
DAMAGE: dict[str, list[Damage]] = {
    "INV-D1": [("ids", QUEUED, OUT), ("rows", QUEUED, OUT)],
    "INV-D2": [
        ("runs", LEASED, OUT),
        ("runs", ENDED, OUT),
        ("runs", QUEUED.replace(runs=(run("stray"),)), IN),
    ],
    "INV-D3": [
        ("lanes", QUEUED, OUT),
        ("lanes", LEASED, IN),
        ("lanes", QUEUED.replace(priority=4), IN),
        ("lanes", QUEUED.replace(submitted_at=4), IN),
        ("lanes", QUEUED.replace(queue="other"), IN),
        ("lanes", QUEUED.replace(pools=("p3",)), IN),
        ("lanes", QUEUED.replace(pools=("p2",)), OUT),
        ("lanes", QUEUED.replace(pools=()), IN),
    ],
    "INV-D4": [
        ("gangs", MEMBERS[0], OUT),
        ("gangs", QUEUED.replace(gang=Gang("gang", 2)), IN),
        ("gangs", MEMBERS[0].replace(gang=Gang("other", 2)), IN),
        ("gangs", MEMBERS[0].replace(submitted_at=9), IN),
    ],
    "INV-D5": [("leased", LEASED, OUT), ("leased", QUEUED, IN), ("leased", ENDED, IN)],
    "INV-D6": [("unvalidated", NEW, OUT), ("unvalidated", QUEUED, IN)],
    "INV-D7": [
        ("backing_off", WAITING, OUT),
        ("backing_off", QUEUED.replace(eligible_at=5), IN),
        ("backing_off", WAITING.replace(eligible_at=9), IN),
    ],
    "INV-D8": [("ids", ENDED, OUT)],
    "INV-D9": [("rows", each, OUT) for each in JOBS],
}
CASES = [
    pytest.param(number, damage, id=f"{number} {damage[0]} {n}")
    for number, damages in DAMAGE.items()
    for n, damage in enumerate(damages)
]


@pytest.fixture
def txn() -> Iterator[Txn]:
    """A transaction over jobs of every kind, sound so far."""
    db = JobDb()
    with db.write() as txn:
        txn.upsert_many(JOBS)
    txn = db.write()
    assert db.check(txn) == []
    yield txn
    txn.abort()


@pytest.mark.parametrize(("number", "damage"), CASES)
def test_each_checker_sees_its_damage(txn: Txn, number: str, damage: Damage) -> None:
    """By one index alone that gains or loses one entry."""
    index, hit, link = damage
    txn.sabotage(index, hit, link=link)
    db = JobDb()
    found = [breach for breach in breaches(txn.contents(), db.config) if breach.startswith(number)]
    assert found
    assert any(repr(hit.id) in breach or re.search(r"slot|run|\d", breach) for breach in found)


@pytest.mark.parametrize("count", ["ids", "runs", "leased", "unvalidated", "backing_off", "gangs"])
def test_a_wrong_count_is_seen(txn: Txn, count: str) -> None:
    """`len` and its like are counts, not walks."""
    contents = txn.contents()
    contents["counts"][count] += 1
    assert any("counted" in breach for breach in breaches(contents, JobDb().config))


def test_a_wrong_count_of_a_lane_is_seen(txn: Txn) -> None:
    """So is that of a queue."""
    contents = txn.contents()
    contents["lane_counts"]["queue-a", "p1"] -= 1
    assert any("INV-D3" in breach for breach in breaches(contents, JobDb().config))


def test_entries_out_of_order_are_seen(txn: Txn) -> None:
    """For every index that has an order."""
    for name in ("leased", "unvalidated", "backing_off", "gangs"):
        contents = txn.contents()
        entries = contents[name]
        entries.extend(entries[:1])
        assert any("stands behind" in b for b in breaches(contents, JobDb().config)), name
    contents = txn.contents()
    contents["lanes"]["queue-a", "default"].reverse()
    assert any("stands behind" in b for b in breaches(contents, JobDb().config))


def test_a_walk_of_all_out_of_order_is_seen(txn: Txn) -> None:
    """The order of submission, also where all jobs are there."""
    contents = txn.contents()
    contents["submitted"].reverse()
    assert any("INV-D8" in breach for breach in breaches(contents, JobDb().config))


def test_an_id_twice_and_a_row_twice_are_seen(txn: Txn) -> None:
    """What one dict would hide."""
    contents = txn.contents()
    contents["ids"].append(contents["ids"][0])
    contents["rows"].append(contents["rows"][0])
    found = list(CHECKERS["INV-D1"](contents, JobDb().config))
    assert any("2 times" in breach for breach in found)
    assert "a slot holds two rows" in found


def test_a_bad_shape_is_passed_on(txn: Txn) -> None:
    """What the structures find themselves."""
    contents = txn.contents()
    assert contents["shape"] == []
    contents["shape"].append("a leaf is in the wrong place")
    assert "INV-D9: a leaf is in the wrong place" in breaches(contents, JobDb().config)


def test_every_checker_has_a_number_a_control_and_a_line_in_the_docs() -> None:
    """docs/invariants.md lists what is checked, and here it is seen to fail."""
    assert set(CHECKERS) == set(DAMAGE)
    docs = Path(__file__).parents[3] / "docs" / "invariants.md"
    listed = re.findall(r"^\| (INV-D\d+) \|", docs.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(CHECKERS) <= set(listed)
    assert len(listed) == len(set(listed))
    for number, checker in CHECKERS.items():
        assert (checker.__doc__ or "").startswith(f"{number}. ")


def test_an_unknown_index_cannot_be_damaged(txn: Txn) -> None:
    """A control that misspells its index is no control."""
    with pytest.raises(ValueError, match="no index 'lane'"):
        txn.sabotage("lane", QUEUED, link=True)
    with pytest.raises(KeyError, match="nobody"):
        txn.sabotage("lanes", job("nobody"), link=True)
