"""Columns in every form that users hold give the jobs that values would give."""

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kit.jobs import requirements
from pyresched.jobdb import JobDb
from pyresched.model import Gang, GroupRules, Job, ReschedulePolicy

NAMES = ("a", "bb", "a-queue-of-a-longer-name", "\N{GREEK SMALL LETTER OMEGA}")
VALUES: dict[str, Sequence[Any]] = {
    "queue": NAMES,
    "job_set": ("", *NAMES),
    "job_type": ("batch", "service"),
    "requirements": [requirements(n) for n in range(1, 4)],
    "pools": [("default",), ("gpu", "default"), ()],
    "policy": [None, ReschedulePolicy(attempts=1), ReschedulePolicy(attempts=2)],
    "rules": [None, GroupRules(), GroupRules(version=2)],
    "gang": [None, Gang("gang-1", 2), Gang("gang-2", 3)],
}
TEXTS = ("queue", "job_set", "job_type")
CODES: list[Callable[[list[int]], Any]] = [
    list,
    lambda codes: array("i", codes),
    *(lambda codes, kind=kind: np.array(codes, kind) for kind in ("i1", "i2", "i4", "i8")),
]
NUMBERS: list[Callable[[list[int]], Any]] = [
    list,
    lambda numbers: array("q", numbers),
    lambda numbers: np.array(numbers, np.int64),
    lambda numbers: pa.array([0, *numbers], pa.int64())[1:],
    lambda numbers: pa.chunked_array([numbers[:3], numbers[3:]], pa.int64()),
]
IDS: list[Callable[[list[str]], Any]] = [
    list,
    np.array,
    lambda ids: np.array(ids, object),
    lambda ids: np.array([each.encode() for each in ids]),
    pa.array,
    lambda ids: pa.array(["x", *ids], pa.large_string())[1:],
    lambda ids: pa.chunked_array([ids[:1], ids[1:]], pa.string()),
]
BY_ROW: list[Callable[[list[str]], Any]] = [
    list,
    np.array,
    lambda rows: np.array([each.encode() for each in rows]),
    lambda rows: pa.array(rows, pa.large_string()),
    lambda rows: pa.array(rows).dictionary_encode(),
    lambda rows: pa.array(["x", *rows, "y"]).dictionary_encode()[1:-1],
    lambda rows: pa.chunked_array([rows[:2], rows[2:]], pa.string()).dictionary_encode(),
    lambda rows: np.unique(np.array(rows), return_inverse=True)[::-1],
]


@st.composite
def encoded(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Columns, and the fields of their rows."""
    kinds = st.sampled_from(["free", "ulid", "long"])
    numbers = draw(st.lists(st.integers(0, 400), unique=True, min_size=1, max_size=12))
    if draw(st.booleans()):  # enough for a store to be filled at once
        numbers = [*numbers, *range(1_000, 1_300)]
    form = {"free": "j{}", "ulid": "01JZ{:022d}", "long": "longer than sixteen {}"}
    ids = [form[draw(kinds)].format(n) if n < 1_000 else f"j{n}" for n in numbers]
    count = len(ids)
    few = st.integers(0, 3)
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [{"id": id} for id in ids]
    columns: dict[str, Any] = {"ids": draw(st.sampled_from(IDS))(ids)}
    for name, most in (("submitted_at", draw(few)), ("priority", draw(few))):
        column = random.integers(0, 10**most, size=count).tolist()
        columns[name] = draw(st.sampled_from(NUMBERS))(column)
        for row, number in zip(rows, column, strict=True):
            row[name] = number
    for name, values in VALUES.items():
        codes = random.integers(0, len(values), size=count).tolist()
        if draw(few) == 0:
            codes = [codes[0]] * count
            columns[name] = values[codes[0]]
        elif name in TEXTS and draw(st.booleans()):
            columns[name] = draw(st.sampled_from(BY_ROW))([values[code] for code in codes])
        else:
            shift = 1 if name == "gang" and draw(st.booleans()) else 0
            shifted = [code - shift for code in codes]
            columns[name] = draw(st.sampled_from(CODES))(shifted), values[shift:]
        for row, code in zip(rows, codes, strict=True):
            row[name] = values[code]
    return columns, rows


@given(encoded())
def test_columns_of_any_form_give_the_jobs_of_their_rows(
    given: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """Every field of every job, and every index."""
    columns, rows = given
    db, twin = JobDb(), JobDb()
    with db.write() as txn:
        assert txn.upsert_columns(**columns) == len(rows)
    with twin.write() as txn:
        txn.upsert_many([Job(**row) for row in rows])
    ours, theirs = db.snapshot(), twin.snapshot()
    assert list(ours) == list(theirs)
    assert ours.queues() == theirs.queues()
    for queue in NAMES:
        for pool in (None, "default", "gpu"):
            assert list(ours.queued(queue, pool)) == list(theirs.queued(queue, pool))
        assert ours.gang(queue, "gang-1") == theirs.gang(queue, "gang-1")
    assert db.check(ours) == []
    again = db.snapshot().columns("priority", ids=columns["ids"])["priority"].tolist()
    assert again == [row["priority"] for row in rows]
