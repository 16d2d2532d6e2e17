"""A round in one file: written, read, run again to the same bytes on another machine.

Owns the format: line 1 is JSON and says what follows, MessagePack, packed by zlib where that is
worth it. Of jobs it holds what a round reads, no payload. docs/replay.md. Serves INV-R7.
"""

import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from pyresched.config import SchedulingConfig
from pyresched.errors import InputError, PyreschedError, UnreadableRound
from pyresched.jobdb import JobDb
from pyresched.model import (
    Constraint,
    Gang,
    GangId,
    Instant,
    Job,
    JobId,
    JobState,
    LastReschedule,
    Node,
    NodeId,
    Outcome,
    PoolName,
    Preference,
    Queue,
    QueueName,
    Requirements,
    RescheduleEvent,
    RescheduleTracker,
    ResourceVector,
    RoundResult,
    Run,
    RunId,
    Spread,
    Toleration,
)
from pyresched.nodedb import NodeDb
from pyresched.scheduling.anonymous import Named
from pyresched.scheduling.anonymous import anonymous as under_pseudonyms
from pyresched.scheduling.explanation import MOST_ROUNDS, Explanation, explain_inputs
from pyresched.scheduling.inputs import Arguments, QueueReader, RoundInputs
from pyresched.scheduling.round import run_round
from pyresched.scheduling.state import RoundState

__all__ = ["SavedRound", "load_round", "result_bytes", "save_round"]

_WHAT: Final = "saved round"
_VERSION: Final = 1  # of the format; a file of another one is refused, never guessed at
_LONGEST_HEADER: Final = 1024
_WORTH_PACKING: Final = 4096  # bytes
_PACKING: Final = 6


class SavedRound(Struct, frozen=True, kw_only=True):
    """A round as it was saved. `digest` is the SHA-256 of the `result_bytes` that it had.

    `saved_by` is the version of the package that wrote it.
    """

    inputs: RoundInputs
    digest: str
    anonymous: bool
    saved_by: str

    def run(self) -> tuple[RoundResult, RoundState]:
        """The round again."""
        return run_round(*self.inputs.arguments())

    def explain(self, job_id: str, *, most_rounds: int = MOST_ROUNDS) -> Explanation:
        """As `pyresched.scheduling.explain` does. Raises InputError for an unknown job."""
        return explain_inputs(job_id, self.inputs, run_round, most_rounds=most_rounds)


def save_round(  # noqa: PLR0917  # the arguments of `run_round` after the path
    path: str | Path,
    snapshot: QueueReader,
    nodes: NodeDb,
    queues: Mapping[QueueName, Queue] | Mapping[str, Queue],
    pool: str,
    config: SchedulingConfig,
    state: RoundState,
    now: Instant,
    *,
    anonymous: bool = False,
) -> None:
    """Write what `run_round` takes to the file *path*, and the digest of what it answers.

    With *anonymous*, names that people chose are replaced by pseudonyms in the same order, so
    that the round decides the same. Equal arguments give equal bytes. What is at *path* is
    replaced at once or not at all. Raises InputError for a place that cannot be written to, and
    what `run_round` raises.
    """
    inputs = RoundInputs.of(snapshot, nodes, queues, pool, config, state, now)
    jobs: Mapping[JobId, Job] = inputs.jobs()
    arguments = Arguments(snapshot, nodes, inputs.queues, pool, config, state, now)
    if anonymous:
        inputs, jobs = _anonymous(inputs, jobs)
        arguments = inputs.arguments()
    result, _ = run_round(*arguments)
    kinds = dict.fromkeys(job.requirements for job in _every(jobs, inputs.strays))
    index = {requirements: n for n, requirements in enumerate(kinds)}
    content = _Content(
        pool=inputs.pool,
        now=inputs.now,
        config=inputs.config,
        state=inputs.state,
        queues=inputs.queues,
        nodes=inputs.nodes,
        kinds=tuple(_KindRow.of(requirements) for requirements in kinds),
        jobs=tuple(_JobRow.of(job, index) for job in jobs.values()),
        strays={
            id: None if job is None else _JobRow.of(job, index) for id, job in inputs.strays.items()
        },
        digest=hashlib.sha256(result_bytes(result)).hexdigest(),
        anonymous=anonymous,
    )
    _write(Path(path), _packed(_encode(content)))


def load_round(path: str | Path) -> SavedRound:
    """The round in the file *path*. Raises UnreadableRound, one line that says what is wrong."""
    try:
        with Path(path).open("rb") as file:
            first, rest = file.readline(_LONGEST_HEADER), file.read()
    except OSError as bad:
        reason = bad.strerror or type(bad).__name__
        raise UnreadableRound(f"{path}: {reason}; name a file that can be read") from None
    except ValueError:  # a NUL in the name
        raise UnreadableRound(f"{str(path)!r}: not a file name; name a saved round") from None
    header = _header(first, str(path))
    content = _unpacked(header, rest, str(path))
    try:
        read = msgspec.msgpack.decode(content, type=_Content, dec_hook=_from_plain)
        inputs = _inputs(read)
    except (PyreschedError, msgspec.MsgspecError, ValueError, TypeError, IndexError) as bad:
        why = " ".join(str(bad).split())
        raise UnreadableRound(f"{path}: holds what no round takes: {why}; save it anew") from None
    return SavedRound(
        inputs=inputs, digest=read.digest, anonymous=read.anonymous, saved_by=header.by
    )


