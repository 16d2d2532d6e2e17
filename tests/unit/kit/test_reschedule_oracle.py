"""The oracle of rescheduling agrees with every row of the vectors, none left out."""

from typing import Any

import pytest

from kit import reschedule_oracle as oracle
from kit import reschedule_oracle_groups as groups
from kit import reschedule_oracle_restart as restart
from kit import reschedule_oracle_runs as runs
from kit.reschedule_oracle import Policy
from kit.reschedule_oracle_runs import Alloc, events_of
from kit.reschedule_vectors import facts, groups_of_facts, rows

SECOND = 1_000_000_000


def _validate(row: dict[str, Any]) -> bool:
    policy = Policy.of(row["policy"])
    found = oracle.codes(policy, 5 * SECOND)
    agrees = found == row["errors"] and (not found) == row["ok"]
    if "possible_attempts" in row:
        fit = oracle.fit_of(policy)
        figures = (row["possible_attempts"], row["recommended_interval_ns"])
        agrees &= (fit.possible, fit.interval) == figures
    return agrees


def _lower_minimum(row: dict[str, Any]) -> bool:
    policy = Policy.of(row["policy"])
    found = (oracle.codes(policy, SECOND), oracle.warnings(policy, SECOND))
    return found == (row["errors"], row["warnings"])


def _next_time(row: dict[str, Any]) -> bool:
    policy, alloc = Policy.of(row["policy"]), Alloc.of(row["alloc"])
    time, eligible = runs.next_time(policy, alloc, row["job_type"])
    delay = oracle.next_delay(policy, alloc.events or (), runs.last_event_time(alloc))
    return row["expected"] == {"eligible": eligible, "next_time_ns": time, "delay_ns": delay}


def _tracker(row: dict[str, Any]) -> bool:
    found = runs.replaced_tracker(
        Policy.of(row["policy"]), Alloc.of(row["prev_alloc"]), row["now_ns"]
    )
    marks = (row["expected"]["new_last_reschedule"], row["expected"]["prev_last_reschedule"])
    return tuple(found) == events_of(row["expected"]["events"]) and marks == ("ok", "ok")


def _followups(row: dict[str, Any]) -> bool:
    expected = [(e["wait_until_ns"], e["alloc_count"]) for e in row["expected"]]
    return oracle.batches(row["reschedule_times_ns"], row["window_ns"]) == expected


def _scores(row: dict[str, Any]) -> bool:
    tolerance = row.get("tolerance", 1e-9)
    if "appended_scores" in row:
        final = runs.mean(list(row["appended_scores"].values()))
        return final == pytest.approx(row["expected_final"], abs=tolerance)
    expected = (row["expected_binpack"], row["expected_spread"])
    return runs.packing(row["free_cpu"], row["free_mem"]) == pytest.approx(expected, abs=tolerance)


def _filtered(row: dict[str, Any]) -> bool:
    found = runs.filtered(Alloc.of(row["alloc"]), row["job_type"])
    return row["expected"] == {"untainted": found == "untainted", "ignore": found == "dropped"}


def _bucket(row: dict[str, Any]) -> bool:
    deployment = row["deployment"] or {"id": "", "active": False}
    run = runs.Pass(
        policy=Policy.of(row["policy"]),
        job_type=row["job_type"],
        now=row["now_ns"],
        eval_id=row["eval_id"],
        active=deployment["id"] if deployment["active"] else "",
    )
    found, time = runs.bucket(Alloc.of(row["alloc"]), run, disconnecting=row["is_disconnecting"])
    return row["expected"] == {"bucket": found, "reschedule_time_ns": time}


def _reconciled(row: dict[str, Any]) -> bool:
    found = groups.reconciled(row)
    return {name: found[name] for name in row["expected"]} == row["expected"]


def _forced(row: dict[str, Any]) -> bool:
    marked = runs.forced(
        client=row["client_status"],
        replaced=bool(row["next_allocation"]),
        enabled=row["policy_enabled"],
        already=row["already_forced"],
    )
    return marked == row["expected_marked"]


def _watched(row: dict[str, Any]) -> bool:
    fail, permit = groups.watched(
        healthy=row["healthy"],
        deadline=row["progress_deadline_ns"],
        active=row["active"],
        eligible=row["eligible"],
        permitted=row["already_permitted"],
    )
    return row["expected"] == {"fail": fail, "permit": permit}


def _require_by(row: dict[str, Any]) -> bool:
    found = groups.require_by(
        row["event"], row["at_ns"], row["progress_deadline_ns"], row["require_by_before_ns"]
    )
    return found == row["expected_require_by_ns"]


def _restart(row: dict[str, Any]) -> bool:
    found = restart.classes(
        restart.Restart.of(row["policy"]),
        row.get("exits") or row["events"],
        job_type=row["job_type"],
        lifecycle=row.get("lifecycle"),
    )
    return found == row["expected"]


