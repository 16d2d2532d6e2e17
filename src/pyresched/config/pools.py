"""Pools as an operator sets them, and which values of one cannot be used.

Relies on the reading of faults; what a round does with a pool's settings is `scheduling`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from pyresched.config.faults import (
    fraction_faults,
    multiplier_faults,
    name_faults,
    rate_faults,
    share_faults,
)
from pyresched.config.reading import Fault, key_path
from pyresched.durations import WrittenDuration
from pyresched.errors import InputError, did_you_mean
from pyresched.model import PoolName, Queue, Resource, ResourceSpec, Rounding
from pyresched.model.queues import queue_faults

__all__ = ["PoolConfig", "pool_faults"]


class PoolConfig(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, repr_omit_defaults=True
):
    """Nodes that are scheduled in one round.

    `fairness_resources`, `protected_fraction` and `max_fraction_to_schedule` replace those of
    the whole configuration in this pool. `floating` are the quantities of floating resources
    that it has. Its jobs may also use nodes of `away_pools`, as guests that give way first.
    `queue_weights` replaces the weights of queues here. With `protect_uncapped` a fraction of the
    uncapped share is protected. A run that ends sooner than `short_job_penalty_cutoff` counts up
    to that age. Fair share takes no more runs than `preemption_rate` each second, in bursts of
    `preemption_burst`. The last six turn ways of placing and of making room off; without the last,
    guests here count as what they are, not below every class.
    """

    name: PoolName
    fairness_resources: dict[str, float] | None = None
    floating: dict[str, str | int] = {}
    away_pools: tuple[PoolName, ...] = ()
    queue_weights: dict[str, float] = {}
    protected_fraction: float | None = None
    protect_uncapped: bool = False
    short_job_penalty_cutoff: WrittenDuration | None = None
    max_fraction_to_schedule: dict[str, float] | None = None
    preemption_rate: float | None = None
    preemption_burst: int | None = None
    place_home: bool = True
    place_away: bool = True
    place_gangs_away: bool = True
    preempt_by_fair_share: bool = True
    preempt_by_urgency: bool = True
    preempt_guests_first: bool = True

    if TYPE_CHECKING:  # who makes one need not wrap its names

        def __init__(
            self,
            *,
            name: str,
            fairness_resources: dict[str, float] | None = None,
            floating: dict[str, str | int] = ...,
            away_pools: tuple[str, ...] = (),
            queue_weights: dict[str, float] = ...,
            protected_fraction: float | None = None,
            protect_uncapped: bool = False,
            short_job_penalty_cutoff: int | None = None,
            max_fraction_to_schedule: dict[str, float] | None = None,
            preemption_rate: float | None = None,
            preemption_burst: int | None = None,
            place_home: bool = True,
            place_away: bool = True,
            place_gangs_away: bool = True,
            preempt_by_fair_share: bool = True,
            preempt_by_urgency: bool = True,
            preempt_guests_first: bool = True,
        ) -> None: ...

    def weight_of(self, queue: Queue) -> float:
        """The weight of *queue* in this pool."""
        return self.queue_weights.get(queue.name, queue.weight)


def pool_faults(pools: Sequence[PoolConfig], resources: Sequence[Resource]) -> Iterator[Fault]:
    """Each value of *pools* that cannot be used with *resources*."""
    names = [each.name for each in pools]
    yield from name_faults("pools", names)
    if not pools:
        yield Fault("pools", "none is left; write at least one")
    near = {each.name: each.away_pools for each in pools}
    known = [resource.name for resource in resources]
    for i, pool in enumerate(pools):
        path = f"pools[{i}]"
        if pool.fairness_resources is not None:
            own = f"{path}.fairness_resources"
            yield from multiplier_faults(own, pool.fairness_resources, known)
            if not pool.fairness_resources:
                yield Fault(own, "nothing would count; leave it out or name a resource")
        yield from _floating_faults(f"{path}.floating", pool.floating, resources)
        yield from _away_faults(f"{path}.away_pools", pool, names)
        yield from _ring_faults(f"{path}.away_pools", pool, near)
        yield from _weight_faults(f"{path}.queue_weights", pool.queue_weights)
        if pool.protected_fraction is not None:
            yield from share_faults(f"{path}.protected_fraction", pool.protected_fraction)
        cutoff = pool.short_job_penalty_cutoff
        if cutoff is not None and cutoff <= 0:
            sentence = "is no time; write a duration above 0, or leave it out for no penalty"
            yield Fault(f"{path}.short_job_penalty_cutoff", sentence)
        if pool.max_fraction_to_schedule is not None:
            own = f"{path}.max_fraction_to_schedule"
            yield from fraction_faults(own, pool.max_fraction_to_schedule, known)
        yield from rate_faults(path, "preemption_", pool.preemption_rate, pool.preemption_burst)
        if not (pool.place_home or pool.place_away):
            sentence = "nothing would ever be placed; leave it or place_away on"
            yield Fault(f"{path}.place_home", sentence)


def _floating_faults(
    path: str, quantities: Mapping[str, str | int], resources: Sequence[Resource]
) -> Iterator[Fault]:
    by_name = {resource.name: resource for resource in resources}
    floating = [resource.name for resource in resources if resource.floating]
    for name, quantity in quantities.items():
        own = key_path(path, name)
        resource = by_name.get(name)
        if resource is None:
            yield Fault(own, f"unknown resource; {did_you_mean(name, floating)}")
        elif not resource.floating:
            sentence = "nodes have this resource; make it floating under resources, or drop it"
            yield Fault(own, sentence)
        else:
            try:
                ResourceSpec((resource,)).vector({name: quantity}, rounding=Rounding.DOWN)
            except InputError as bad:
                yield Fault(own, str(bad))


def _away_faults(path: str, pool: PoolConfig, names: Sequence[str]) -> Iterator[Fault]:
    others = [name for name in names if name != pool.name]
    for i, away in enumerate(pool.away_pools):
        own = f"{path}[{i}]"
        if away == pool.name:
            yield Fault(own, f"{away!r} is the pool itself; name another")
        elif away not in names:
            yield Fault(own, f"unknown pool {away!r}; {did_you_mean(away, others)}")
        elif away in pool.away_pools[:i]:
            yield Fault(own, f"{away!r} is there twice; keep one")


def _ring_faults(
    path: str, pool: PoolConfig, near: Mapping[PoolName, Sequence[PoolName]]
) -> Iterator[Fault]:
    """A gang that is part at home, part guest could else be sent off in every cycle, for ever."""
    for i, away in enumerate(pool.away_pools):
        seen: set[PoolName] = set()
        ahead = [away] if away != pool.name else []
        while ahead:
            name = ahead.pop()
            if name == pool.name:
                sentence = f"{away!r} leads back here by away pools of its own; drop one of them"
                yield Fault(f"{path}[{i}]", sentence)
                break
            if name not in seen:
                seen.add(name)
                ahead += near.get(name, ())


def _weight_faults(path: str, weights: Mapping[str, float]) -> Iterator[Fault]:
    for name, weight in weights.items():
        for _, sentence in queue_faults(name or "?", weight):
            yield Fault(key_path(path, name), sentence)
