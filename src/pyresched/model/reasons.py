"""Why something was not placed: a type with a code; its sentence is made at the edge."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

__all__ = ["Ends", "Exclusion", "ReasonCode", "UnschedulableReason"]


class Ends(Enum):
    """How far a reason reaches."""

    GANG = "gang"
    QUEUE = "queue"
    ROUND = "round"


class ReasonCode(Enum):
    """The kinds of refusal. Metrics and tests use these, never a sentence."""

    INSUFFICIENT_RESOURCES = "insufficient_resources"  # less is left than wanted
    EXCEEDS_EVERY_NODE = "exceeds_every_node"  # more than any node has in total
    NO_MATCHING_NODE = "no_matching_node"  # selector or taints exclude every node
    # Why one node may not be used:
    NODE_NOT_NAMED = "node_not_named"  # others were asked for by id
    NODE_CORDONED = "node_cordoned"
    NODE_DRAINING = "node_draining"
    NODE_LOST = "node_lost"
    NODE_DISCONNECTED = "node_disconnected"  # out of reach, and may come back with its runs
    UNTOLERATED_TAINT = "untolerated_taint"
    LABEL_MISSING = "label_missing"  # one of the selector's
    LABEL_DIFFERS = "label_differs"
    AFFINITY_NOT_MET = "affinity_not_met"
    CONSTRAINT_NOT_MET = "constraint_not_met"
    HOST_TAKEN = "host_taken"  # distinct_hosts: a job of the scope is on it
    PROPERTY_TAKEN = "property_taken"  # distinct_property: enough are on nodes of its value
    # Why a gang or a queue gets nothing:
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
    TOO_CROWDED = "too_crowded"  # others of its scope hold the hosts or values that would do
    PAST_LOOKBACK = "past_lookback"
    # Limits on what a round starts anew:
    ROUND_LIMIT = "round_limit"  # this round has given out the part of the pool that it may
    RATE_LIMIT = "rate_limit"  # no job may start now, of whatever queue
    GANG_EXCEEDS_BURST = "gang_exceeds_burst"  # more members than may ever start at once
    GANG_RATE_LIMIT = "gang_rate_limit"  # more members than may start now
    QUEUE_RATE_LIMIT = "queue_rate_limit"  # no job of its queue may start now
    GANG_EXCEEDS_QUEUE_BURST = "gang_exceeds_queue_burst"
    GANG_QUEUE_RATE_LIMIT = "gang_queue_rate_limit"
    ROUND_BUDGET = "round_budget"  # as many were tried as a round may try
    QUEUE_BUDGET = "queue_budget"  # the same of its queue
    CLASS_LIMIT = "class_limit"  # its queue would hold too much in its class
    FLOATING_RESOURCES = "floating_resources"  # its pool has too little of one left, or none

    @property
    def ends(self) -> Ends:
        """How far a refusal for this reason reaches."""
        return _ENDS.get(self, Ends.GANG)


_ENDS: Final[Mapping[ReasonCode, Ends]] = {
    ReasonCode.PAST_LOOKBACK: Ends.QUEUE,
    ReasonCode.QUEUE_CORDONED: Ends.QUEUE,
    ReasonCode.UNKNOWN_QUEUE: Ends.QUEUE,
    ReasonCode.INVALID_WEIGHT: Ends.QUEUE,
    ReasonCode.QUEUE_RATE_LIMIT: Ends.QUEUE,
    ReasonCode.QUEUE_BUDGET: Ends.QUEUE,
    ReasonCode.NO_NODES: Ends.ROUND,
    ReasonCode.ROUND_LIMIT: Ends.ROUND,
    ReasonCode.RATE_LIMIT: Ends.ROUND,
    ReasonCode.ROUND_BUDGET: Ends.ROUND,
}


class UnschedulableReason(Struct, frozen=True):
    """One refusal with its evidence.

    Of `resource` it wanted `wanted` and the best node had `had`, in steps of the resource; for
    a gang, `resource` is "" and the two count members; for the look-back they count jobs.
    Of a limit, `wanted` is what the candidate comes to (members, tries, or the amount of
    `resource` with what is there already) and `had` what is allowed.
    `subject` is a taint (`key=value:effect`), a label, a class or a condition as text; `expected` and
    `found` are the values of a label; where many values were found, `had` counts them.
    """

    code: ReasonCode
    ends: Ends = Ends.GANG
    resource: str = ""
    wanted: int = 0
    had: int = 0
    subject: str = ""
    expected: str = ""
    found: str = ""

    @property
    def class_name(self) -> str:
        """The class whose limit it is, as a sentence has it; a round does not say which."""
        return f"class {self.subject!r}" if self.subject else "its class"

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        if self.code is ReasonCode.LABEL_DIFFERS and self.had:
            return f"label {self.subject}: wanted {self.expected!r}, had one of {self.had} others"
        if self.code is ReasonCode.GANG_MALFORMED and self.had > self.wanted:
            return f"gang malformed: {self.had} members, its cardinality is {self.wanted}"
        known = _SENTENCES.get(self.code)
        if known is not None:
            return known.format(reason=self)
        text = self.code.value.replace("_", " ")
        if self.resource:
            return f"{text}: {self.resource}: wanted {self.wanted}, best node had {self.had}"
        if self.code is ReasonCode.PAST_LOOKBACK:
            return f"{text}: only the first {self.had} jobs of the queue were looked at"
        if self.wanted:
            became = _OF_MEMBERS.get(self.code)
            if became is None:
                return f"{text}: wanted {self.wanted} members, had {self.had}"
            return f"{text}: {self.had} of {self.wanted} members {became}"
        return text

    def to_dict(self) -> dict[str, str | int]:
        """The fields by name, as plain values; those about labels only where they say something."""
        plain: dict[str, str | int] = {
            "code": self.code.value,
            "ends": self.ends.value,
            "resource": self.resource,
            "wanted": self.wanted,
            "had": self.had,
        }
        texts = {"subject": self.subject, "expected": self.expected, "found": self.found}
        return plain | {name: text for name, text in texts.items() if text}


_OF_MEMBERS: Final = {
    ReasonCode.GANG_DOES_NOT_FIT: "found a node",
    ReasonCode.GANG_INCOMPLETE: "are queued",
}

_SENTENCES: Final = {
    ReasonCode.NODE_NOT_NAMED: "not one of the nodes asked for",
    ReasonCode.NODE_CORDONED: "cordoned",
    ReasonCode.NODE_DRAINING: "draining",
    ReasonCode.NODE_LOST: "lost",
    ReasonCode.NODE_DISCONNECTED: "out of reach",
    ReasonCode.UNTOLERATED_TAINT: "taint {reason.subject} not tolerated",
    ReasonCode.LABEL_MISSING: "label {reason.subject}: wanted {reason.expected!r}, not set",
    ReasonCode.LABEL_DIFFERS: (
        "label {reason.subject}: wanted {reason.expected!r}, had {reason.found!r}"
    ),
    ReasonCode.AFFINITY_NOT_MET: "affinity not met: {reason.subject}",
    ReasonCode.CONSTRAINT_NOT_MET: "constraint not met: {reason.subject}",
    ReasonCode.HOST_TAKEN: "distinct hosts: a job of the same scope is there",
    ReasonCode.PROPERTY_TAKEN: (
        "distinct {reason.subject}: its value has the {reason.wanted} jobs of the scope it may have"
    ),
    ReasonCode.GANG_MALFORMED: (
        "gang malformed: its members do not agree in class, pools, cardinality and label"
    ),
    ReasonCode.ROUND_LIMIT: (
        "round limit: {reason.resource}: {reason.wanted} given out, a round stops above {reason.had}"
    ),
    ReasonCode.RATE_LIMIT: "rate limit: no more jobs may start now",
    ReasonCode.GANG_EXCEEDS_BURST: (
        "gang exceeds burst: {reason.wanted} members, at most {reason.had} may ever start at once"
    ),
    ReasonCode.GANG_RATE_LIMIT: (
        "gang rate limit: {reason.wanted} members, {reason.had} may start now"
    ),
    ReasonCode.QUEUE_RATE_LIMIT: "queue rate limit: no more jobs of the queue may start now",
    ReasonCode.GANG_EXCEEDS_QUEUE_BURST: (
        "gang exceeds queue burst: {reason.wanted} members, at most {reason.had} of the queue "
        "may ever start at once"
    ),
    ReasonCode.GANG_QUEUE_RATE_LIMIT: (
        "gang queue rate limit: {reason.wanted} members, {reason.had} of the queue may start now"
    ),
    ReasonCode.ROUND_BUDGET: "round budget: the {reason.had} candidates that a round tries are tried",
    ReasonCode.QUEUE_BUDGET: (
        "queue budget: the {reason.had} candidates of a queue that a round tries are tried"
    ),
    ReasonCode.CLASS_LIMIT: (
        "class limit: {reason.resource}: the queue would hold {reason.wanted} in {reason.class_name}, "
        "may hold {reason.had}"
    ),
    ReasonCode.FLOATING_RESOURCES: (
        "floating resources: {reason.resource}: wanted {reason.wanted}, the pool has {reason.had} left"
    ),
}


class Exclusion(Struct, frozen=True):
    """So many nodes are out for this reason."""

    reason: UnschedulableReason
    nodes: int

    def sentence(self) -> str:
        """For people. Never compared, never parsed."""
        return f"{self.nodes} node{'' if self.nodes == 1 else 's'}: {self.reason.sentence()}"

    @property
    def order(self) -> tuple[int, str, str, str, str, str]:
        """What sorts exclusions: most nodes first, then by what they say."""
        reason = self.reason
        return (
            *(-self.nodes, reason.code.value, reason.resource, reason.subject),
            *(reason.expected, reason.found),
        )