def result_bytes(result: RoundResult) -> bytes:
    """*result* as one line of JSON: the same bytes for equal results."""
    return msgspec.json.encode(result.to_dict()) + b"\n"


# --- rows: what is in a file ------------------------------------------------------------------


class _KindRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Requirements; jobs that ask alike share one."""

    resources: ResourceVector
    priority_class: str
    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    constraints: tuple[Constraint, ...]
    affinity: tuple[tuple[Constraint, ...], ...]
    preferences: tuple[Preference, ...]
    spread: tuple[Spread, ...]
    scope: str
    nodes: tuple[NodeId, ...]

    @classmethod
    def of(cls, asked: Requirements) -> "_KindRow":
        return cls(*(getattr(asked, field) for field in cls.__struct_fields__))

    def requirements(self) -> Requirements:
        return Requirements(**structs.asdict(self))


class _RunRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    id: RunId
    node_id: NodeId
    pool: PoolName
    priority: int
    leased_at: Instant
    lease_expires_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    outcome: Outcome | None
    reason: str


class _EventRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    time: Instant
    previous_run: RunId
    previous_node: NodeId
    delay: int
    forced: bool = False


class _TrackerRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    events: tuple[_EventRow, ...]
    last: LastReschedule


class _GangRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    id: GangId
    cardinality: int
    uniformity: str


class _JobRow(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A job without payload, policy and rules; `kind` is the place of its requirements."""

    id: JobId
    queue: QueueName
    submitted_at: Instant
    priority: int
    state: JobState
    pools: tuple[PoolName, ...]
    job_set: str
    job_type: str
    validated: bool
    failed_at: Instant | None
    eligible_at: Instant | None
    retry_delay: int | None
    ended_at: Instant | None
    kind: int
    gang: _GangRow | None
    runs: tuple[_RunRow, ...]
    tracker: _TrackerRow | None

    @classmethod
    def of(cls, job: Job, index: Mapping[Requirements, int]) -> "_JobRow":
        gang, tracker = job.gang, job.tracker
        make: Callable[..., _JobRow] = cls
        return make(
            *_as_they_are(job),
            index[job.requirements],
            None if gang is None else _GangRow(gang.id, gang.cardinality, gang.uniformity),
            tuple(_row(_RunRow, run) for run in job.runs),
            None
            if tracker is None
            else _TrackerRow(tuple(_row(_EventRow, each) for each in tracker.events), tracker.last),
        )

    def job(self, kinds: list[Requirements]) -> Job:
        gang, tracker = self.gang, self.tracker
        return Job(
            requirements=kinds[self.kind],
            gang=None if gang is None else Gang(gang.id, gang.cardinality, gang.uniformity),
            runs=tuple(Run(**structs.asdict(run)) for run in self.runs),
            tracker=None
            if tracker is None
            else RescheduleTracker(
                events=tuple(RescheduleEvent(**structs.asdict(each)) for each in tracker.events),
                last=tracker.last,
            ),
            **dict(zip(_AS_THEY_ARE, _as_they_are(self), strict=True)),
        )


_MADE: Final = frozenset({"kind", "gang", "runs", "tracker"})
_AS_THEY_ARE: Final = tuple(name for name in _JobRow.__struct_fields__ if name not in _MADE)
_as_they_are: Final[Callable[[Any], tuple[Any, ...]]] = attrgetter(*_AS_THEY_ARE)


