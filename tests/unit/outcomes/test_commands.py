"""What users ask of jobs that ran: stop, force, another policy."""

import pytest

from kit.driving import node, report, said, scheduler
from kit.jobs import gang, job, leased
from kit.readers import DictReader
from pyresched.config import SchedulingConfig
from pyresched.errors import InputError
from pyresched.model import NANOS, JobState, Outcome, ReschedulePolicy
from pyresched.outcomes import force, set_policy
from pyresched.reschedule import Dialect
from pyresched.store import MemoryJournal

SECOND = NANOS
ONCE = ReschedulePolicy(attempts=1, interval=3600 * SECOND, delay=5 * SECOND)
TWICE = ReschedulePolicy(attempts=2, interval=3600 * SECOND, delay=7 * SECOND)
NEVER = ReschedulePolicy()
CONFIG = SchedulingConfig()


def running(*jobs, **fields):
    """A scheduler on which *jobs* run since 0."""
    made = scheduler(node(), **fields)
    made.submit(jobs, 0)
    made.step(0)
    return made


def row(made, id="a"):
    """A job as it is."""
    return made.snapshot().get(id)


def exhausted(made, *ids, now=100 * SECOND):
    """Let jobs fail until their policy, `ONCE`, is used up."""
    report(made, ids[0], kind="failed", now=now)
    made.step(now + 5 * SECOND)
    report(made, ids[0], kind="failed", now=now + 6 * SECOND)
    assert {row(made, id).state for id in ids} == {JobState.FAILED}
    return now + 6 * SECOND


def test_a_stopped_service_is_back_at_its_place_at_once() -> None:
    """Without blame and without budget."""
    made = running(job("a", job_type="service", policy=ONCE))
    made.stop(["a", "unknown"], 5, reason="move on")
    assert (row(made).state, row(made).runs[-1].outcome) == (JobState.QUEUED, Outcome.RETURNED)
    assert row(made).runs[-1].reason == "move on"
    made.step(5)
    assert row(made).tracker is None
    assert made.check() == []


def test_a_stopped_batch_job_goes_by_its_policy_and_uses_budget() -> None:
    """It waits for the delay; a second stop finds no budget, and its job is cancelled."""
    made = running(job("a", policy=ONCE))
    made.stop(["a"], 5)
    assert (row(made).state, row(made).eligible_at) == (JobState.BACKING_OFF, 5 + ONCE.delay)
    assert row(made).runs[-1].reason == "stopped"
    assert not made.stop(["a"], 6), "there is nothing to stop"
    made.step(5 + ONCE.delay)
    assert len(row(made).tracker.events) == 1
    made.stop(["a"], 10 * SECOND)
    assert row(made).state is JobState.CANCELLED
    assert made.check() == []


def test_a_stopped_batch_job_without_rescheduling_is_cancelled() -> None:
    """With its whole gang."""
    made = running(*gang("g", policy=NEVER))
    made.stop(["g.1"], 5)
    assert {row(made, id).state for id in ("g.0", "g.1")} == {JobState.CANCELLED}
    assert made.check() == []


def test_a_forced_job_waits_no_longer_and_is_not_counted() -> None:
    """Its history says so, and its one attempt is left."""
    made = running(job("a", policy=ONCE))
    report(made, "a", kind="failed", now=9 * SECOND)
    made.force(["a"], 10 * SECOND)
    assert (row(made).state, row(made).reason) == (JobState.QUEUED, "forced")
    assert not made.force(["a"], 10 * SECOND), "it is queued already"
    made.step(10 * SECOND)
    assert [event.forced for event in row(made).tracker.events] == [True]
    assert (row(made).reason, row(made).retry_delay) == ("", None)
    (event,) = (e for e in made.journal.events_since(0)[0] if e.kind.value == "rescheduled")
    assert event.reason == "forced"
    assert not made.force(["a"], 11 * SECOND), "it runs"
    report(made, "a", kind="failed", now=11 * SECOND)
    assert row(made).state is JobState.BACKING_OFF
    assert made.check() == []


def test_a_job_that_failed_for_good_is_forced_with_its_gang() -> None:
    """Past its limit, keeping its history; nothing is counted, so that it ends again."""
    made = running(*gang("g", policy=ONCE))
    now = exhausted(made, "g.0", "g.1")
    made.force(["g.1"], now)
    made.step(now)
    for id in ("g.0", "g.1"):
        assert row(made, id).state is JobState.LEASED
        assert [event.forced for event in row(made, id).tracker.events] == [False, True]
    assert made.check() == []
    report(made, "g.0", kind="failed", now=now + 1)
    assert row(made, "g.0").reason == "exhausted"


def test_a_gang_that_waits_is_forced_as_one() -> None:
    """By any of its members."""
    made = running(*gang("g", policy=ONCE))
    report(made, "g.0", kind="failed", now=1)
    made.force(["g.1"], 2)
    assert {row(made, id).state for id in ("g.0", "g.1")} == {JobState.QUEUED}
    assert made.check() == []


def test_a_disabled_policy_does_not_hold_up_force() -> None:
    """Vector FR2 differs: rule `force`."""
    made = running(job("a", policy=NEVER))
    report(made, "a", kind="failed", now=1)
    made.force(["a"], 2)
    made.step(2)
    assert row(made).state is JobState.LEASED


