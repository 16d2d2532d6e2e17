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
            "gang incomplete: wanted 4 members, had 3",
        ),
        (
            UnschedulableReason(ReasonCode.PAST_LOOKBACK, Ends.QUEUE, wanted=7, had=5),
            "past lookback: only the first 5 jobs of the queue were looked at",
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
