"""Every row of the reschedule vectors that policies and histories answer, and all rows' lists."""

from typing import Any

from kit.repository import ROOT
from kit.reschedule_vectors import (
    CHECKED_BY,
    NOT_APPLICABLE,
    RULES,
    assert_agree,
    events_of,
    facts,
    groups_of_facts,
    policy_of,
    rows,
    tracker_of,
)
from kit.reschedule_worlds import World
from pyresched import reschedule
from pyresched.model import (
    LastReschedule,
    NodeId,
    RescheduleBlock,
    RescheduleTracker,
    RunId,
    VerdictReason,
)
from pyresched.reschedule import (
    Exit,
    RestartAction,
    RestartPolicy,
    RestartVerdict,
    Severity,
    attempted,
    extended,
    next_reschedule,
    next_restart,
    problems,
    restarts_on_success,
)
from pyresched.reschedule.fit import DELAY_FUNCTIONS, nomad_fit
from pyresched.spec import merge_reschedule

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


def _codes(row: dict[str, Any], severity: Severity, **options: Any) -> list[str]:
    found = problems(policy_of(row["policy"]), **options)
    return [problem.code.value for problem in found if problem.severity is severity]


def _validate(row: dict[str, Any]) -> bool:
    """Codes in order of evaluation at the older minimum, and the figures of the fit check."""
    agrees = _codes(row, Severity.ERROR, min_delay="5s") == row["errors"]
    if "possible_attempts" in row:
        figures = [
            (problem.possible_attempts, problem.recommended_interval)
            for problem in problems(policy_of(row["policy"]), min_delay="5s")
            if problem.code.value == "attempts_do_not_fit_interval"
        ]
        agrees &= figures == [(row["possible_attempts"], row["recommended_interval_ns"])]
    return agrees


def _lower_minimum(row: dict[str, Any]) -> bool:
    found = (_codes(row, Severity.ERROR), _codes(row, Severity.WARNING))
    return found == (row["errors"], row["warnings"])


def _merge(row: dict[str, Any]) -> bool:
    blocks = [
        None
        if block is None
        else RescheduleBlock(
            **{
                name.removesuffix("_ns"): value
                for name, value in block.items()
                if value is not None
            }
        )
        for block in (row["job_level"], row["group_level"])
    ]
    policy, _ = merge_reschedule(*blocks, row["job_type"])
    return policy == policy_of(row["expected"])


def _bucket(row: dict[str, Any], now: int, **shared: Any) -> str:
    """What becomes of a run that has not failed, or is not to go on."""
    shared = {"policy": row["policy"], "job_type": "service", **shared}
    return World([row["alloc"]], now, **shared).happens().bucket("job-0")[0]


def _next_time(row: dict[str, Any]) -> bool:
    alloc, expected = row["alloc"], row["expected"]
    policy, tracker = policy_of(row["policy"]), tracker_of(alloc["tracker"])
    ends = [end for end in alloc["task_finished_at_ns"] if end is not None]
    failed_at = max(ends, default=alloc["modify_time_ns"])
    verdict = next_reschedule(policy, tracker, failed_at)
    if verdict.delay != expected["delay_ns"]:
        return False
    if expected["next_time_ns"] is not None:
        found = (verdict.at, verdict.eligible)
        return found == (expected["next_time_ns"], expected["eligible"])
    if not verdict.eligible:
        return True
    # The policy would, but is not asked.
    found = _bucket(row, alloc["modify_time_ns"], job_type=row["job_type"])
    return found in ("untainted", "dropped")


def _should_reschedule(row: dict[str, Any]) -> bool:
    """By the count alone; and only what failed and is to go on."""
    alloc, at = row["alloc"], row["fail_time_ns"]
    if alloc["client_status"] != "failed" or alloc["desired_status"] in ("stop", "evict"):
        return (_bucket(row, at) in ("now", "later")) == row["expected"]
    verdict = next_reschedule(policy_of(row["policy"]), tracker_of(alloc["tracker"]), at)
    by_count = verdict.eligible or verdict.reason is VerdictReason.DELAY_PAST_INTERVAL
    return by_count == row["expected"]


def _info(row: dict[str, Any]) -> bool:
    policy, events = policy_of(row["policy"]), events_of(row["events"] or ())
    used = 0 if policy is None else attempted(policy, events, failed_at=row["at_ns"])
    verdict = next_reschedule(policy, RescheduleTracker(events=events), row["at_ns"])
    expected = (row["expected"]["attempted"], row["expected"]["limit"])
    return (verdict.attempted, verdict.attempts) == expected and used == verdict.attempted


def _tracker(row: dict[str, Any]) -> bool:
    alloc, now = row["prev_alloc"], row["now_ns"]
    policy, tracker = policy_of(row["policy"]), tracker_of(alloc["tracker"])
    failed_at = max(alloc["task_finished_at_ns"], default=alloc["modify_time_ns"])
    delay = next_reschedule(policy, tracker, failed_at).delay
    names = {"previous_run": RunId("prev"), "previous_node": NodeId("node")}
    after = extended(tracker, policy, now=now, delay=delay, **names)
    marks = {row["expected"]["new_last_reschedule"], row["expected"]["prev_last_reschedule"]}
    return after.events == events_of(row["expected"]["events"]) and marks == {after.last.value}