def _display(row: dict[str, Any]) -> bool:
    if "expected_label" not in row:
        return oracle.sentence(Policy.of(row["policy"])) == row["expected_value"]
    if "now_ns" in row:
        label, text = (
            "Reschedule Eligibility",
            oracle.until(row["followup_wait_until_ns"], row["now_ns"]),
        )
    else:
        label = "Reschedule Attempts"
        text = oracle.attempts_label(
            Policy.of(row["policy"]), events_of(row["events"]) or (), row["modify_time_ns"]
        )
    expected = (row["expected_label"], row["expected_value"])
    return ((label, text) if text is not None else (None, None)) == expected


AGREES = {
    "validate": _validate,
    "validate_group": lambda row: (
        oracle.group_codes(Policy.of(row["policy"]), row["job_type"], 5 * SECOND) == row["errors"]
    ),
    "validate_min_delay_1s_variant": _lower_minimum,
    "merge": lambda row: (
        oracle.merged(row["job_level"], row["group_level"], row["job_type"])
        == Policy.of(row["expected"])
    ),
    "next_time": _next_time,
    "should_reschedule": lambda row: (
        runs.should_reschedule(
            Policy.of(row["policy"]), Alloc.of(row["alloc"]), row["fail_time_ns"]
        )
        == row["expected"]
    ),
    "reschedule_info": lambda row: (
        oracle.attempts_used(Policy.of(row["policy"]), events_of(row["events"]) or (), row["at_ns"])
        == (row["expected"]["attempted"], row["expected"]["limit"])
    ),
    "last_event_time": lambda row: (
        runs.last_event_time(Alloc.of({"client_status": "", "desired_status": "", **row["alloc"]}))
        == row["expected_ns"]
    ),
    "tracker_update": _tracker,
    "followup_batching": _followups,
    "gc_eligible": lambda row: runs.collectable(row) == row["expected"],
    "scoring": _scores,
    "penalty_nodes": lambda row: runs.penalised(row["prev"]) == set(row["expected_penalty_nodes"]),
    "classify": lambda row: (
        runs.klass(Alloc.of(row["alloc"], node=row["node_state"]), row["now_ns"]) == row["expected"]
    ),
    "should_filter": _filtered,
    "filter_reschedulable": _bucket,
    "reconcile": _reconciled,
    "client_update_eval": lambda row: runs.trigger(row) == row["expected_trigger"],
    "force_reschedule_rpc": _forced,
    "deployment_watcher": _watched,
    "progress_deadline": _require_by,
    "restart": _restart,
    "restart_validate": lambda row: (
        restart.restart_codes(restart.Restart.of(row["policy"])) == row["errors"]
    ),
    "display": _display,
}


def test_the_oracle_answers_every_fact() -> None:
    """All 351 rows of all 24 groups."""
    assert list(AGREES) == groups_of_facts()
    differing = [
        row["id"] for group, agrees in AGREES.items() for row in facts(group) if not agrees(row)
    ]
    assert differing == []
    assert sum(len(facts(group)) for group in AGREES) == 351


def test_the_oracle_validates_as_the_reference() -> None:
    """2,981 policies at both minima, with messages and figures."""
    for row in rows("validate"):
        policy = Policy.of(row["policy"])
        found, older = oracle.codes(policy, SECOND), oracle.codes(policy, 5 * SECOND)
        valid = (row["valid"], row["valid_min_delay_5s"], row["error_count"])
        assert (not found, not older, oracle.error_count(found)) == valid
        if "viable" in row:
            fit = oracle.fit_of(policy)
            figures = (row["viable"], row["possible_attempts"], row["recommended_interval_ns"])
            assert (fit.viable, fit.possible, fit.interval) == figures


def test_the_oracle_reschedules_as_the_reference() -> None:
    """4,000 histories, where no events are no tracker."""
    for row in rows("next_reschedule"):
        policy, at, events = Policy.of(row["policy"]), row["fail_time_ns"], events_of(row["events"])
        delay = oracle.next_delay(policy, events, at)
        _, eligible = oracle.reschedulable(policy, events or None, at, tracker=bool(events))
        assert (delay, at + delay, eligible) == (
            row["next_delay_ns"],
            row["next_time_ns"],
            row["eligible"],
        )
        assert oracle.eligible_by_attempts(policy, events, at) == row["eligible_by_attempts"]
        assert oracle.attempts_used(policy, events, at)[0] == row["attempted"]


def test_the_oracle_keeps_histories_as_the_reference() -> None:
    """300 sequences of failures, step by step."""
    for row in rows("histories"):
        policy, events = Policy.of(row["policy"]), ()
        for step in row["steps"]:
            at = step["failed_ns"]
            delay = oracle.next_delay(policy, events, at)
            _, eligible = oracle.reschedulable(policy, events or None, at, tracker=bool(events))
            got = (delay, at + delay, eligible)
            assert got == (step["delay_ns"], step["next_time_ns"], step["eligible"])
            if eligible:
                now = step["replaced_ns"]
                events = (*oracle.pruned(policy, events, now), oracle.Event(now, delay))
                assert events == events_of(step["events_after"])
