import json
import pickle

from msgspec import structs

from pyresched.model import (
    Move,
    Placement,
    Preemption,
    PreemptionCause,
    QueueCounts,
    QueueShare,
    ReasonCode,
    RoundResult,
    Termination,
    UnschedulableReason,
)

SHARE = QueueShare(
    queue="a",
    weight=1.0,
    raw_weight=2.0,
    fair_share=0.5,
    adjusted_share=0.5,
    uncapped_share=0.5,
    demand_share=0.75,
    constrained_demand_share=0.625,
    penalty_share=0.125,
    actual_share=0.25,
    protected_share=0.5,
    resulting_share=0.5,
)

COUNTS = QueueCounts(
    queue="a", queued=3, looked_at=2, cut_off=True, tried=2, scheduled_jobs=1, first_position=0
)
MOVE = Move("j4", "r4", "n1", "n2", 1000, "j1", PreemptionCause.URGENCY)


def result(**fields):
    """One placement, one move, one preemption, one refusal; *fields* replace."""
    return RoundResult(
        pool="default",
        **{
            "scheduled": (Placement("j1", "n1", 1000),),
            "moved": (MOVE,),
            "preempted": (Preemption("j2", "r2", "n1", "j1"),),
            "refused": {"j3": UnschedulableReason(ReasonCode.NO_MATCHING_NODE)},
            "termination": Termination.NO_REMAINING_CANDIDATES,
            **fields,
        },
    )


def test_a_result_is_plain_values_in_a_fixed_order():
    """`to_dict` goes through JSON unchanged."""
    plain = result(count_shares=lambda: (SHARE,), queues=(COUNTS,)).to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert list(plain) == [
        "pool",
        "termination",
        "passes",
        "scheduled",
        "moved",
        "preempted",
        "refused_by_code",
        "refused",
        "queues",
        "shares",
        "fairness_error",
    ]
    assert plain["preempted"][0]["reason"] == "fair_share"
    assert plain["moved"][0] == {
        "job_id": "j4",
        "run_id": "r4",
        "from_node_id": "n1",
        "node_id": "n2",
        "priority": 1000,
        "for_job_id": "j1",
        "reason": "urgency",
    }
    assert plain["queues"][0]["cut_off"] is True
    assert plain["queues"][0]["last_position"] is None
    assert plain["refused_by_code"] == {"no_matching_node": 1}
    assert plain["shares"][0]["demand_share"] == 0.75


def test_shares_are_worked_out_once_and_only_when_asked_for():
    """A round that nobody asks for shares pays nothing for them."""
    calls = []

    def count():
        calls.append(1)
        return (SHARE,)

    done = result(count_shares=count)
    assert not calls
    assert done.shares == done.shares == (SHARE,)
    assert calls == [1]


def test_the_fairness_error_is_what_queues_miss_after_the_round():
    """What one has above its adjusted share makes up for nothing."""
    below = structs.replace(SHARE, adjusted_share=0.5, resulting_share=0.125)
    above = structs.replace(SHARE, queue="b", adjusted_share=0.25, resulting_share=0.875)
    assert result(count_shares=lambda: (below, above, below)).fairness_error == 0.75
    assert result(count_shares=lambda: (above,)).to_dict()["fairness_error"] == 0.0
    assert result().fairness_error == 0.0


def test_results_are_equal_by_what_they_decide():
    """Any difference in a decision, a reason or a share makes two results differ."""
    assert result() == result()
    assert result() != result(scheduled=())
    assert result() != result(refused={})
    assert result() != result(moved=())
    assert result() != result(passes=2)
    assert result() != result(queues=(COUNTS,))
    assert result() != result(count_shares=lambda: (SHARE,))
    gang = Preemption("j2", "r2", "n1", "j1", PreemptionCause.GANG)
    assert result() != result(preempted=(gang,))
    assert result() != "a result"


def test_a_result_that_changes_nothing_is_false():
    """Refusals change nothing."""
    assert not result(scheduled=(), moved=(), preempted=())
    assert result(scheduled=(), preempted=())
    assert result(moved=(), preempted=())
    assert result(scheduled=(), moved=())


def test_a_copy_of_a_result_is_equal_and_has_its_shares():
    """What is worked out when asked for is worked out before it travels."""
    done = result(count_shares=lambda: (SHARE,), queues=(COUNTS,), passes=3)
    assert pickle.loads(pickle.dumps(done)) == done  # noqa: S301 - our own bytes
