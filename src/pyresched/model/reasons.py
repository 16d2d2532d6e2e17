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
    NODES_CLOSED = "nodes_closed"  # every matching one is lost, cordoned or over-allocated
    GANG_DOES_NOT_FIT = "gang_does_not_fit"  # some members do, not all together
    GANG_EXCEEDS_POOL = "gang_exceeds_pool"  # not even on the empty pool
    GANG_INCOMPLETE = "gang_incomplete"  # not all members that have not ended are queued here
    GANG_MALFORMED = "gang_malformed"  # members disagree, or there are too many
    QUEUE_CORDONED = "queue_cordoned"
    UNKNOWN_QUEUE = "unknown_queue"
    INVALID_WEIGHT = "invalid_weight"  # its queue's: not finite and above 0
    UNKNOWN_PRIORITY_CLASS = "unknown_priority_class"
    INVALID_REQUEST = "invalid_request"  # negative, or not of the resources of the configuration
    NO_NODES = "no_nodes"  # its pool has none
    PAST_LOOKBACK = "past_lookback"


class UnschedulableReason(Struct, frozen=True):
    """One refusal with its evidence.

    Of `resource` it wanted `wanted` and the best node had `had`, in steps of the resource; for
    a gang, `resource` is "" and the two count members; for the look-back they count jobs.
    """

    code: ReasonCode
    ends: Ends = Ends.GANG
    resource: str = ""
    wanted: int = 0
    had: int = 0

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        text = self.code.value.replace("_", " ")
        if self.resource:
            return f"{text}: {self.resource}: wanted {self.wanted}, best node had {self.had}"
        if self.code is ReasonCode.PAST_LOOKBACK:
            return f"{text}: only the first {self.had} jobs of the queue were looked at"
        if self.wanted:
            return f"{text}: wanted {self.wanted} members, had {self.had}"
        return text

    def to_dict(self) -> dict[str, str | int]:
        """The fields by name, as plain values."""
        return {
            "code": self.code.value,
            "ends": self.ends.value,
            "resource": self.resource,
            "wanted": self.wanted,
            "had": self.had,
        }
