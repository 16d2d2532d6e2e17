"""Small worlds of the scheduler in which happens to a job what a row says of its allocation.

Each allocation is a job with a node of its own; `spare` has room for all that is placed anew.
What a row says is told to a `Scheduler` in the order in which it would come.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from kit.driving import node, scheduler
from kit.jobs import job, run
from kit.reschedule_oracle_runs import Alloc, last_event_time
from kit.reschedule_vectors import policy_of, tracker_of
from pyresched.model import (
    NANOS,
    Changes,
    DisconnectRule,
    Draft,
    EventKind,
    GroupRules,
    Job,
    JobState,
    Outcome,
    Queue,
    UpdateRule,
)
from pyresched.model.moves import put_back
from pyresched.outcomes import Report, ReportKind
from pyresched.reschedule import followups

__all__ = ["World", "tally"]

_HOUR = 3600 * NANOS
_KINDS = {"failed": "failed", "complete": "succeeded", "running": "running"}
_DRAINED, _STOPPED = "drained", "stopped"


class World:
    """One scheduler at *now*, with jobs as the rows of allocations have them.

    *shared* has what stands beside the allocations: `job_type`, `policy`, `deployment`, `count`
    and `disconnect`.
    """

    def __init__(self, rows: Iterable[dict[str, Any]], now: int, **shared: Any) -> None:
        self.now, self.shared = now, shared
        self.rows = {f"job-{row.get('index', 0)}": row for row in rows}
        self.allocs = {id: self._alloc(row) for id, row in self.rows.items()}
        self.made = scheduler(node("spare", 400), *(node(f"on-{id}") for id in self.rows))
        jobs = tuple(self._job(id, alloc) for id, alloc in self.allocs.items())
        jobs += tuple(self._waiting(jobs[-1]))
        first = Changes(jobs=jobs, queues=(Queue(name="queue-a"),))
        self.made.journal.commit(first, expect=first.expected())
        self.made.sync.catch_up()
        self.silent: set[str] = set()  # jobs to which that meant nothing
        self.times: dict[str, int] = {}  # when who waits is due, before the step
        self.mark = 0  # the cursor after what lies before the pass

    def __getitem__(self, id: str) -> Job:
        return self.made.snapshot()[id]

    def happens(self) -> "World":
        """All that the rows say, and then one step."""
        for past in (True, False):
            for id, alloc in self.allocs.items():
                if past is (alloc.stopped and "migrate_disable_placement" not in alloc.flags):
                    self._happens(id, alloc)
            if past:
                self.mark = self.made.journal.events_since(0)[1]
        for row in self.made.snapshot():
            if row.failed_at is not None and row.retry_delay is not None:
                self.times[row.id] = row.failed_at + row.retry_delay
        self.made.step(self.now)
        return self

    def events(self, kind: EventKind, id: str | None = None) -> Iterator[Any]:
        """The events of a kind since `mark`, of one job or of all."""
        for event in self.made.journal.events_since(self.mark)[0]:
            if event.kind is kind and id in (None, event.job_id):
                yield event

    def first_run(self, id: str) -> Any:
        """The run that stands for the allocation."""
        return next(each for each in self[id].runs if each.id == f"{id}/first")

    def _alloc(self, row: dict[str, Any]) -> Alloc:
        shared = self.shared.get("disconnect")
        return Alloc.of({**({"disconnect": shared} if shared else {}), **row})

    def _job(self, id: str, alloc: Alloc) -> Job:
        deployed = bool(alloc.deployment)
        leased_at = self.now - _HOUR if deployed else 0
        started = alloc.client != "pending" or "healthy" in self.rows[id]
        first = run(
            f"{id}/first",
            node_id=f"on-{id}",
            pool="default",
            leased_at=leased_at,
            started_at=leased_at if started else None,
        )
        fields: dict[str, Any] = {
            "job_type": self._type(alloc),
            "pools": ("default",),
            "policy": policy_of(self.shared.get("policy")),
            "rules": self._rules(alloc),
            "tracker": tracker_of(self.rows[id].get("tracker")),
        }
        if alloc.stopped and alloc.last == "no placement":
            # It has failed, was due, and waits for a place since.
            at = last_event_time(alloc)
            failed = first.replace(ended_at=at, outcome=Outcome.FAILED)
            waits = {"failed_at": at, "retry_delay": 0, "eligible_at": at}
            return job(id, runs=(failed,), **waits, **fields)
        runs = (first,)
        if alloc.next and alloc.ended:
            over = first.replace(ended_at=1, outcome=Outcome.FAILED)
            runs = (over, run(f"{id}/next", node_id="spare", pool="default", leased_at=2))
        state = JobState.RUNNING if started and len(runs) == 1 else JobState.LEASED
        return job(id, state=state, runs=runs, **fields)

    def _waiting(self, like: Job) -> Iterator[Job]:
        """The jobs that a group of `count` has besides, which never ran."""
        ids = (id for id in map("job-{}".format, count()) if id not in self.rows)
        fields = {name: getattr(like, name) for name in ("job_type", "policy", "pools", "rules")}
        for _ in range(self.shared.get("count", 0) - len(self.rows)):
            yield job(next(ids), **fields)

    def _type(self, alloc: Alloc) -> str:
        """That of the row; where it gives none, the one to which what is said can happen."""
        given = self.shared.get("job_type")
        if given is not None:
            return str(given)
        undecided = alloc.node == "draining" and "migrate" not in alloc.flags
        kept = "migrate_disable_placement" in alloc.flags
        return "batch" if alloc.client == "complete" or undecided or kept else "service"

    def _rules(self, alloc: Alloc) -> GroupRules:
        deployment = self.shared.get("deployment") or {"id": "", "status": ""}
        status = deployment.get("status") or ("running" if deployment.get("active") else "failed")
        current = alloc.deployment == deployment["id"]
        size = self.shared.get("count", 2 if current else 1)
        deadline = _HOUR * 2 if status == "running" and current else 600 * NANOS
        shared = {"reconcile": "best_score", **(self.shared.get("disconnect") or {})}
        return GroupRules(
            group="a group",
            count=size,
            version=int(current),
            disconnect=DisconnectRule(
                lost_after=alloc.lost_after, replace=alloc.replace, reconcile=shared["reconcile"]
            ),
            update=UpdateRule(progress_deadline=deadline) if alloc.deployment else None,
        )

    # What happens, in the order in which it comes.

    def _happens(self, id: str, alloc: Alloc) -> None:
        made, now, home = self.made, self.now, f"on-{id}"
        drains = "migrate" in alloc.flags and not self._by_hand(id, alloc)
        if drains:
            ends = None if self[id].job_type == "service" else 0
            made.drain_nodes([home], now, deadline=ends)
        away = self._loses_sight(id, alloc, home)
        if alloc.stopped and not drains:
            self._is_stopped(id, alloc)
        if self._by_hand(id, alloc):
            at = last_event_time(alloc)
            made.stop([id], at)
        if away and alloc.node == "normal":
            made.nodes_back([home], now)
        self._client_says(id, alloc, home)
        if "force_reschedule" in alloc.flags:
            made.force([id], now)
        if alloc.node in ("down", "gone") and not away:
            made.lose_nodes([home], now)
        elif alloc.node == "disconnected" and not away:
            made.disconnect_nodes([home], now)
        elif alloc.node == "draining" and not drains:
            made.drain_nodes([home], now)

    def _by_hand(self, id: str, alloc: Alloc) -> bool:
        """Whether a person stops the run of a batch job."""
        return "reschedule" in alloc.flags and self[id].job_type == "batch"

    def _loses_sight(self, id: str, alloc: Alloc, home: str) -> bool:
        """The node is out of reach since the latest unknown state; whether there is one."""
        if not any(state == "unknown" for state, _ in alloc.states):
            return False
        since = min(alloc.unknown_since, self.now)
        if alloc.next:  # long enough ago for the replacement to be there
            since = self.now - 60 * NANOS
        if alloc.node == "down":
            self.made.lose_nodes([home], since)
        else:
            self.made.disconnect_nodes([home], since)
        if alloc.next:
            self.made.step(self[id].eligible_at)
            self.mark = self.made.journal.events_since(0)[1]
        for state, at in alloc.states:
            if state == "running" and at >= since:
                self.made.nodes_back([home], at)
                self._report(id, "running", at)
        return True

    def _is_stopped(self, id: str, alloc: Alloc) -> None:
        if alloc.desired == "stop":
            self.made.stop([id], self.now)
            return
        draft = Draft(self.made.snapshot())
        put_back(draft, {id: (Outcome.PREEMPTED, "")}, at=self.now)
        changes = draft.changes()
        self.made.journal.commit(changes, expect=changes.expected())
        self.made.sync.catch_up()

    def _client_says(self, id: str, alloc: Alloc, home: str) -> None:
        before = _standing(self[id])
        if alloc.client == "lost":
            self.made.lose_nodes([home], self.now)
            before = _standing(self[id])
            if alloc.states or alloc.ran_well:
                self._report(id, "succeeded", self.now)
        elif alloc.client in _KINDS:
            kind = _KINDS[alloc.client]
            if kind == "running" and alloc.ran_well and alloc.stopped:
                kind = "succeeded"
            self._report(id, kind, last_event_time(alloc) if kind != "running" else self.now)
        if _standing(self[id]) == before:
            self.silent.add(id)

    def _report(self, id: str, kind: str, at: int) -> None:
        report = Report(run_id=f"{id}/first", job_id=id, kind=ReportKind(kind), at=at)
        self.made.report([report], self.now)

    # What is seen.

    def klass(self, id: str) -> str:
        """What the job's first run is, in the words of the rows' classes."""
        alloc, first = self.allocs[id], self.first_run(id)
        if first.outcome is Outcome.RETURNED and first.reason == _DRAINED:
            return "migrate"
        if alloc.stopped:
            return "ignore" if id in self.silent else "handled"
        was_unknown = any(state == "unknown" for state, _ in alloc.states)
        if first.outcome is Outcome.LOST:
            return "expiring" if alloc.client == "unknown" else "lost"
        away = self.made.sync.node_rows[first.node_id].disconnected_at is not None
        if first.outcome is Outcome.UNKNOWN or (first.outcome is None and away):
            return "untainted" if alloc.client == "unknown" else "disconnecting"
        if (
            was_unknown
            and alloc.client in ("running", "failed")
            and alloc.states[-1][0] != "running"
        ):
            return "reconnecting"
        return "untainted"

    def bucket(self, id: str, *, disconnecting: bool = False) -> tuple[str, int | None]:
        """What becomes of the job, in the words of the rows' buckets, and when."""
        alloc, row = self.allocs[id], self[id]
        if disconnecting and alloc.client == "unknown":
            again = self.made.disconnect_nodes([f"on-{id}"], self.now)
            return ("handled" if again else "dropped"), None
        if alloc.next and id in self.silent:
            return "dropped", None
        if any(self.events(EventKind.RESCHEDULED, id)):
            return "now", self.times[id]
        if row.state is JobState.BACKING_OFF:
            # One that had its time already is as it was.
            return ("untainted", None) if alloc.followup else ("later", row.eligible_at)
        replaced = row.active_run is not None and row.active_run.id != f"{id}/first"
        return ("dropped" if replaced else "untainted"), None


