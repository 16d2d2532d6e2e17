"""A scheduler over HTTP: its jobs, nodes and queues, and submits. Needs the extra `server`.

Owns routes and status codes. Reads take a snapshot and wait for nobody; a submit and every
other command waits for whoever drives the scheduler.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from threading import RLock
from typing import Annotated, Any

from msgspec import Struct

from pyresched.api.views import JobRequest, JobView, NodeView, PolicyRequest, QueueView
from pyresched.errors import Conflict, DuplicateId, InputError, MissingExtra
from pyresched.model import Changes, Instant, JobState
from pyresched.scheduler import Scheduler

try:
    from litestar import Litestar, Request, Response, get, post, put
    from litestar.exceptions import NotFoundException
    from litestar.handlers import HTTPRouteHandler
    from litestar.openapi import OpenAPIConfig
    from litestar.params import FromPath, JSONBody, QueryParameter
except ImportError:
    raise MissingExtra(
        "the HTTP API needs litestar, which is not installed; pip install 'pyresched[server]'"
    ) from None

__all__ = ["JobPage", "Submit", "create_app"]

_STATUS = {DuplicateId: 409, Conflict: 409, InputError: 400}


class JobPage(Struct, frozen=True, kw_only=True):
    """Some jobs in submit order, and where the next page begins; None: there is none."""

    jobs: tuple[JobView, ...]
    next_offset: int | None


class Submit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to run jobs: all are taken, or none."""

    jobs: tuple[JobRequest, ...]


class Submitted(Struct, frozen=True, kw_only=True):
    """The jobs as they were taken; one that no node could hold is failed and says why."""

    jobs: tuple[JobView, ...]


def create_app(
    scheduler: Scheduler,
    *,
    locked: Callable[[], AbstractContextManager[Scheduler]] | None = None,
    clock: Callable[[], Instant] = time.time_ns,
) -> Litestar:
    """The application over *scheduler*, to be served by any ASGI server.

    *locked* gives the scheduler while nobody else uses it (`Service.locked`); without it the
    application must be the only one that does. *clock* gives nanoseconds.
    """
    exclusive = _alone(scheduler) if locked is None else locked
    config = scheduler.config

    @get("/jobs", sync_to_thread=True)
    def list_jobs(
        queue: Annotated[str | None, QueryParameter()] = None,
        job_state: Annotated[str | None, QueryParameter(name="state")] = None,
        offset: Annotated[int, QueryParameter(ge=0)] = 0,
        limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 100,
    ) -> JobPage:
        """Jobs in submit order, of a queue or in a state where one is named."""
        wanted = None if job_state is None else _state(job_state)
        found = (
            job
            for job in scheduler.snapshot()
            if (queue is None or job.queue == queue) and (wanted is None or job.state is wanted)
        )
        page = tuple(islice(found, offset, offset + limit + 1))
        return JobPage(
            jobs=tuple(JobView.of(job, config) for job in page[:limit]),
            next_offset=offset + limit if len(page) > limit else None,
        )

    @get("/jobs/{job_id:str}", sync_to_thread=True)
    def show_job(job_id: FromPath[str]) -> JobView:
        """One job with its runs."""
        job = scheduler.snapshot().get(job_id)
        if job is None:
            raise NotFoundException(f"no job {job_id!r}")
        return JobView.of(job, config)

    @get("/nodes", sync_to_thread=True)
    def list_nodes() -> tuple[NodeView, ...]:
        """All nodes in the order in which they joined, with the jobs on them."""
        with exclusive():
            snapshot, nodes = scheduler.snapshot(), tuple(scheduler.sync.node_rows.values())
        on: dict[str, list[str]] = {}
        for job in snapshot.leased():
            if job.node_id is not None:
                on.setdefault(job.node_id, []).append(job.id)
        return tuple(NodeView.of(node, tuple(on.get(node.id, ())), config) for node in nodes)

    @get("/queues", sync_to_thread=True)
    def list_queues() -> tuple[QueueView, ...]:
        """All queues by name, with how many of their jobs are in which state."""
        with exclusive():
            snapshot, queues = scheduler.snapshot(), dict(scheduler.queues)
        counts: dict[str, Counter[str]] = {name: Counter() for name in queues}
        for job in snapshot:
            counts.setdefault(job.queue, Counter())[job.state.name.lower()] += 1
        return tuple(QueueView.of(queues[name], counts[name]) for name in sorted(queues))

    @post("/jobs", sync_to_thread=True)
    def submit_jobs(data: JSONBody[Submit]) -> Submitted:
        """Take in jobs, all or none."""
        with exclusive():
            now = clock()
            rows = scheduler.submit([each.job(config, now=now) for each in data.jobs], now).jobs
        return Submitted(jobs=tuple(JobView.of(row, config) for row in rows))

    return Litestar(
        [
            *(list_jobs, show_job, list_nodes, list_queues, submit_jobs),
            *_commands(scheduler, exclusive, clock),
        ],
        exception_handlers=dict.fromkeys(_STATUS, _refusal),
        openapi_config=OpenAPIConfig(title="pyresched", version="0.1.0"),
    )


