"""Checkers of the job db: each reports every breach of one invariant, in both directions.

Owns the second, slow opinion on what each index should hold (INV-D1 to INV-D9), computed from
the rows alone. Relies on `Reader.contents`, which gives rows and entries as stored.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Final

from pyresched.config import SchedulingConfig
from pyresched.model import Job, JobState

if TYPE_CHECKING:
    from pyresched._core import Contents

__all__ = ["CHECKERS", "breaches"]

_Key = tuple[int, ...]
_Entries = list[tuple[_Key, int]]


def breaches(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """Every breach of every invariant, each as `INV-Dn: sentence`."""
    for number, checker in CHECKERS.items():
        for sentence in checker(contents, config):
            yield f"{number}: {sentence}"


def inv_d1_rows(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D1. A job is under its id, once, and no id leads to a row that is not its job's."""
    del config
    rows = dict(contents["rows"])
    if len(rows) != len(contents["rows"]):
        yield "a slot holds two rows"
    at = dict(contents["ids"])
    for id, times in Counter(id for id, _ in contents["ids"]).items():
        if times > 1:
            yield f"id {id!r} is in the index {times} times"
    for slot, job in rows.items():
        if at.get(job.id) != slot:
            yield f"job {job.id!r} is in slot {slot}; its id leads to {at.get(job.id)}"
    for id, slot in contents["ids"]:
        if slot not in rows:
            yield f"id {id!r} leads to slot {slot}, which is empty"
    if contents["counts"]["ids"] != len(contents["ids"]):
        yield f"{len(contents['ids'])} ids, counted {contents['counts']['ids']}"


