"""Policies, histories and expectations from the shared reschedule vectors.

And which rows carry a rule of docs/reschedule.md: these lists are what its table says.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from kit.shared import shared_path
from pyresched.model import (
    LastReschedule,
    NodeId,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    RunId,
)

__all__ = [
    "CHECKED_BY",
    "NOT_APPLICABLE",
    "RULES",
    "assert_agree",
    "events_of",
    "facts",
    "groups_of_facts",
    "policy_of",
    "rows",
    "tracker_of",
]

RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "min-delay": (),
    "saturate": ("V41", "D59"),
    "empty-tracker": ("D30", "F43"),
    "exact-fit": (),
    "unlimited-alone": (),
    "force": ("F31", "FR2"),
    "keep-history": (),
    "disconnect": ("R30",),
    "stop": ("D35", "SF02", "SF03", "SF06"),
    "loss": ("C06", "F35"),
    "drain": ("C29", "R19", "R20"),
    "policy-change": (),
    "restart-window": ("X02",),
    "node-preference": ("PN2", "PN3"),
    "lost-after-0": ("C27", "C33", "F39", "F40", "R29"),
    "one-time": ("L05",),
    "followups": ("F21", "F24", "R07", "R08"),
    "past-deadline": ("R10",),
}
"""The rows that come out differently, by rule. Each of them differs, and nothing else does."""

NOT_APPLICABLE: Final[Mapping[str, str]] = {
    **dict.fromkeys((f"G{n:02}" for n in range(1, 14)), "a journal forgets by time, not by policy"),
    **dict.fromkeys((f"N{n:02}" for n in range(1, 9)), "nodes have an order, not a mean of scores"),
    "C30": "no canaries",
    "R26": "no canaries",
    "R27": "no canaries",
    "R28": "no canaries",
    "F29": "verdict and permission are one decision",
    "R11": "verdict and permission are one decision",
    "F32": "a bucket before it is placed",
    "R21": "a batch job always has a policy",
    "U05": "no evaluations",
    "U07": "the template of a system job brings it back",
    "PD6": "nobody promotes",
    "PD7": "nobody pauses",
    "K4": "no sentence about the time that is left",
    "K5": "no sentence about the time that is left",
}
"""The rows without a counterpart, each with the reason."""

CHECKED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "reschedule": (
        "validate",
        "validate_group",
        "validate_min_delay_1s_variant",
        "merge",
        "next_time",
        "should_reschedule",
        "reschedule_info",
        "tracker_update",
        "followup_batching",
        "display",
        "restart",
        "restart_validate",
    ),
    "outcomes": (
        "last_event_time",
        "should_filter",
        "filter_reschedulable",
        "reconcile",
        "client_update_eval",
        "force_reschedule_rpc",
        "deployment_watcher",
        "progress_deadline",
    ),
    "fleet": ("penalty_nodes", "classify"),
}
"""The folder of tests that checks each group; the others have no counterpart."""


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a generated file."""
    with gzip.open(shared_path("vectors", "reschedule", f"{name}.jsonl.gz"), "rt") as file:
        return [json.loads(line) for line in file]


def facts(group: str) -> list[dict[str, Any]]:
    """The rows of a group of the facts file."""
    found: list[dict[str, Any]] = _facts()[group]
    assert found
    return found


def groups_of_facts() -> list[str]:
    """The names of the groups, in the order of the file."""
    return [name for name, rows in _facts().items() if isinstance(rows, list)]


@cache
def _facts() -> dict[str, Any]:
    text = shared_path("vectors", "reschedule", "upstream_vectors.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def policy_of(row: dict[str, Any] | None) -> ReschedulePolicy | None:
    """A policy as a row gives it."""
    if row is None:
        return None
    return ReschedulePolicy(
        attempts=row["attempts"],
        interval=row["interval_ns"],
        delay=row["delay_ns"],
        delay_function=row["delay_function"],
        max_delay=row["max_delay_ns"],
        unlimited=row["unlimited"],
    )


def events_of(row: Sequence[dict[str, Any]]) -> tuple[RescheduleEvent, ...]:
    """Events, oldest first."""
    return tuple(
        RescheduleEvent(
            time=event["reschedule_time_ns"],
            previous_run=RunId(event.get("prev_alloc_id", "")),
            previous_node=NodeId(event.get("prev_node_id", "")),
            delay=event["delay_ns"],
        )
        for event in row
    )


def tracker_of(row: dict[str, Any] | None) -> RescheduleTracker | None:
    """A tracker; nil events are none."""
    if row is None:
        return None
    return RescheduleTracker(
        events=events_of(row["events"] or ()), last=LastReschedule(row["last_reschedule"])
    )


def assert_agree(folder: str, agrees: Mapping[str, Callable[[dict[str, Any]], bool]]) -> None:
    """Every row of each group that *folder* checks agrees, exactly but for those with a rule."""
    assert tuple(agrees) == CHECKED_BY[folder]
    ruled = {id for ids in RULES.values() for id in ids}
    left_out = NOT_APPLICABLE.keys()
    for group, check in agrees.items():
        checked = [row for row in facts(group) if row["id"] not in left_out]
        differing = [row["id"] for row in checked if not check(row)]
        assert differing == [row["id"] for row in checked if row["id"] in ruled], group
