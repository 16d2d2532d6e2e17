"""The reference's answers on a group and its deployment, from its specification alone (4, 7)."""

from collections.abc import Sequence
from typing import Any

from kit.reschedule_oracle import Policy, batches
from kit.reschedule_oracle_runs import Alloc, Pass, bucket, klass

__all__ = ["reconciled", "require_by", "watched"]

ACTIVE = ("running", "paused", "blocked", "unblocking", "initializing", "pending")


def reconciled(row: dict[str, Any]) -> dict[str, Any]:
    """What one pass over the group of a row comes to, under the names of the rows."""
    shared = row.get("disconnect")
    allocs = [
        Alloc.of({**({"disconnect": shared} if shared else {}), **alloc}) for alloc in row["allocs"]
    ]
    deployment = row.get("deployment") or {}
    status = deployment.get("status", "")
    run = Pass(
        policy=Policy.of(row["policy"]),
        job_type=row["job_type"],
        now=row["now_ns"],
        eval_id=row["eval_id"],
        active=deployment["id"] if status in ACTIVE else "",
    )
    group = _Group(run, row["count"], (shared or {}).get("reconcile", "best_score"))
    group.failed = deployment["id"] if status == "failed" else ""
    group.canaries = bool(deployment.get("desired_canaries"))
    group.take([a for a in allocs if not a.stopped or _stays(a, row["job_type"])])
    return group.answer()


def _stays(alloc: Alloc, job_type: str) -> bool:
    """Whether a server-terminal allocation stays in the set (spec 4.1 step 2)."""
    return job_type == "batch" and "reschedule" not in alloc.flags


class _Group:
    """The sets of one pass."""

    def __init__(self, run: Pass, count: int, reconcile: str) -> None:
        self.run, self.count, self.reconcile = run, count, reconcile
        self.failed = ""
        self.canaries = False
        self.kept: list[Alloc] = []
        self.now: list[Alloc] = []
        self.later: list[tuple[Alloc, int]] = []
        self.moved: list[Alloc] = []  # stopped, and replaced with a link
        self.stopped_only: list[Alloc] = []
        self.lost: list[Alloc] = []
        self.unknown: list[Alloc] = []
        self.unknown_replaced: list[Alloc] = []
        self.back_failed: list[Alloc] = []
        self.back: list[Alloc] = []
        self.surplus: list[Alloc] = []

    def take(self, allocs: Sequence[Alloc]) -> None:
        by_class: dict[str, list[Alloc]] = {}
        for alloc in allocs:
            by_class.setdefault(klass(alloc, self.run.now), []).append(alloc)
        for alloc in by_class.get("reconnecting", ()):
            self._reconnect(alloc, allocs)
        for alloc in by_class.get("untainted", ()):
            if alloc in self.surplus:
                continue
            found, time = bucket(alloc, self.run, disconnecting=False)
            if found == "now":
                self.now.append(alloc)
            elif found == "later":
                self.later.append((alloc, time))
            if found in ("later", "untainted"):
                self.kept.append(alloc)
        for alloc in by_class.get("migrate", ()):
            self._migrate(alloc)
        self.lost += by_class.get("lost", []) + by_class.get("expiring", [])
        for alloc in by_class.get("disconnecting", ()):
            self.unknown.append(alloc)
            found, time = bucket(alloc, self.run, disconnecting=True)
            if found == "now":
                self.unknown_replaced.append(alloc)
            elif found == "later":
                self.later.append((alloc, time))

    def _reconnect(self, alloc: Alloc, allocs: Sequence[Alloc]) -> None:
        rivals = [a for a in allocs if a.previous == alloc.name]
        if alloc.client == "failed":
            self.back_failed.append(alloc)
        elif self.reconcile == "keep_original":
            self.back.append(alloc)
            self.surplus += rivals
        else:
            raise NotImplementedError(self.reconcile)

    def _migrate(self, alloc: Alloc) -> None:
        """Moved; a batch allocation that a person stopped goes by the policy."""
        if "migrate_disable_placement" in alloc.flags:
            self.stopped_only.append(alloc)
        elif self.run.job_type == "batch" and "reschedule" in alloc.flags:
            self.stopped_only.append(alloc)
            found, time = bucket(alloc, self.run, disconnecting=False)
            if found == "now":
                self.now.append(alloc)
            elif found == "later":
                self.later.append((alloc, time))
        else:
            self.moved.append(alloc)

    def answer(self) -> dict[str, Any]:
        now = [a for a in self.now if not (self.failed and a.deployment == self.failed)]
        linked = [*self.lost, *self.moved]
        replaced = [*now, *linked, *self.unknown_replaced, *self.back_failed]
        held = [*self.kept, *self.moved, *self.lost, *self.unknown, *self.back]
        held += [*self.back_failed, *self.now, *self.stopped_only]
        if self.canaries:
            held = [a for a in held if not a.canary]
        fresh = self._fresh({a.index: a for a in held})
        # A batch allocation that a person stopped may be both stopped and rescheduled.
        stops = {id(a) for a in [*now, *linked, *self.stopped_only]}
        migrations = [*self.moved, *self.stopped_only]
        placed = sorted([a.index for a in replaced] + fresh)
        stopped = len(stops) + len(self.back_failed) + len(self.surplus)
        times = batches([time for _, time in self.later])
        return {
            "place": len(placed),
            "place_indexes": placed,
            "rescheduled": len(now) + len(self.unknown_replaced),
            "with_previous": len(linked),
            "stop": stopped,
            "stop_client_status": "lost" if self.lost else "",
            "migrate": len(migrations),
            "ignore": len(self.kept) + len(self.back),
            "reschedule_later": len(self.later),
            "followups": [time for time, _ in times],
            "annotated_indexes": [a.index for a, _ in self.later],
            "disconnect": len(self.unknown),
            "reschedule_now": len(self.unknown_replaced),
            "reconnect": len(self.back),
            "desired_place": len(placed) - len(self.moved),
            "desired_stop": stopped - len(migrations),
        }

    def _fresh(self, held: dict[int, Alloc]) -> list[int]:
        """Indexes that are placed without a predecessor; none while a deployment is not ready."""
        if self.failed or self.canaries:
            return []
        free = (i for i in range(self.count) if i not in held)
        return [next(free) for _ in range(self.count - len(held))]


# Deployments: spec 7.


def watched(
    *, healthy: bool | None, deadline: int, active: bool, eligible: bool, permitted: bool
) -> tuple[bool, bool]:
    """Whether the watcher fails the deployment, and whether it permits a reschedule."""
    if healthy is not False:
        return False, False
    if deadline == 0 or (active and not eligible):
        return True, False
    return False, not permitted


def require_by(event: str, at: int, deadline: int, before: int | None) -> int | None:
    """The time by which progress is required, after an event."""
    if before is None:
        return at + deadline
    if event == "alloc_healthy":
        return max(before, at + deadline)
    if event in ("promote", "status_paused_or_running"):
        return at + deadline
    return before
