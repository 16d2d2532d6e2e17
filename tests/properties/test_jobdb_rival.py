"""The rival of the benchmarks is a job db too: it gives the answers that ours gives."""

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from kit.job_model import JobModel, refusals
from kit.job_strategies import CHANGES, IDS, few, new_jobs, same_answers
from rivals.jobdb import PythonJobDb

if TYPE_CHECKING:
    from pyresched.model import Job

step = st.one_of(
    st.tuples(st.just("upsert"), st.lists(new_jobs, max_size=4)),
    st.tuples(
        st.just("change"),
        st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 99)), max_size=3),
    ),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(IDS), max_size=8)),
    st.tuples(st.just("snapshot"), few),
)


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
        txn.upsert_many(batch)
        model.upsert_many(batch)


@given(st.lists(st.tuples(st.lists(step, max_size=5), st.booleans()), max_size=8))
def test_the_python_rival_answers_as_a_dict_does(
    transactions: list[tuple[list[tuple[str, Any]], bool]],
) -> None:
    """In transactions that commit or abort, with snapshots that stay as they were."""
    db, committed = PythonJobDb(), JobModel()
    kept = []
    for steps, commits in transactions:
        if any(kind == "snapshot" for kind, _ in steps):
            kept.append((db.snapshot(), committed.copy()))
        txn, model = db.write(), committed.copy()
        for kind, what in steps:
            if kind != "snapshot":
                take(txn, model, kind, what)
        same_answers(txn, model)
        if commits:
            txn.commit()
            committed = model
        else:
            txn.abort()
        same_answers(db.snapshot(), committed)
    for reader, model in kept:
        same_answers(reader, model)
