"""What the group of a job asks for beyond a policy of rescheduling, as it is in effect.

Owns the values behind `Job.rules`, which jobs of a group share, and what is wrong with them;
what users write and how it is merged lies in `blocks` and `spec`. Durations are integer
nanoseconds.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from pyresched.durations import NANOS, short_duration
from pyresched.errors import did_you_mean
from pyresched.ids import Duration
from pyresched.reschedule import RestartPolicy

__all__ = ["DisconnectRule", "GroupRules", "MigrateRule", "UpdateRule", "rule_faults"]

_TEN_SECONDS: Final = 10 * NANOS
_INT64_MAX: Final = 2**63 - 1
RECONCILE: Final = ("best_score", "keep_original", "keep_replacement", "longest_running")


class DisconnectRule(Struct, frozen=True, kw_only=True):
    """What becomes of a run whose node is out of reach.

    It is lost `lost_after` from then on; if `replace`, another run starts meanwhile, and
    `reconcile` names which of both goes on. `stop_on_client_after`, if any, is when the node
    itself stops it.
    """

    lost_after: Duration = 0
    stop_on_client_after: Duration | None = None
    replace: bool = True
    reconcile: str = "best_score"


class MigrateRule(Struct, frozen=True, kw_only=True):
    """How many runs of a group leave draining nodes at once, and when one counts as healthy."""

    max_parallel: int = 1
    min_healthy_time: Duration = _TEN_SECONDS


class UpdateRule(Struct, frozen=True, kw_only=True):
    """Until when a deployment must make progress, and when a run of it counts as healthy."""

    progress_deadline: Duration = 600 * NANOS
    min_healthy_time: Duration = _TEN_SECONDS


class GroupRules(Struct, frozen=True, kw_only=True):
    """The rules of one group of jobs: `group` is its identity within the queue.

    `count` is how many jobs it has, `version` that of the submission. Without a part, a job
    behaves as if it were alone: no restart on its node, no tolerance of a node out of reach, it
    migrates by itself, and no deployment. `kill_timeout` is how long a process may take to end.
    """

    group: str = ""
    count: int = 1
    version: int = 0
    restart: RestartPolicy | None = None
    disconnect: DisconnectRule | None = None
    migrate: MigrateRule | None = None
    update: UpdateRule | None = None
    kill_timeout: Duration = 5 * NANOS


def rule_faults(rules: object) -> Iterator[tuple[str, str]]:
    """What is wrong with the rules of a job: names of fields, and what would be right.

    Takes anything, as nobody looked when it was made; None is no rules.
    """
    if rules is None:
        return
    if not isinstance(rules, GroupRules):
        yield "", f"{rules!r} is no GroupRules; give one, or None"
        return
    numbers = {"count": rules.count, "version": rules.version, "kill_timeout": rules.kill_timeout}
    yield from _whole("", numbers)
    for name, (kind, look) in _PARTS.items():
        part: object = getattr(rules, name)
        if part is not None and not isinstance(part, kind):
            yield name, f"{part!r} is no {kind.__name__}; give one, or None"
        elif part is not None:
            yield from ((f"{name}{path}", sentence) for path, sentence in look(part))


def _whole(prefix: str, numbers: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in numbers.items():
        right = isinstance(value, int) and not isinstance(value, bool)
        if not right or not 0 <= cast("int", value) <= _INT64_MAX:
            yield (
                f"{prefix}{name}",
                f"{value!r} is not 0 or more; write a whole number, ns for times",
            )


def _of_restart(policy: RestartPolicy) -> Iterator[tuple[str, str]]:
    numbers = {name: getattr(policy, name) for name in ("attempts", "interval", "delay")}
    if wrong := list(_whole(".", numbers)):
        yield from wrong
        return
    for problem in policy.problems():
        yield "", problem.sentence


def _of_disconnect(rule: DisconnectRule) -> Iterator[tuple[str, str]]:
    stop = rule.stop_on_client_after
    yield from _whole(".", {"lost_after": rule.lost_after})
    if stop is not None:
        yield from _whole(".", {"stop_on_client_after": stop})
        if rule.lost_after:
            yield "", "lost_after and stop_on_client_after exclude each other; write one"
    if rule.reconcile not in RECONCILE:
        near = did_you_mean(str(rule.reconcile), RECONCILE)
        yield ".reconcile", f"{rule.reconcile!r} is unknown; {near}"


def _of_migrate(rule: MigrateRule) -> Iterator[tuple[str, str]]:
    numbers = {"max_parallel": rule.max_parallel, "min_healthy_time": rule.min_healthy_time}
    yield from _whole(".", numbers)
    if rule.max_parallel == 0:
        yield ".max_parallel", "0 lets no run leave; write 1 or more"


def _of_update(rule: UpdateRule) -> Iterator[tuple[str, str]]:
    numbers = {
        "progress_deadline": rule.progress_deadline,
        "min_healthy_time": rule.min_healthy_time,
    }
    if wrong := list(_whole(".", numbers)):
        yield from wrong
    elif 0 < rule.progress_deadline <= rule.min_healthy_time:
        deadline, least = (short_duration(each) for each in numbers.values())
        sentence = f"{deadline} ends before a run is healthy, after {least}; write more"
        yield ".progress_deadline", sentence


_Look = Callable[[Any], Iterator[tuple[str, str]]]
_PARTS: Final[Mapping[str, tuple[type, _Look]]] = {
    "restart": (RestartPolicy, _of_restart),
    "disconnect": (DisconnectRule, _of_disconnect),
    "migrate": (MigrateRule, _of_migrate),
    "update": (UpdateRule, _of_update),
}
