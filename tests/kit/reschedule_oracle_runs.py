"""The reference's answers on one allocation, from its specification alone.

Failure time, next time, class, bucket, garbage, force, what starts an evaluation, node penalties.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.reschedule_oracle import (
    Event,
    Policy,
    S,
    eligible_by_attempts,
    next_delay,
    pruned,
    reschedulable,
)

__all__ = [
    "Alloc",
    "bucket",
    "collectable",
    "filtered",
    "forced",
    "klass",
    "last_event_time",
    "mean",
    "next_time",
    "packing",
    "penalised",
    "replaced_tracker",
    "should_reschedule",
    "trigger",
]

TOLERANCE = S
ENDED = ("complete", "failed", "lost")
STOPPED = ("stop", "evict")


@dataclass(frozen=True)
class Alloc:
    """An allocation as a row gives it; what a row leaves out has the value that its README says."""

    client: str = ""
    desired: str = ""
    index: int = 0
    name: str = ""
    finished: tuple[int, ...] = ()
    modified: int = 0
    tracker: bool = False
    events: tuple[Event, ...] | None = None
    last: str = ""
    node: str = "normal"
    states: tuple[tuple[str, int], ...] = ()
    lost_after: int = 0
    replace: bool = True
    flags: frozenset[str] = field(default_factory=frozenset)
    followup: str = ""
    next: str = ""
    previous: str = ""
    deployment: str = ""
    canary: bool = False
    ran_well: bool = False

    @classmethod
    def of(cls, row: dict[str, Any], **more: Any) -> "Alloc":
        """The allocation of a row."""
        tracker = row.get("tracker")
        disconnect = row.get("disconnect") or {}
        return cls(
            client=row["client_status"],
            desired=row["desired_status"],
            index=row.get("index", 0),
            name=row.get("id", f"#{row.get('index', 0)}"),
            finished=tuple(t for t in row.get("task_finished_at_ns") or () if t is not None),
            modified=row.get("modify_time_ns", 0),
            tracker=tracker is not None,
            events=None if tracker is None else events_of(tracker["events"]),
            last="" if tracker is None else tracker["last_reschedule"],
            states=tuple((state, at) for state, at in row.get("states") or ()),
            lost_after=disconnect.get("lost_after_ns", 0),
            replace=disconnect.get("replace", True),
            flags=frozenset(name for name, on in row.get("transition", {}).items() if on),
            followup=row.get("followup_eval", ""),
            next=row.get("next_allocation", ""),
            previous=row.get("previous_allocation", ""),
            deployment=row.get("deployment", ""),
            canary=row.get("canary", False),
            ran_well=row.get("ran_successfully", False),
            **{"node": row.get("node_state", "normal"), **more},
        )

    @property
    def stopped(self) -> bool:
        """Server-terminal."""
        return self.desired in STOPPED

    @property
    def ended(self) -> bool:
        """Client-terminal."""
        return self.client in ENDED

    @property
    def unknown_since(self) -> int:
        """The latest recorded unknown state."""
        return max(at for state, at in self.states if state == "unknown")

    @property
    def reconnects(self) -> bool:
        """Whether it needs a reconnect."""
        last = self.states[-1][0] if self.states else ""
        return self.client in ("unknown", "running", "failed") and last == "unknown"

    def expired(self, now: int) -> bool:
        """Whether it has been unknown for too long."""
        return self.client == "unknown" and now - self.unknown_since >= self.lost_after


def events_of(rows: Sequence[dict[str, Any]] | None) -> tuple[Event, ...] | None:
    """Events, oldest first; nil is not empty."""
    if rows is None:
        return None
    return tuple(
        Event(
            row["reschedule_time_ns"],
            row["delay_ns"],
            row.get("prev_alloc_id", ""),
            row.get("prev_node_id", ""),
        )
        for row in rows
    )


# Time and eligibility.


def last_event_time(alloc: Alloc) -> int:
    """The failure time (spec 2)."""
    return max(alloc.finished, default=alloc.modified)


def next_time(policy: Policy | None, alloc: Alloc, job_type: str) -> tuple[int | None, bool]:
    """NextRescheduleTime, all steps of spec 3.3."""
    if alloc.desired == "stop" and alloc.last != "no placement":
        return None, False
    moved = job_type == "batch" and "reschedule" in alloc.flags
    if alloc.client not in ("failed", "lost") and not moved:
        return None, False
    return _by_time(policy, alloc, last_event_time(alloc))


def _by_time(policy: Policy | None, alloc: Alloc, failed_at: int) -> tuple[int | None, bool]:
    return reschedulable(policy, alloc.events, failed_at, tracker=alloc.tracker)


def should_reschedule(policy: Policy | None, alloc: Alloc, at: int) -> bool:
    """The stricter helper (spec 3.2)."""
    if alloc.stopped or alloc.client != "failed":
        return False
    return eligible_by_attempts(policy, alloc.events or (), at)


def replaced_tracker(policy: Policy | None, alloc: Alloc, now: int) -> list[Event]:
    """What the replacement's tracker holds (spec 6.2 and 6.3)."""
    events = alloc.events or ()
    delay = next_delay(policy, events, last_event_time(alloc))
    return [*pruned(policy, events, now), Event(now, delay, "prev", "node")]


# Class: spec 4.2.