def inv_d2_runs(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D2. Every run of every job maps to its job, and nothing else is in the run index."""
    del config
    expected = {run.id: slot for slot, job in contents["rows"] for run in job.runs}
    yield from _differences("run", contents["runs"], expected.items())
    if contents["counts"]["runs"] != len(contents["runs"]):
        yield f"{len(contents['runs'])} runs, counted {contents['counts']['runs']}"


def inv_d3_queues(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D3. A queued job is in the lanes of its own queue and pools alone, at its order key."""
    ranks = class_ranks(config)
    rows = dict(contents["rows"])
    expected: dict[tuple[str, str | None], dict[int, _Key]] = {}
    for slot, job in contents["rows"]:
        if job.state is JobState.QUEUED:
            key = queue_key(job, ranks)
            for pool in job.pools or (None,):
                expected.setdefault((job.queue, pool), {})[slot] = key
    for lane in sorted({*expected, *contents["lanes"]}, key=repr):
        entries = contents["lanes"].get(lane, [])
        name = f"lane {lane!r}"
        yield from _ordered(rows, name, entries)
        yield from _differences(name, _by_slot(entries), expected.get(lane, {}).items())
        counted = contents["lane_counts"].get(lane, 0)
        if counted != len(entries):
            yield f"{name} has {len(entries)} entries, counted {counted}"


def inv_d4_gangs(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D4. A job is in the gang index exactly when it is in a gang, members side by side."""
    del config
    rows = dict(contents["rows"])
    members = {slot: submit_key(job) for slot, job in rows.items() if job.gang is not None}
    entries = contents["gangs"]
    yield from _ordered(rows, "gang index", entries)
    found = [(slot, key[1:]) for key, slot in entries]
    yield from _differences("gang index", found, members.items())
    hashes: dict[tuple[str, str], set[int]] = {}
    for key, slot in entries:
        gang = rows[slot].gang if slot in rows else None
        if gang is not None:
            hashes.setdefault((rows[slot].queue, gang.id), set()).add(key[0])
    for (queue, gang_id), keys in hashes.items():
        if len(keys) > 1:
            yield f"gang {gang_id!r} of {queue!r} is in {len(keys)} places"
    yield from _counted(contents, "gangs", entries)


def inv_d5_leased(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D5. A job is in the leased index exactly when it has an active run and an active state."""
    del config
    yield from _flagged(contents, "leased", lambda job: job.state.active and bool(job.active_run))


def inv_d6_unvalidated(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D6. A job is in the unvalidated index exactly when it is neither validated nor ended."""
    del config
    yield from _flagged(
        contents, "unvalidated", lambda job: not job.validated and not job.state.terminal
    )


def inv_d7_backing_off(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D7. A job is in the backing-off index exactly when it waits, at its `eligible_at`."""
    del config
    expected = {
        slot: (job.eligible_at, job.submitted_at)
        for slot, job in contents["rows"]
        if job.state is JobState.BACKING_OFF
    }
    entries = contents["backing_off"]
    yield from _ordered(dict(contents["rows"]), "backing-off index", entries)
    yield from _differences("backing-off index", _by_slot(entries), expected.items())
    yield from _counted(contents, "backing_off", entries)


def inv_d8_submitted(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D8. A walk of all gives every job once, by submit time, then id."""
    del config
    ordered = sorted(contents["rows"], key=lambda row: (*submit_key(row[1]), row[1].id.encode()))
    expected = [slot for slot, _ in ordered]
    for slot, found in zip_longest(expected, contents["submitted"]):
        if slot != found:
            yield f"in submit order comes slot {slot}, a walk gives {found}"


def inv_d9_shape(contents: "Contents", config: SchedulingConfig) -> Iterator[str]:
    """INV-D9. Every structure is in good shape and names only slots that have a row."""
    del config
    yield from contents["shape"]
    rows = dict(contents["rows"])
    indices: dict[str, _Entries] = {
        "leased": contents["leased"],
        "unvalidated": contents["unvalidated"],
        "backing_off": contents["backing_off"],
        "gangs": contents["gangs"],
        **{repr(lane): entries for lane, entries in contents["lanes"].items()},
    }
    for name, entries in indices.items():
        for _, slot in entries:
            if slot not in rows:
                yield f"{name} names slot {slot}, which has no row"
    for run_id, slot in contents["runs"]:
        if slot not in rows:
            yield f"run {run_id!r} names slot {slot}, which has no row"


CHECKERS: Final[Mapping[str, Callable[["Contents", SchedulingConfig], Iterator[str]]]] = {
    "INV-D1": inv_d1_rows,
    "INV-D2": inv_d2_runs,
    "INV-D3": inv_d3_queues,
    "INV-D4": inv_d4_gangs,
    "INV-D5": inv_d5_leased,
    "INV-D6": inv_d6_unvalidated,
    "INV-D7": inv_d7_backing_off,
    "INV-D8": inv_d8_submitted,
    "INV-D9": inv_d9_shape,
}


def class_ranks(config: SchedulingConfig) -> dict[str, int]:
    """Rank of each class by name: 0 for the most urgent, equal priorities equal."""
    distinct = sorted({each.priority for each in config.priority_classes}, reverse=True)
    return {each.name: distinct.index(each.priority) for each in config.priority_classes}


def queue_key(job: Job, ranks: Mapping[str, int]) -> _Key:
    """Where *job* stands in its queue; the id decides between equal keys."""
    rank = ranks[job.requirements.priority_class]
    return (rank << 32 | job.priority, job.submitted_at)


def submit_key(job: Job) -> _Key:
    """Where *job* stands among all; the id decides between equal keys."""
    return (job.submitted_at,)


def _by_slot(entries: _Entries) -> list[tuple[int, _Key]]:
    return [(slot, key) for key, slot in entries]


def _differences(
    name: str, found: Iterable[tuple[object, object]], expected: Iterable[tuple[object, object]]
) -> Iterator[str]:
    """What is in one and not in the other, and what is there twice."""
    have, want = Counter(found), Counter(expected)
    for what, value in (want - have).elements():
        yield f"{name}: {what!r} is missing at {value!r}"
    for what, value in (have - want).elements():
        yield f"{name}: {what!r} should not be at {value!r}"


def _ordered(rows: Mapping[int, Job], name: str, entries: _Entries) -> Iterator[str]:
    """Each entry must be above the one before it, by key and then by id."""
    keys = [(key, rows[slot].id) for key, slot in entries if slot in rows]
    for before, after in pairwise(keys):
        if before >= after:
            yield f"{name}: {after[1]!r} stands behind {before[1]!r}"


def _counted(contents: "Contents", name: str, entries: _Entries) -> Iterator[str]:
    counted = contents["counts"][name]
    if counted != len(entries):
        yield f"{name}: {len(entries)} entries, counted {counted}"


def _flagged(contents: "Contents", name: str, belongs: Callable[[Job], bool]) -> Iterator[str]:
    """An index in submit order that should hold the jobs for which *belongs* is true."""
    entries = {
        "leased": contents["leased"],
        "unvalidated": contents["unvalidated"],
    }[name]
    expected = {slot: submit_key(job) for slot, job in contents["rows"] if belongs(job)}
    yield from _ordered(dict(contents["rows"]), name, entries)
    yield from _differences(name, _by_slot(entries), expected.items())
    yield from _counted(contents, name, entries)
