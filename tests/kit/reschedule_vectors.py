"""Policies, histories and expectations from the shared reschedule vectors."""

import gzip
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from kit.shared import shared_path
from pyresched.model import (
    LastReschedule,
    NodeId,
    RescheduleEvent,
    ReschedulePolicy,
    RescheduleTracker,
    RunId,
)

__all__ = ["events_of", "facts", "groups_of_facts", "policy_of", "rows", "tracker_of"]


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
