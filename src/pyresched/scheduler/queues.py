"""Queues as operators set them, turned into changes. Pure; relies on the rows that there are."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from pyresched.errors import DuplicateId
from pyresched.model import Changes, Event, EventKind, Instant, Queue, QueueName

__all__ = ["changes"]


def changes(queues: Iterable[Queue], rows: Mapping[QueueName, Queue], *, now: Instant) -> Changes:
    """The rows of *queues* that are new or differ from *rows*."""
    given: dict[QueueName, Queue] = {}
    for queue in queues:
        if given.setdefault(queue.name, queue) != queue:
            raise DuplicateId(f"queue {queue.name!r} comes twice with other settings; send one")
    changed = []
    for queue in given.values():
        old = rows.get(queue.name)
        version = 0 if old is None else old.version
        if old is None or queue != structs.replace(old, version=queue.version):
            changed.append(structs.replace(queue, version=version + 1))
    return Changes(
        queues=tuple(changed),
        events=tuple(
            Event(kind=EventKind.QUEUE_CHANGED, at=now, queue=queue.name) for queue in changed
        ),
    )
