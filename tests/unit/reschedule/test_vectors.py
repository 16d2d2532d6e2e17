"""Every row of the reschedule vectors that this package answers."""

from kit.reschedule_vectors import events_of, facts, policy_of, rows, tracker_of
from pyresched.model import LastReschedule, NodeId, RescheduleTracker, RunId, VerdictReason
from pyresched.reschedule import Severity, attempted, extended, next_reschedule, problems
from pyresched.reschedule.fit import DELAY_FUNCTIONS, nomad_fit

# Rows that carry a rule of docs/reschedule.md, by rule. Nothing else may differ.
EMPTY_TRACKER = ["D30"]
SATURATE = ["D59", "V41"]
MESSAGES = {"attempts_and_unlimited_ambiguous": 2, "attempts_do_not_fit_interval": 2}


def test_next_reschedule_agrees_with_every_generated_row() -> None:
    """Delay, time, eligibility and count of 4,000 random histories."""
    seen = rows("next_reschedule")
    assert len(seen) == 4000
    for row in seen:
        events = events_of(row["events"])
        policy, failed_at = policy_of(row["policy"]), row["fail_time_ns"]
        verdict = next_reschedule(policy, RescheduleTracker(events=events), failed_at)
        got = (verdict.delay, verdict.at, verdict.eligible, verdict.attempted)
        assert got == (row["next_delay_ns"], row["next_time_ns"], row["eligible"], row["attempted"])
        by_count = policy.unlimited or not events or verdict.attempted < policy.attempts
        assert (policy.enabled and by_count) == row["eligible_by_attempts"]


def test_histories_agree_step_by_step() -> None:
    """300 histories: verdicts, and the tracker after each replacement."""
    seen = rows("histories")
    assert len(seen) == 300
    for row in seen:
        policy, tracker = policy_of(row["policy"]), None
        for number, step in enumerate(row["steps"]):
            verdict = next_reschedule(policy, tracker, step["failed_ns"])
            assert (verdict.delay, verdict.at, verdict.eligible) == (
                step["delay_ns"],
                step["next_time_ns"],
                step["eligible"],
            )
            if not step["eligible"]:
                assert number == len(row["steps"]) - 1
                continue
            tracker = extended(
                tracker,
                policy,
                now=step["replaced_ns"],
                previous_run=RunId(""),
                previous_node=NodeId(""),
                delay=verdict.delay,
            )
            assert tracker.events == events_of(step["events_after"])
            assert tracker.last is LastReschedule.OK


def test_validation_agrees_with_every_generated_row() -> None:
    """2,981 policies: validity at both minima, number of messages, fit figures."""
    seen = rows("validate")
    assert len(seen) == 2981
    figures = 0
    for row in seen:
        policy = policy_of(row["policy"])
        errors = [p for p in problems(policy) if p.severity is Severity.ERROR]
        assert (not errors) == row["valid"]
        assert sum(MESSAGES.get(p.code.value, 1) for p in errors) == row["error_count"]
        older = [p for p in problems(policy, min_delay="5s") if p.severity is Severity.ERROR]
        assert (not older) == row["valid_min_delay_5s"]
        # Left out where there is no series, or no delay to divide by.
        known = policy.delay_function in DELAY_FUNCTIONS and policy.delay != 0
        assert ("viable" in row) == known
        if known:
            figures += 1
            fit = nomad_fit(policy)
            assert (fit.fits, fit.possible, fit.interval) == (
                row["viable"],
                row["possible_attempts"],
                row["recommended_interval_ns"],
            )
    assert figures > 2000


def test_facts_on_the_next_time_agree_or_carry_a_rule() -> None:
    """Each row that reaches the policy (steps 5 to 7); the others are about the run's state."""
    reached, differing = 0, []
    for row in facts("next_time"):
        alloc = row["alloc"]
        policy, tracker = policy_of(row["policy"]), tracker_of(alloc["tracker"])
        ends = [end for end in alloc["task_finished_at_ns"] if end is not None]
        failed_at = max(ends, default=alloc["modify_time_ns"])
        verdict = next_reschedule(policy, tracker, failed_at)
        agrees = verdict.delay == row["expected"]["delay_ns"]
        if row["expected"]["next_time_ns"] is not None:
            reached += 1
            agrees &= verdict.at == row["expected"]["next_time_ns"]
            agrees &= verdict.eligible == row["expected"]["eligible"]
        if not agrees:
            differing.append(row["id"])
    assert reached > 30
    assert [i for i in differing if i not in (*EMPTY_TRACKER, *SATURATE)] == []
    assert differing == [*EMPTY_TRACKER, *[i for i in SATURATE if i.startswith("D")]]


