"""System jobs: what a user submits is a template, and on each node a job of it is pinned.

A template is queued in no pool, so no round sees it, and stays unvalidated, so it is found; its
pools wait in its payload. A pinned job is a job like any other, but that it names its node.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, cast

from msgspec import structs

from pyresched._core import Job
from pyresched.ids import JobId, NodeId, PoolName
from pyresched.model.nodes import Node
from pyresched.model.requests import replaced
from pyresched.reschedule import JobType, ReschedulePolicy

__all__ = [
    "SYSTEM_TYPES",
    "as_template",
    "is_pinned",
    "is_template",
    "pinned",
    "pinned_id",
    "pools_of",
]

SYSTEM_TYPES: Final = frozenset({JobType.SYSTEM.value, JobType.SYSBATCH.value})
"""Types of jobs of which there is one on each node."""

_LONGEST: Final = 255  # bytes of an id


def as_template(job: Job) -> Job:
    """The row of the system job *job* as its user submitted it."""
    kept = {"pools": list(job.pools), "payload": job.payload}
    return job.replace(pools=(), validated=False, payload=kept, version=1)


def is_template(job: Job) -> bool:
    """Whether *job* is a template: of a system type, and in no pool."""
    return not job.pools and job.job_type in SYSTEM_TYPES


def is_pinned(job: Job) -> bool:
    """Whether *job* is the one of a template on some node."""
    return bool(job.pools) and job.job_type in SYSTEM_TYPES


def pools_of(template: Job) -> tuple[PoolName, ...]:
    """The pools on whose nodes jobs of *template* run."""
    return tuple(map(PoolName, _kept(template)["pools"]))


def pinned_id(template_id: JobId, node_id: NodeId, generation: int) -> JobId:
    """The id of the *generation*-th job of a template on a node, counted from 1.

    `template@node`, then `template@node#2` and so on, where an `@` of the template and a `#` of
    the node are escaped, so that no two of them share one; a digest if that is too long.
    """
    name = f"{_escaped(template_id, '@')}@{_escaped(node_id, '#')}"
    ending = f"#{generation}" if generation > 1 else ""
    if len(f"{name}{ending}".encode()) > _LONGEST:
        name = f"system-{sha256(name.encode()).hexdigest()}"
    return JobId(f"{name}{ending}")


def pinned(template: Job, node: Node, generation: int) -> Job:
    """The new *generation*-th job of *template* on *node*: it takes the template's place in its queue.

    One of a `system` job is tried again for ever, as a service is; of a `sysbatch` job never. Of
    the template's rules it has those that are not about a group.
    """
    rules = template.rules
    forever = template.job_type == JobType.SYSTEM.value
    return Job(
        id=pinned_id(template.id, node.id, generation),
        queue=template.queue,
        requirements=replaced(template.requirements, nodes=(node.id,)),
        submitted_at=template.submitted_at,
        job_set=template.job_set,
        priority=template.priority,
        pools=(node.pool,),
        validated=True,
        job_type=template.job_type,
        policy=ReschedulePolicy.default(JobType.SERVICE.value) if forever else None,
        payload=_kept(template)["payload"],
        rules=None if rules is None else structs.replace(rules, update=None, migrate=None),
    )


def _escaped(text: str, sign: str) -> str:
    return text.replace("%", "%25").replace(sign, f"%{ord(sign):02X}")


def _kept(template: Job) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", template.payload)