def _commands(
    scheduler: Scheduler,
    exclusive: Callable[[], AbstractContextManager[Scheduler]],
    clock: Callable[[], Instant],
) -> Sequence[HTTPRouteHandler]:
    """What changes one job. Each answers with the job as it is then."""
    config = scheduler.config

    def told(job_id: str, command: Callable[[list[str], Instant], Changes]) -> JobView:
        with exclusive():
            if scheduler.snapshot().get(job_id) is None:
                raise NotFoundException(f"no job {job_id!r}")
            rows = command([job_id], clock()).jobs
            # A journal that forgets jobs that ended may not hold it any more.
            job = scheduler.snapshot().get(job_id)
        if job is None:
            job = next(row for row in rows if row.id == job_id)
        return JobView.of(job, config)

    @post("/jobs/{job_id:str}/stop", status_code=200, sync_to_thread=True)
    def stop_job(job_id: FromPath[str]) -> JobView:
        """End the run of a job, which keeps its place or goes by its policy."""
        return told(job_id, scheduler.stop)

    @post("/jobs/{job_id:str}/force", status_code=200, sync_to_thread=True)
    def force_job(job_id: FromPath[str]) -> JobView:
        """Put back a job that waits for its delay or has failed, at once and uncounted."""
        return told(job_id, scheduler.force)

    @put("/jobs/{job_id:str}/policy", sync_to_thread=True)
    def set_policy(job_id: FromPath[str], data: JSONBody[PolicyRequest]) -> JobView:
        """Give a job another policy: the fields written, over the defaults of its type."""

        def change(job_ids: list[str], now: Instant) -> Changes:
            job = scheduler.snapshot().get(job_id)
            assert job is not None, "asked for before"
            return scheduler.set_policy(job_ids, data.policy_for(job.job_type, config), now)

        return told(job_id, change)

    return stop_job, force_job, set_policy


def _alone(scheduler: Scheduler) -> Callable[[], AbstractContextManager[Scheduler]]:
    """A lock of our own: requests come on several threads."""
    lock = RLock()

    @contextmanager
    def locked() -> Iterator[Scheduler]:
        with lock:
            yield scheduler

    return locked


def _state(name: str) -> JobState:
    """The state called *name*. Raises InputError."""
    try:
        return JobState[name.upper()]
    except KeyError:
        known = ", ".join(state.name.lower() for state in JobState)
        raise InputError(f"state: {name!r} is none; known: {known}") from None


def _refusal(_: Request[Any, Any, Any], error: Exception) -> Response[dict[str, object]]:
    """The one line of an error of ours, with its status."""
    status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    return Response({"status_code": status, "detail": str(error)}, status_code=status)