class _Content(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pool: PoolName
    now: Instant
    config: SchedulingConfig
    state: RoundState
    queues: Mapping[QueueName, Any]
    nodes: tuple[Node, ...]
    kinds: tuple[_KindRow, ...]
    jobs: tuple[_JobRow, ...]
    strays: Mapping[JobId, _JobRow | None]
    digest: str
    anonymous: bool


class _Header(Struct, frozen=True, kw_only=True):
    """Line 1. `size` counts the bytes that follow, `unpacked` those of the content."""

    pyresched: str
    version: int
    by: str = ""
    packed: bool = False
    size: int = 0
    unpacked: int = 0
    sha256: str = ""


def _row(cls: Any, value: Any) -> Any:  # noqa: ANN401 - a struct and what has its fields
    return cls(*(getattr(value, name) for name in cls.__struct_fields__))


def _every(jobs: Mapping[JobId, Job], strays: Mapping[JobId, Job | None]) -> Iterable[Job]:
    yield from jobs.values()
    yield from (job for job in strays.values() if job is not None)


def _inputs(read: _Content) -> RoundInputs:
    """What *read* says, with a job db of its own."""
    kinds = [row.requirements() for row in read.kinds]
    db = JobDb(read.config)
    with db.write() as txn:
        txn.upsert_many([row.job(kinds) for row in read.jobs])
    return RoundInputs(
        snapshot=db.snapshot(),
        nodes=read.nodes,
        queues={name: _queue(fields) for name, fields in read.queues.items()},
        pool=read.pool,
        config=read.config,
        state=read.state,
        now=read.now,
        strays={id: None if row is None else row.job(kinds) for id, row in read.strays.items()},
    )


def _queue(fields: Mapping[str, Any]) -> Queue:
    """The queue, with a weight that no queue can be made with where the round had such a one."""
    weight = fields.get("weight")
    try:
        return msgspec.convert(fields, Queue)
    except msgspec.ValidationError:
        if not isinstance(weight, int | float):
            raise
        queue = msgspec.convert({**fields, "weight": 1.0}, Queue)
        structs.force_setattr(queue, "weight", float(weight))
        return queue


def _anonymous(
    inputs: RoundInputs, jobs: Mapping[JobId, Job]
) -> tuple[RoundInputs, Mapping[JobId, Job]]:
    """The same under pseudonyms, read from a job db of its own."""
    named = under_pseudonyms(
        Named(
            jobs=jobs,
            strays=inputs.strays,
            nodes=inputs.nodes,
            queues=inputs.queues,
            config=inputs.config,
            state=inputs.state,
        )
    )
    db = JobDb(named.config)
    with db.write() as txn:
        txn.upsert_many(named.jobs.values())
    changed = structs.replace(
        inputs,
        snapshot=db.snapshot(),
        nodes=named.nodes,
        queues=named.queues,
        config=named.config,
        state=named.state,
        strays=named.strays,
    )
    return changed, named.jobs


# --- bytes ------------------------------------------------------------------------------------


def _encode(content: _Content) -> bytes:
    encoder = msgspec.msgpack.Encoder(enc_hook=_to_plain, order="deterministic")
    return encoder.encode(content)


def _to_plain(value: object) -> object:
    if isinstance(value, ResourceVector):
        return value.to_tuple()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a round cannot be saved with a {type(value).__name__} in it")


def _from_plain(kind: type, value: Any) -> object:  # noqa: ANN401 - what the decoder found
    if kind is ResourceVector:
        return ResourceVector(value)
    raise TypeError(f"{kind.__name__} is not read from a file")


def _packed(content: bytes) -> bytes:
    """The bytes of a file."""
    packed = len(content) > _WORTH_PACKING
    body = zlib.compress(content, _PACKING) if packed else content
    header = _Header(
        pyresched=_WHAT,
        version=_VERSION,
        by=version("pyresched"),
        packed=packed,
        size=len(body),
        unpacked=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    return msgspec.json.encode(header) + b"\n" + body


def _header(line: bytes, path: str) -> _Header:
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.MsgspecError:
        header = None
    if header is None or header.pyresched != _WHAT or not line.endswith(b"\n"):
        raise UnreadableRound(f"{path}: is no saved round; write one with save_round")
    if header.version != _VERSION:
        raise UnreadableRound(
            f"{path}: is a saved round of format {header.version}, written by pyresched "
            f"{header.by or '?'}; this one reads format {_VERSION}: save it anew, or replay it there"
        )
    return header


def _unpacked(header: _Header, body: bytes, path: str) -> bytes:
    """What follows the header, whole and unharmed."""
    if len(body) < header.size:
        raise UnreadableRound(
            f"{path}: is cut short: {len(body)} of {header.size} bytes; copy it again"
        )
    if len(body) > header.size:
        raise UnreadableRound(
            f"{path}: goes on after its {header.size} bytes, by {len(body) - header.size}; copy it again"
        )
    content: bytes | None = body
    if header.packed:
        try:
            content = zlib.decompressobj().decompress(body, max(header.unpacked, 0) + 1)
        except zlib.error:
            content = None
    if content is None or hashlib.sha256(content).hexdigest() != header.sha256:
        raise UnreadableRound(f"{path}: is damaged: its checksum does not hold; copy it again")
    return content


def _write(path: Path, content: bytes) -> None:
    """Put *content* at *path* at once, or not at all."""
    aside = None
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is no plain file; choose a file")
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=".pyresched-", delete=False
        ) as file:
            aside = Path(file.name)
            file.write(content)
        aside.chmod(0o666 & ~_umask())
        aside.replace(path)
        aside = None
    except ValueError as bad:
        if isinstance(bad, InputError):
            raise
        raise InputError(f"{str(path)!r}: no file can have this name; choose another") from bad
    except OSError as bad:
        reason = (bad.strerror or type(bad).__name__).lower()
        raise InputError(f"{path}: {reason}; choose a place that can be written to") from bad
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def _umask() -> int:
    """The mask of new files, which temporary ones do not follow."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
