"""The rival of the benchmarks is a job db too: it gives the answers that ours gives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.job_model import JobModel, refusals
from kit.job_strategies import CHANGES, IDS, few, new_jobs, same_answers
from kit.jobs import job as new_job
from pyresched.model import Job, JobState
from rivals.jobdb import PythonJobDb
from rivals.jobs import PythonJob, native_job, python_job

step = st.one_of(
    st.tuples(st.just("upsert"), st.lists(new_jobs, max_size=4)),
    st.tuples(
        st.just("change"),
        st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 99)), max_size=3),
    ),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(IDS), max_size=8)),
    st.tuples(st.just("snapshot"), few),
)


class Translated:
    """A reader of the rival whose answers are jobs of ours."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, question: str) -> Any:
        ask = getattr(self._reader, question)
        return lambda *arguments: ours(ask(*arguments))

    def __len__(self) -> int:
        return len(self._reader)

    def __iter__(self) -> Any:
        return ours(iter(self._reader))

    def __contains__(self, id: object) -> bool:
        return id in self._reader


def ours(answer: Any) -> Any:
    """The answer with every job of the rival turned into ours."""
    if isinstance(answer, PythonJob):
        return native_job(answer)
    if isinstance(answer, list):
        return [ours(each) for each in answer]
    return map(ours, answer) if hasattr(answer, "__next__") else answer


def take(txn: Any, model: JobModel, kind: str, what: Any) -> None:
    """One step, refused where the model refuses it."""
    if kind == "delete":
        assert txn.delete_many(what) == model.delete_many(what)
        return
    batch: list[Job] = what
    if kind == "change":
        jobs = model.all()
        batch = [CHANGES[name](jobs[n % len(jobs)], n) for name, n in what] if jobs else []
    # The rival leaves out what can be wrong with an id.
    if not refusals(model.jobs, batch):
        txn.upsert_many([python_job(job) for job in batch])
        model.upsert_many(batch)


@given(st.lists(st.tuples(st.lists(step, max_size=5), st.booleans(), st.booleans()), max_size=8))
def test_the_python_rival_answers_as_a_dict_does(
    transactions: list[tuple[list[tuple[str, Any]], bool, bool]],
) -> None:
    """In transactions that commit or abort, with snapshots that stay as they were."""
    db, committed = PythonJobDb(), JobModel()
    kept = []
    for steps, commits, looks in transactions:
        if any(kind == "snapshot" for kind, _ in steps):
            kept.append((Translated(db.snapshot()), committed.copy()))
        txn, model = db.write(), committed.copy()
        for kind, what in steps:
            if kind != "snapshot":
                take(txn, model, kind, what)
        same_answers(Translated(txn), model)
        if commits:
            txn.commit()
            committed = model
        else:
            txn.abort()
        # Not each time: what no snapshot has seen is changed in place.
        if looks:
            same_answers(Translated(db.snapshot()), committed)
    same_answers(Translated(db.snapshot()), committed)
    for reader, model in kept:
        same_answers(reader, model)


@given(new_jobs, st.lists(st.sampled_from(sorted(CHANGES)), max_size=3))
def test_a_job_survives_the_way_to_the_rival_and_back(job: Job, changes: list[str]) -> None:
    """Field by field, and a change there is the change here."""
    for name in changes:
        job = CHANGES[name](job, 1)
    assert native_job(python_job(job)) == job
    assert native_job(python_job(job).replace(reason="x")) == job.replace(reason="x")


@pytest.mark.parametrize("seen", [False, True])
def test_what_the_rival_did_in_place_is_undone(seen: bool) -> None:
    """Arrivals, departures and changes of one lane, aborted, with or without a reader before."""
    jobs = [new_job(id, queue="alpha", pools=("p",)) for id in IDS[:4]]
    db, model = PythonJobDb(), JobModel({job.id: job for job in jobs[:3]})
    with db.write() as txn:
        txn.upsert_many([python_job(job) for job in jobs[:3]])
    before = Translated(db.snapshot()) if seen else None
    txn = db.write()
    txn.upsert_many([python_job(jobs[3]), python_job(jobs[0].replace(priority=7))])
    txn.upsert(python_job(jobs[1].replace(state=JobState.FAILED)))
    txn.delete_many([jobs[2].id])
    if before is not None:
        same_answers(before, model)
    txn.abort()
    same_answers(Translated(db.snapshot()), model)
