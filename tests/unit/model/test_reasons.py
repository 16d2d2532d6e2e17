import pytest

from pyresched.model import Ends, ReasonCode, UnschedulableReason


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (UnschedulableReason(ReasonCode.NO_NODES, Ends.ROUND), "no nodes"),
        (
            UnschedulableReason(
                ReasonCode.INSUFFICIENT_RESOURCES, resource="cpu", wanted=16000, had=12000
            ),
            "insufficient resources: cpu: wanted 16000, best node had 12000",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_INCOMPLETE, wanted=4, had=3),
            "gang incomplete: 3 of 4 members are queued",
        ),
        (
            UnschedulableReason(ReasonCode.PAST_LOOKBACK, Ends.QUEUE, wanted=7, had=5),
            "past lookback: only the first 5 jobs of the queue were looked at",
        ),
        (
            UnschedulableReason(ReasonCode.ROUND_LIMIT, resource="cpu", wanted=17, had=16),
            "round limit: cpu: 17 given out, a round stops above 16",
        ),
        (UnschedulableReason(ReasonCode.RATE_LIMIT), "rate limit: no more jobs may start now"),
        (
            UnschedulableReason(ReasonCode.GANG_EXCEEDS_BURST, wanted=6, had=4),
            "gang exceeds burst: 6 members, at most 4 may ever start at once",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_RATE_LIMIT, wanted=6, had=4),
            "gang rate limit: 6 members, 4 may start now",
        ),
        (
            UnschedulableReason(ReasonCode.QUEUE_RATE_LIMIT),
            "queue rate limit: no more jobs of the queue may start now",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_EXCEEDS_QUEUE_BURST, wanted=6, had=4),
            "gang exceeds queue burst: 6 members, at most 4 of the queue may ever start at once",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_QUEUE_RATE_LIMIT, wanted=6, had=4),
            "gang queue rate limit: 6 members, 4 of the queue may start now",
        ),
        (
            UnschedulableReason(ReasonCode.ROUND_BUDGET, had=9),
            "round budget: the 9 candidates that a round tries are tried",
        ),
        (
            UnschedulableReason(ReasonCode.QUEUE_BUDGET, had=9),
            "queue budget: the 9 candidates of a queue that a round tries are tried",
        ),
        (
            UnschedulableReason(
                ReasonCode.CLASS_LIMIT, resource="cpu", wanted=9, had=8, subject="spot"
            ),
            "class limit: cpu: the queue would hold 9 in class 'spot', may hold 8",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_DOES_NOT_FIT, wanted=4, had=3),
            "gang does not fit: 3 of 4 members found a node",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_MALFORMED, wanted=4, had=4),
            "gang malformed: its members do not agree in class, pools, cardinality and label",
        ),
        (
            UnschedulableReason(ReasonCode.GANG_MALFORMED, wanted=4, had=5),
            "gang malformed: 5 members, its cardinality is 4",
        ),
        (
            UnschedulableReason(ReasonCode.CLASS_LIMIT, resource="cpu", wanted=9, had=8),
            "class limit: cpu: the queue would hold 9 in its class, may hold 8",
        ),
        (
            UnschedulableReason(ReasonCode.FLOATING_RESOURCES, resource="licence", wanted=2, had=1),
            "floating resources: licence: wanted 2, the pool has 1 left",
        ),
    ],
)
def test_a_sentence_says_what_the_fields_hold(reason, sentence):
    """The evidence is in the sentence, in words that fit the kind of reason."""
    assert reason.sentence() == sentence


def test_a_reason_as_plain_values_keeps_every_field():
    """Codes and evidence survive; nothing else is added."""
    reason = UnschedulableReason(
        ReasonCode.EXCEEDS_EVERY_NODE, Ends.GANG, resource="cpu", wanted=9, had=8
    )
    assert reason.to_dict() == {
        "code": "exceeds_every_node",
        "ends": "gang",
        "resource": "cpu",
        "wanted": 9,
        "had": 8,
    }


def test_a_reason_reaches_as_far_as_what_it_is_about():
    """What is said of a queue ends the queue, of all of them the round, else the candidate."""
    reach = {ends: {code.name for code in ReasonCode if code.ends is ends} for ends in Ends}
    assert reach[Ends.ROUND] == {"NO_NODES", "ROUND_LIMIT", "RATE_LIMIT", "ROUND_BUDGET"}
    assert reach[Ends.QUEUE] == {
        *("PAST_LOOKBACK", "QUEUE_CORDONED", "UNKNOWN_QUEUE", "INVALID_WEIGHT"),
        *("QUEUE_RATE_LIMIT", "QUEUE_BUDGET"),
    }
    assert {"CLASS_LIMIT", "FLOATING_RESOURCES", "GANG_EXCEEDS_BURST"} <= reach[Ends.GANG]