def tally(world: World) -> dict[str, Any]:
    """What one pass came to, under the names of the rows."""
    placed = {event.job_id for event in world.events(EventKind.LEASED)}
    again = {event.job_id for event in world.events(EventKind.RESCHEDULED)}
    lost = {event.job_id for event in world.events(EventKind.LOST)}
    given_up = {event.job_id for event in world.events(EventKind.UNKNOWN)}
    back = {event.job_id for event in world.events(EventKind.RECONNECTED)}
    asked = [*world.events(EventKind.RETURNED), *world.events(EventKind.CANCELLED)]
    moved = {event.job_id for event in asked if event.reason in (_DRAINED, _STOPPED)}
    stopped = again - given_up | lost | {event.job_id for event in asked}
    rows = {id: world[id] for id in world.rows}
    later = {id for id, row in rows.items() if row.state is JobState.BACKING_OFF}
    kept = {
        id
        for id, row in rows.items()
        if id not in placed | given_up
        and (id not in stopped or id in back)
        and row.reason != "past_progress_deadline"
    }
    drained = {event.job_id for event in asked if event.reason == _DRAINED}
    return {
        "place": len(placed),
        "place_indexes": sorted(map(_index, placed)),
        "rescheduled": len(again),
        "with_previous": len(placed & (lost | drained)),
        "stop": len(stopped),
        "stop_client_status": "lost" if lost else "",
        "migrate": len(moved),
        "ignore": len(kept),
        "reschedule_later": len(later),
        "followups": [at for at, _ in followups(rows[id].eligible_at for id in later)],
        "annotated_indexes": sorted(map(_index, later)),
        "disconnect": len(given_up),
        "reschedule_now": len(again & given_up),
        "reconnect": len(back),
        "desired_place": len(placed - drained),
        "desired_stop": len(stopped - drained),
    }


def _standing(row: Job) -> tuple[Any, ...]:
    """What of *row* is about the job, not about a run that has ended."""
    return row.state, row.active_run, row.tracker, row.failed_at, row.eligible_at, row.reason


def _index(id: str) -> int:
    return int(id.removeprefix("job-"))