def klass(alloc: Alloc, now: int) -> str:
    """The first of the rules that matches."""
    a = alloc
    terminal = a.stopped or a.ended
    ready = a.node in ("normal", "draining")
    kept = a.node == "down" and not a.replace
    rules = [
        (a.reconnects and a.desired == "run" and a.client == "failed", "reconnecting"),
        (a.stopped and not a.reconnects and "migrate_disable_placement" in a.flags, "untainted"),
        (a.stopped and not a.reconnects, "ignore"),
        (terminal and a.canary and "migrate" in a.flags, "migrate"),
        (terminal and not a.reconnects, "untainted"),
        (a.client == "unknown" and a.expired(now), "expiring"),
        (a.reconnects and a.client == "failed" and a.desired == "stop", "ignore"),
        (a.node == "disconnected" and a.client == "unknown", "untainted"),
        (a.node == "disconnected" and a.client == "pending", "lost"),
        (a.node == "disconnected" and a.lost_after == 0, "lost"),
        (a.node == "disconnected", "disconnecting"),
        ("migrate" in a.flags, "migrate"),
        (ready and a.reconnects, "reconnecting"),
        (ready, "untainted"),
        (a.node == "gone", "lost"),
        (kept and a.client == "unknown", "untainted"),
        (kept and a.client == "running", "disconnecting"),
        (a.node == "down", "lost"),
        (True, "untainted"),
    ]
    return next(name for matches, name in rules if matches)


# Bucket: spec 4.3 and 3.4.


def filtered(alloc: Alloc, job_type: str) -> str | None:
    """Steps 2 and 3: `untainted`, `dropped`, or None for on to the gate."""
    unplaced = alloc.last == "no placement"
    if job_type == "batch":
        if "migrate_disable_placement" in alloc.flags:
            return "untainted"
        if "reschedule" in alloc.flags:
            return None
        if alloc.desired == "stop":
            if alloc.ran_well:
                return "untainted"
            return None if unplaced else "dropped"
        if alloc.desired == "evict":
            return "dropped"
        return None if alloc.client == "failed" else "untainted"
    if alloc.stopped:
        return None if unplaced else "dropped"
    return "dropped" if alloc.client in ("complete", "lost") else None


@dataclass(frozen=True)
class Pass:
    """What is the same for all allocations of a pass."""

    policy: Policy | None
    job_type: str
    now: int
    eval_id: str
    active: str = ""  # the current deployment, if it is active


def bucket(alloc: Alloc, run: Pass, *, disconnecting: bool) -> tuple[str, int | None]:
    """The bucket, and the time for `now` and `later`."""
    if disconnecting and alloc.client == "unknown":
        return "dropped", None
    if alloc.next and (alloc.ended or alloc.stopped):
        return "dropped", None
    found = filtered(alloc, run.job_type)
    if found == "dropped" or (found == "untainted" and not disconnecting):
        return found, None
    return _gate(alloc, run, disconnecting=disconnecting)


def _gate(alloc: Alloc, run: Pass, *, disconnecting: bool) -> tuple[str, int | None]:
    if run.active and alloc.deployment == run.active and "reschedule" not in alloc.flags:
        return "untainted", None
    now = "force_reschedule" in alloc.flags and alloc.ended
    if disconnecting and not alloc.replace:
        return ("now" if now else "untainted"), None
    own = alloc.followup == run.eval_id
    if disconnecting:
        time, eligible = _by_time(run.policy, alloc, run.now)
    elif alloc.client == "unknown" and own:
        time, eligible = _by_time(run.policy, alloc, alloc.unknown_since)
    else:
        time, eligible = next_time(run.policy, alloc, run.job_type)
    if now or (eligible and (own or time - run.now <= TOLERANCE)):
        return "now", time
    if eligible and not alloc.followup:
        return "later", time
    return "untainted", None


# Around it.


def collectable(row: dict[str, Any]) -> bool:
    """Whether the record may be removed (spec 6.10)."""
    policy, events = Policy.of(row["policy"]), events_of(row["events"]) or ()
    client, desired = row["client_status"], row["desired_status"]
    if client == "running" or not (client in ENDED or desired in STOPPED):
        return False
    if row["modify_time_ns"] > row["cutoff_ns"]:
        return False
    done = desired == "stop" or row["job_stopped"] or row["job_status"] == "dead"
    if done or client != "failed" or row["has_next_allocation"]:
        return True
    if policy is None or not policy.enabled:
        return True
    if policy.unlimited or not events:
        return False
    return row["gc_time_ns"] - events[-1].time > policy.interval


def forced(*, client: str, replaced: bool, enabled: bool, already: bool) -> bool:
    """Whether a force marks it (spec 3.7)."""
    return client == "failed" and enabled and not replaced and not already


def trigger(row: dict[str, Any]) -> str | None:
    """Which evaluation a client's update starts (spec 3.6)."""
    if not row["job_exists"]:
        return "job-deregister"
    if row["server_client_status"] == "unknown":
        return "reconnect"
    due = row["policy_enabled"] and row["eligible"] and not row["followup_eval"]
    return "alloc-failure" if due and row["update_client_status"] == "failed" else None


def penalised(prev: dict[str, Any] | None) -> set[str]:
    """Nodes that a replacement avoids (spec 5)."""
    if prev is None:
        return set()
    own = [prev["node"]] if prev["client_status"] == "failed" else []
    return {*own, *prev["tracker_prev_nodes"]}


def packing(free_cpu: float, free_mem: float) -> tuple[float, float]:
    """Binpack and spread before their division."""
    total = 10**free_cpu + 10**free_mem
    return min(max(20 - total, 0), 18), min(max(total - 2, 0), 18)


def mean(scores: Sequence[float]) -> float:
    """The final score of a node."""
    return sum(scores) / len(scores) if scores else 0.0