def test_force_says_what_it_cannot_do() -> None:
    """A journal that forgets; a sysbatch job; what succeeded or was refused stays."""
    made = running(job("a", policy=NEVER), journal=MemoryJournal(keep_ended=False))
    report(made, "a", kind="failed", now=1)
    with pytest.raises(InputError, match="'a': not there; this journal forgets"):
        made.force(["a"], 2)
    kept = running(job("a"), job("huge", 10**6, 1))
    report(kept, "a", kind="succeeded", now=1)
    assert not kept.force(["a", "huge", "unknown"], 2)
    failed = leased(job("s", job_type="sysbatch"))
    ended = failed.runs[-1].replace(ended_at=2, outcome=Outcome.FAILED)
    failed = failed.replace(state=JobState.FAILED, runs=(ended,), ended_at=2)
    with pytest.raises(InputError, match="sysbatch job is not rescheduled"):
        force(["s"], DictReader([failed]), CONFIG, now=3)


def test_another_policy_revives_what_was_exhausted() -> None:
    """The verdict is made anew from the failure and the history; members as one."""
    made = running(*gang("g", policy=ONCE))
    now = exhausted(made, "g.0", "g.1")
    made.set_policy(["g.0"], TWICE, now + 1)
    for id in ("g.0", "g.1"):
        assert row(made, id).state is JobState.BACKING_OFF
        assert row(made, id).eligible_at == now + TWICE.delay
        assert row(made, id).policy == TWICE
    assert made.check() == []
    made.step(now + TWICE.delay)
    report(made, "g.0", kind="failed", now=now + TWICE.delay + 1)
    assert row(made, "g.0").reason == "exhausted"
    assert said(made, "g.0")[-2:] == ["failed", "exhausted"]


def test_another_policy_counts_for_who_waits() -> None:
    """The delay is that of the new one; without attempts nothing follows."""
    made = running(job("a", policy=ONCE))
    report(made, "a", kind="failed", now=SECOND)
    made.set_policy(["a"], TWICE, 2 * SECOND)
    assert (row(made).state, row(made).eligible_at) == (JobState.BACKING_OFF, 8 * SECOND)
    assert not made.set_policy(["a"], TWICE, 2 * SECOND)
    made.set_policy(["a"], NEVER, 3 * SECOND)
    assert (row(made).state, row(made).reason) == (JobState.FAILED, "disabled")
    assert row(made).ended_at == SECOND
    made.set_policy(["a"], None, 4 * SECOND)
    assert row(made).state is JobState.BACKING_OFF, "batch jobs have one by default"
    assert made.check() == []


def test_a_job_that_was_due_waits_on_if_the_new_policy_says_so() -> None:
    """A delay is never under the policy's."""
    made = running(job("a", 4000, 1024, policy=ONCE))
    made.submit([job("b", 4000, 1024)], 1)
    report(made, "a", kind="failed", now=SECOND)
    made.step(2 * SECOND)
    made.step(6 * SECOND)
    assert row(made).state is JobState.QUEUED
    made.set_policy(["a"], TWICE, 6 * SECOND)
    assert (row(made).state, row(made).eligible_at) == (JobState.BACKING_OFF, 8 * SECOND)
    assert made.check() == []


def test_a_smaller_policy_needs_fewer_events() -> None:
    """INV-J7 holds of the policy that there is."""
    many = ReschedulePolicy(attempts=5, interval=3600 * SECOND, delay=5 * SECOND)
    made = running(job("a", policy=many))
    for n in range(1, 4):
        report(made, "a", kind="failed", now=100 * n * SECOND)
        made.step((100 * n + 5) * SECOND)
    made.set_policy(["a"], ONCE, 400 * SECOND)
    assert len(row(made).tracker.events) == 1
    assert made.check() == []
    report(made, "a", kind="failed", now=401 * SECOND)
    assert row(made).reason == "exhausted"


def test_a_policy_that_a_submit_would_refuse_is_refused() -> None:
    """By job and what is wrong; one that ended otherwise keeps its own."""
    made = running(job("a"), job("b"))
    report(made, "a", kind="succeeded", now=1)
    with pytest.raises(InputError, match="job 'b': policy: "):
        made.set_policy(["b"], ReschedulePolicy(attempts=1, delay=SECOND), 2)
    with pytest.raises(InputError, match="no ReschedulePolicy"):
        made.set_policy(["b"], 3, 2)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="attempts is 1000"):
        made.set_policy(["b"], ReschedulePolicy(attempts=10**30, interval="1h", delay="30s"), 2)
    assert not made.set_policy(["a", "unknown"], TWICE, 2)
    reader = DictReader([leased(job("s", job_type="system"))])
    with pytest.raises(InputError, match="a system job takes no policy"):
        set_policy(["s"], TWICE, reader, CONFIG, now=3)


def test_a_policy_is_held_to_what_the_configuration_asks_of_a_submit() -> None:
    """The least delay, and by which check attempts must fit."""
    hasty = ReschedulePolicy(attempts=2, interval="1m", delay="1s")
    endless = ReschedulePolicy(
        attempts=15, interval="26m30s", delay="30s", delay_function="exponential", max_delay="2m"
    )
    strict = SchedulingConfig(reschedule_min_delay=5 * SECOND, reschedule_dialect=Dialect.EXACT)
    known = DictReader([job("a")])
    for policy, sentence in ((hasty, "at least 5s"), (endless, "may never stop")):
        assert set_policy(["a"], policy, known, SchedulingConfig(), now=1)
        with pytest.raises(InputError, match=sentence):
            set_policy(["a"], policy, known, strict, now=1)