def _followups(row: dict[str, Any]) -> bool:
    expected = [(each["wait_until_ns"], each["alloc_count"]) for each in row["expected"]]
    return reschedule.followups(row["reschedule_times_ns"], row["window_ns"]) == expected


def _display(row: dict[str, Any]) -> bool:
    """Used of limit, nothing without a history or a limit; or the policy in a line."""
    if "events" not in row:
        return str(policy_of(row["policy"])) == row["expected_value"]
    events = events_of(row["events"])
    verdict = next_reschedule(
        policy_of(row["policy"]), RescheduleTracker(events=events), row["modify_time_ns"]
    )
    shown = bool(events) and verdict.attempts > 0
    text = f"{verdict.attempted}/{verdict.attempts}" if shown else None
    return text == row["expected_value"] and shown == (row["expected_label"] is not None)


_EXITS = {
    "restart_signal": Exit.ASKED,
    "restart_signal_failure": Exit.FAILED,
    "start_error_unrecoverable": Exit.UNRECOVERABLE,
    0: Exit.SUCCEEDED,
}


def _restart_of(row: dict[str, Any]) -> RestartPolicy:
    return RestartPolicy(
        attempts=row["attempts"],
        interval=row["interval_ns"],
        delay=row["delay_ns"],
        mode=row["mode"],
    )


def _restarts(row: dict[str, Any]) -> bool:
    """What follows each end of a process, all at the start of the window; jitter of both ends."""
    policy = _restart_of(row["policy"])
    again = restarts_on_success(row["job_type"], **row.get("lifecycle", {}))
    for bits in (0, 2**64 - 1):
        history: tuple[int, ...] = ()
        found = []
        for end in row.get("exits") or row["events"]:
            ended = _EXITS.get(end, Exit.FAILED)
            verdict = next_restart(policy, history, ended, now=0, on_success=again, bits=bits)
            history = verdict.history
            found.append(_class_of(verdict, policy))
        if found != row["expected"]:
            return False
    return True


def _class_of(verdict: RestartVerdict, policy: RestartPolicy) -> str:
    if verdict.action is not RestartAction.RESTART:
        return "terminated" if verdict.action is RestartAction.DONE else "not_restarting"
    if verdict.wait == 0:
        return "restarting_immediately"
    if policy.delay <= verdict.wait < policy.delay * 5 // 4:
        return "restarting"
    assert verdict.wait > policy.delay
    return "restarting_next_interval" if verdict.wait <= policy.interval else "later"


def _restart_codes(row: dict[str, Any]) -> bool:
    return [each.code.value for each in _restart_of(row["policy"]).problems()] == row["errors"]


AGREES = {
    "validate": _validate,
    "validate_group": lambda row: (
        _codes(row, Severity.ERROR, job_type=row["job_type"]) == row["errors"]
    ),
    "validate_min_delay_1s_variant": _lower_minimum,
    "merge": _merge,
    "next_time": _next_time,
    "should_reschedule": _should_reschedule,
    "reschedule_info": _info,
    "tracker_update": _tracker,
    "followup_batching": _followups,
    "display": _display,
    "restart": _restarts,
    "restart_validate": _restart_codes,
}


def test_facts_on_policies_and_histories_agree_or_carry_a_rule() -> None:
    """Each row of twelve groups, with the exact lists of those that differ."""
    assert_agree("reschedule", AGREES)


def test_every_fact_is_checked_or_listed() -> None:
    """No group is forgotten, no list names a row twice or one that is not there."""
    checked = {group for groups in CHECKED_BY.values() for group in groups}
    left_out = NOT_APPLICABLE.keys()
    ids = [row["id"] for group in groups_of_facts() for row in facts(group)]
    assert len(set(ids)) == len(ids) == 351
    for group in groups_of_facts():
        listed = {row["id"] for row in facts(group)} <= left_out
        assert listed is not (group in checked), group
    lists = [*NOT_APPLICABLE, *(id for ids in RULES.values() for id in ids)]
    assert len(set(lists)) == len(lists)
    assert set(lists) <= set(ids)


def test_the_document_lists_the_same_rows() -> None:
    """The table of rules in docs/reschedule.md says what these tests hold."""
    document = (ROOT / "docs" / "reschedule.md").read_text()
    table = document.split("\n## Rules\n")[1].split("\n## ")[0]
    listed = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            rule, *_, ids = (cell.strip() for cell in line.strip("|").split(" | "))
            listed[rule.strip("`")] = sorted(_ids(ids))
    expected = {**RULES, "n/a": tuple(NOT_APPLICABLE)}
    none: dict[str, list[str]] = {rule: [] for rule in listed.keys() - expected.keys()}
    assert listed == {**none, **{rule: sorted(ids) for rule, ids in expected.items()}}


def _ids(cell: str) -> list[str]:
    """The rows that a cell names before any semicolon; `R26 to R28` are three."""
    found: list[str] = []
    for part in cell.split(";", maxsplit=1)[0].split(", "):
        first, _, last = part.partition(" to ")
        prefix = first.rstrip("0123456789")
        width = len(first) - len(prefix)
        end = int((last or first).removeprefix(prefix)) if part != "none" else 0
        numbers = range(int(first.removeprefix(prefix)), end + 1) if end else ()
        found += [f"{prefix}{n:0{width}}" for n in numbers]
    return found