def test_facts_on_the_count_agree() -> None:
    """Used and limit."""
    for row in facts("reschedule_info"):
        policy, events = policy_of(row["policy"]), events_of(row["events"] or ())
        used = 0 if policy is None else attempted(policy, events, failed_at=row["at_ns"])
        verdict = next_reschedule(policy, RescheduleTracker(events=events), row["at_ns"])
        assert used == verdict.attempted == row["expected"]["attempted"], row["id"]
        assert verdict.attempts == row["expected"]["limit"], row["id"]


def test_facts_on_the_simple_helper_agree() -> None:
    """Failed runs that should run: eligible by the count alone."""
    reached = 0
    for row in facts("should_reschedule"):
        alloc = row["alloc"]
        if alloc["client_status"] != "failed" or alloc["desired_status"] in ("stop", "evict"):
            continue
        reached += 1
        policy, tracker = policy_of(row["policy"]), tracker_of(alloc["tracker"])
        verdict = next_reschedule(policy, tracker, row["fail_time_ns"])
        by_count = verdict.eligible or verdict.reason is VerdictReason.DELAY_PAST_INTERVAL
        assert by_count == row["expected"], row["id"]
    assert reached >= 5


def test_facts_on_the_tracker_agree() -> None:
    """What the tracker holds after a reschedule."""
    for row in facts("tracker_update"):
        alloc, now = row["prev_alloc"], row["now_ns"]
        policy, tracker = policy_of(row["policy"]), tracker_of(alloc["tracker"])
        failed_at = max(alloc["task_finished_at_ns"], default=alloc["modify_time_ns"])
        delay = next_reschedule(policy, tracker, failed_at).delay
        after = extended(
            tracker,
            policy,
            now=now,
            previous_run=RunId("prev"),
            previous_node=NodeId("node"),
            delay=delay,
        )
        assert after.events == events_of(row["expected"]["events"]), row["id"]
        assert after.last.value == row["expected"]["new_last_reschedule"]


def test_facts_on_validation_agree_or_carry_a_rule() -> None:
    """Codes in order of evaluation at the older minimum, and the figures of the fit check."""
    differing = []
    for row in facts("validate"):
        errors = [
            p
            for p in problems(policy_of(row["policy"]), min_delay="5s")
            if p.severity is Severity.ERROR
        ]
        agrees = [p.code.value for p in errors] == row["errors"]
        for problem in errors:
            # A few rows give the code without the figures.
            if problem.possible_attempts is not None and "possible_attempts" in row:
                agrees &= problem.possible_attempts == row["possible_attempts"]
                agrees &= problem.recommended_interval == row["recommended_interval_ns"]
        if not agrees:
            differing.append(row["id"])
    assert differing == [i for i in SATURATE if i.startswith("V")]


def test_facts_on_validation_by_job_type_agree() -> None:
    """Whether a job of the type may, or must, have a policy."""
    for row in facts("validate_group"):
        found = problems(policy_of(row["policy"]), job_type=row["job_type"])
        assert [p.code.value for p in found if p.severity is Severity.ERROR] == row["errors"]


def test_facts_on_the_lower_minimum_agree() -> None:
    """Errors and warnings where delays from one second are allowed."""
    for row in facts("validate_min_delay_1s_variant"):
        found = problems(policy_of(row["policy"]))
        by_severity = {
            severity: [p.code.value for p in found if p.severity is severity]
            for severity in Severity
        }
        assert by_severity[Severity.ERROR] == row["errors"], row["id"]
        assert by_severity[Severity.WARNING] == row["warnings"], row["id"]
