"""The facts on what follows an end of a run, each told to a small world of the scheduler."""

from typing import Any

from kit.driving import node, report, said, scheduler
from kit.jobs import gang, job
from kit.reschedule_vectors import assert_agree
from kit.reschedule_worlds import World, tally
from pyresched.model import NANOS, DisconnectRule, GroupRules, JobState, ReschedulePolicy
from pyresched.outcomes import Report, ReportKind
from pyresched.outcomes.deployments import required_progress, watch

ONCE = ReschedulePolicy(attempts=1, interval=3600 * NANOS, delay=5 * NANOS)
NEVER = ReschedulePolicy()
AWAY = GroupRules(disconnect=DisconnectRule(lost_after=3600 * NANOS, replace=False))
A_DAY = {
    "attempts": 1,
    "interval_ns": 86400 * NANOS,
    "delay_ns": 5 * NANOS,
    "delay_function": "constant",
    "max_delay_ns": 0,
    "unlimited": False,
}


def running(*jobs):
    """A scheduler on which *jobs* run since 0."""
    made = scheduler(node(cores=8))
    made.submit(jobs, 0)
    made.step(0)
    report(made, *(each.id for each in jobs), kind="running", now=0)
    return made


def _failed_at(row: dict[str, Any]) -> bool:
    """The failure time that is stored: of a run, or of a gang, whose members are as its tasks.

    What no task tells is when the report came.
    """
    alloc = row["alloc"]
    ends = [end for end in alloc["task_finished_at_ns"] if end is not None]
    ends = ends or [alloc["modify_time_ns"]]
    made = running(*(gang("g", size=len(ends)) if len(ends) > 1 else [job("g.0")]))
    made.report(
        [
            Report(
                run_id=made.snapshot()[f"g.{n}"].runs[-1].id,
                job_id=f"g.{n}",
                kind=ReportKind.FAILED,
                at=end,
            )
            for n, end in enumerate(ends)
        ],
        alloc["modify_time_ns"],
    )
    return made.snapshot()["g.0"].failed_at == row["expected_ns"]


def _filtered(row: dict[str, Any]) -> bool:
    """Counted, dropped, or left to the policy, which has nothing to say of a run that goes on."""
    world = World([row["alloc"]], 10**18, policy=A_DAY, job_type=row["job_type"]).happens()
    found, _ = world.bucket("job-0")
    if row["expected"]["untainted"] or row["expected"]["ignore"]:
        return found == ("untainted" if row["expected"]["untainted"] else "dropped")
    goes_on = row["alloc"]["client_status"] == "running"
    return found == "untainted" if goes_on else found in ("now", "later")


def _bucket(row: dict[str, Any]) -> bool:
    """The bucket, and the time at which its replacement is due."""
    alloc, disconnecting = dict(row["alloc"]), row["is_disconnecting"]
    if disconnecting:
        rule = {"lost_after_ns": 3600 * NANOS, "replace": True}
        alloc = {"disconnect": rule, **alloc, "node_state": "disconnected"}
        if alloc["client_status"] == "unknown":
            alloc["states"] = [["unknown", row["now_ns"] - 1]]
    shared = {name: row[name] for name in ("policy", "job_type", "deployment")}
    world = World([alloc], row["now_ns"], **shared).happens()
    assert world.made.check() == []
    found, time = world.bucket("job-0", disconnecting=disconnecting)
    return row["expected"] == {"bucket": found, "reschedule_time_ns": time}


def _reconciled(row: dict[str, Any]) -> bool:
    """One pass over a group: what is placed, stopped, left, put off, and which of its members.

    Members are jobs here, so what was replaced already is a run of the job of its successor.
    """
    rows = [
        alloc
        for alloc in row["allocs"]
        if not alloc.get("previous_allocation")
        and (not alloc.get("next_allocation") or alloc.get("states"))
    ]
    shared = {
        name: row.get(name) for name in ("policy", "job_type", "deployment", "count", "disconnect")
    }
    world = World(rows, row["now_ns"], **shared).happens()
    assert world.made.check() == []
    found, expected = tally(world), dict(row["expected"])
    if not set(expected.get("place_indexes", ())) <= {alloc["index"] for alloc in rows}:
        del expected["place_indexes"]  # a free name; here the job that is short keeps its own
    return {name: found[name] for name in expected} == expected


def _triggered(row: dict[str, Any]) -> bool:
    """Whether a report makes something follow."""
    client, before = row["update_client_status"], row["server_client_status"]
    policy = ONCE if row["eligible"] else NEVER
    made = running(job("a", policy=policy, rules=AWAY))
    kind = {"failed": "failed", "complete": "succeeded", "running": "running"}[client]
    run_id = made.snapshot()["a"].runs[-1].id
    if before == "unknown":
        made = running(
            job("a", policy=ONCE, rules=GroupRules(disconnect=DisconnectRule(lost_after=9)))
        )
        made.disconnect_nodes(["node-1"], 1)
        made.nodes_back(["node-1"], 2)
    if before == "failed":
        report(made, "a", kind="failed", now=1)
    news = Report(run_id=run_id, job_id="a", kind=ReportKind(kind), at=3)
    changes = made.report([news], 3)
    follows = {
        "alloc-failure": bool(changes) and made.snapshot()["a"].state is JobState.BACKING_OFF,
        "reconnect": "reconnected" in said(made, "a"),
        None: not changes or made.snapshot()["a"].state.terminal,
    }
    return follows[row["expected_trigger"]]


def _forced(row: dict[str, Any]) -> bool:
    """Whether forcing a job changes anything."""
    made = running(job("a", policy=ONCE if row["policy_enabled"] else NEVER))
    if row["client_status"] == "lost":
        made.lose_nodes(["node-1"], 1)
    else:
        report(made, "a", kind="failed", now=1)
    if row["next_allocation"]:
        made.step(1 + ONCE.delay)
    if row["already_forced"]:
        made.force(["a"], 2)
    return bool(made.force(["a"], 2 + ONCE.delay)) == row["expected_marked"]


def _watched(row: dict[str, Any]) -> bool:
    found = watch(
        healthy=row["healthy"],
        progress_deadline=row["progress_deadline_ns"],
        active=row["active"],
        eligible=row["eligible"],
        permitted=row["already_permitted"],
    )
    return found._asdict() == row["expected"]


def _required(row: dict[str, Any]) -> bool:
    found = required_progress(
        row["require_by_before_ns"],
        row["at_ns"],
        row["progress_deadline_ns"],
        healthy=row["event"] == "alloc_healthy",
    )
    return found == row["expected_require_by_ns"]


AGREES = {
    "last_event_time": _failed_at,
    "should_filter": _filtered,
    "filter_reschedulable": _bucket,
    "reconcile": _reconciled,
    "client_update_eval": _triggered,
    "force_reschedule_rpc": _forced,
    "deployment_watcher": _watched,
    "progress_deadline": _required,
}


def test_facts_on_ends_of_runs_agree_or_carry_a_rule() -> None:
    """Each row of eight groups, with the exact lists of those that differ."""
    assert_agree("outcomes", AGREES)
