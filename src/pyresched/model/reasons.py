"""Why something was not placed: a type with a code; its sentence is made at the edge."""

from enum import Enum

from msgspec import Struct

__all__ = ["Ends", "ReasonCode", "UnschedulableReason"]


class Ends(Enum):
    """How far a reason reaches."""

    GANG = "gang"
    QUEUE = "queue"
    ROUND = "round"


class ReasonCode(Enum):
    """The kinds of refusal. Metrics and tests use these, never a sentence."""

    INSUFFICIENT_RESOURCES = "insufficient_resources"  # fits an empty node, not one as it is now
    EXCEEDS_EVERY_NODE = "exceeds_every_node"  # more than any node has in total
    NO_MATCHING_NODE = "no_matching_node"  # selector or taints exclude every node
    GANG_DOES_NOT_FIT = "gang_does_not_fit"  # some members do, not all together
    GANG_EXCEEDS_POOL = "gang_exceeds_pool"  # not even on the empty pool
    GANG_INCOMPLETE = "gang_incomplete"  # members are still to be submitted
    GANG_MALFORMED = "gang_malformed"  # members disagree
    QUEUE_CORDONED = "queue_cordoned"
    UNKNOWN_QUEUE = "unknown_queue"
    UNKNOWN_PRIORITY_CLASS = "unknown_priority_class"
    NO_NODES = "no_nodes"
    PAST_LOOKBACK = "past_lookback"


class UnschedulableReason(Struct, frozen=True):
    """One refusal with its evidence: of `resource` it wanted `wanted`, the best node had `had`."""

    code: ReasonCode
    ends: Ends = Ends.GANG
    resource: str = ""
    wanted: int = 0
    had: int = 0

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        text = self.code.value.replace("_", " ")
        if self.resource:
            text += f": {self.resource}: wanted {self.wanted}, best node had {self.had}"
        return text
