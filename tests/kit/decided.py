"""What a round came to, as plain values: the same from the engine and from the plain model."""

from dataclasses import dataclass, field

from pyresched.model import RoundResult

__all__ = ["Decided", "plain"]


@dataclass
class Decided:
    """Jobs by id, each list in the order of the decisions, reasons by code."""

    scheduled: list[tuple[str, str, int, str]] = field(default_factory=list)
    """Job, node, priority, method."""
    preempted: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    """Job, run, node, for which job, cause."""
    moved: list[tuple[str, str, str, int, str, str]] = field(default_factory=list)
    """Job, from which node, to which, priority, for which job, cause."""
    refused: dict[str, str] = field(default_factory=dict)
    rested: bool = True
    passes: int = 1

    @property
    def ins(self) -> set[str]:
        """Who got a node and had none."""
        return {each[0] for each in self.scheduled}

    @property
    def outs(self) -> set[str]:
        """Who had a node and has none."""
        return {each[0] for each in self.preempted}

    def __bool__(self) -> bool:
        return bool(self.scheduled or self.preempted or self.moved)


def plain(result: RoundResult) -> Decided:
    """The plain values of *result*."""
    return Decided(
        [(p.job_id, p.node_id, p.priority, p.method.value) for p in result.scheduled],
        [(p.job_id, p.run_id, p.node_id, p.for_job_id, p.reason.value) for p in result.preempted],
        [
            (m.job_id, m.from_node_id, m.node_id, m.priority, m.for_job_id, m.reason.value)
            for m in result.moved
        ],
        {id: reason.code.value for id, reason in result.refused.items()},
        result.termination.value != "no_rest",
        result.passes,
    )
