"""What is known of turns within and between queues, of limits and of look-back: facts 12 to 30.

Each is a fact of Armada, the reference, told in our words; where ours differ, a line says why.
"""

import pytest

from kit.facts import Cluster, named


def test_as_many_jobs_start_as_there_are_cores():
    """12. 33 jobs of one core on 32 cores: the first 32."""
    cluster = Cluster()
    cluster.submit("A", 33)
    assert cluster.round().ins == named("A", range(32))


def test_smaller_jobs_behind_larger_ones_still_start():
    """13. What fits starts, past those that do not."""
    cluster = Cluster()
    cluster.submit("A", 1)
    cluster.submit("A", 10, cpu=32)
    cluster.submit("A", 1)
    assert cluster.round().ins == named("A", 0, 11)


def test_a_burst_of_all_queues_ends_the_round():
    """14. Two tokens: two jobs, and the others wait for that reason."""
    cluster = Cluster(rate=1.0, burst=2)
    cluster.submit("A", 1)
    cluster.submit("A", 10, cpu=32)
    cluster.submit("A", 4)
    decided = cluster.round()
    assert decided.ins == named("A", 0, 11)
    assert {decided.refused[id] for id in named("A", 12, 13, 14)} == {"rate_limit"}


def test_a_burst_of_one_queue_leaves_others_alone():
    """15. Two tokens of A: two jobs of A, and that of B."""
    cluster = Cluster(queue_rate=1.0, queue_burst=2)
    cluster.submit("A", 1)
    cluster.submit("A", 10, cpu=32)
    cluster.submit("A", 3)
    cluster.submit("B", 1)
    decided = cluster.round()
    assert decided.ins == named("A", 0, 11) | named("B", 0)
    assert decided.refused["A13"] == "queue_rate_limit"


def test_a_gang_that_the_tokens_do_not_cover_does_not_hold_up_those_behind_it():
    """16. One token left and a gang of two: the gang waits, a lone job takes the token."""
    cluster = Cluster(rate=1.0, burst=2)
    cluster.submit("A", 1)
    cluster.submit("A", 1, cpu=32)
    cluster.submit("A", 2, as_gang=True)
    cluster.submit("A", 2)
    decided = cluster.round()
    assert decided.ins == named("A", 0, 4)
    assert decided.refused["A2"] in {"gang_rate_limit", "rate_limit"}  # by now none is left


def test_a_round_gives_out_one_more_than_its_fraction():
    """17. Half of 32 cores: the limit is looked at before each job, so 17 start."""
    cluster = Cluster(max_fraction_to_schedule={"cpu": 0.5})
    cluster.submit("A", 32)
    decided = cluster.round()
    assert decided.ins == named("A", range(17))
    assert {decided.refused[id] for id in named("A", range(17, 32))} == {"round_limit"}


def test_a_queue_holds_no_more_of_a_class_than_its_fraction():
    """18. One to four thirty-seconds of the pool for four classes: one to four jobs of each."""
    from kit.facts import CLASSES

    limits = {"priority-0": 1, "priority-1": 2, "priority-2": 3, "priority-3": 4}
    classes = tuple(
        type(each)(
            name=each.name,
            priority=each.priority,
            preemptible=each.preemptible,
            max_fraction_per_queue={"cpu": limits[each.name] / 32} if each.name in limits else {},
        )
        for each in CLASSES
    )
    cluster = Cluster(classes=classes)
    for name in limits:
        cluster.submit("A", 10, name)
    decided = cluster.round()
    assert decided.ins == named("A", 0, 10, 11, 20, 21, 22, 30, 31, 32, 33)
    assert decided.refused["A1"] == "class_limit"


def test_a_queue_has_its_own_fraction_of_a_class_in_a_pool():
    """19. Half of this pool for one queue and class: 16 of 32."""
    cluster = Cluster()
    cluster.queue(
        "A",
        max_fraction_by_class={"priority-0": {"cpu": 0.1}},
        max_fraction_by_class_by_pool={"priority-0": {"default": {"cpu": 0.5}}},
    )
    cluster.submit("A", 32)
    assert cluster.round().ins == named("A", range(16))


@pytest.mark.parametrize(("large_first", "starts"), [(True, "A0"), (False, "B0")])
def test_of_two_equal_queues_the_larger_job_goes_first_where_it_is_preferred(large_first, starts):
    """20. One token: the job of 16 cores, or without the preference that of one."""
    cluster = Cluster(rate=1.0, burst=1, prefer_large_jobs=large_first)
    cluster.submit("A", 10, cpu=16)
    cluster.submit("B", 10)
    assert cluster.round().ins == {starts}


@pytest.mark.parametrize(
    ("nodes", "factors", "got"),
    [
        (1, {"A": 1, "B": 1}, {"A": 16, "B": 16}),
        (1, {"A": 1, "B": 1, "C": 1}, {"A": 11, "B": 11, "C": 10}),
        (3, {"A": 1, "B": 2}, {"A": 64, "B": 32}),
        (3, {"A": 1, "B": 2, "C": 10}, {"A": 60, "B": 30, "C": 6}),
    ],
)
def test_queues_share_by_weight(nodes, factors, got):
    """21. Queues that want everything get their fair shares to the job."""
    cluster = Cluster(nodes)
    for name, factor in factors.items():
        cluster.queue(name, factor)
        cluster.submit(name, 100)
    cluster.round()
    assert {name: len(cluster.running(name)) for name in factors} == got


def test_what_a_queue_holds_elsewhere_in_the_pool_counts():
    """22. A holds 100 cores of a node that takes nothing new: all 32 go to B."""
    from pyresched.model import Intake

    cluster = Cluster()
    cluster.node("full", cpu=100, memory=1000, intake=Intake.CORDONED)
    cluster.submit("A", 100, on="full")
    cluster.submit("A", 32)
    cluster.submit("B", 32)
    assert cluster.round().ins == named("B", range(32))


def test_no_job_past_the_look_back_is_looked_at():
    """23. A look-back of three: a fourth would fit, and waits for that reason."""
    cluster = Cluster(max_queue_lookback=3)
    cluster.submit("A", 1)
    cluster.submit("A", 3, cpu=32)
    cluster.submit("A", 1)
    decided = cluster.round()
    assert decided.ins == named("A", 0)
    assert decided.refused["A3"] == decided.refused["A4"] == "past_lookback"


@pytest.mark.parametrize(("nodes", "ins"), [(3, {0, 1, 2}), (2, {1})])
def test_a_gang_stands_at_the_place_of_its_last_member(nodes, ins):
    """24. A small job between the members goes first: it may take the room of the gang."""
    cluster = Cluster(nodes)
    first, middle, last = cluster.submit("A", 3, cpu=32)
    shape = cluster.world.jobs[first].requirements
    from kit.jobs import requirements
    from pyresched.model import Gang

    for id in (first, last):
        cluster.world.jobs[id] = cluster.world.jobs[id].replace(gang=Gang("both", 2))
    small = requirements(1000, 4096, priority_class=shape.priority_class)
    cluster.world.jobs[middle] = cluster.world.jobs[middle].replace(requirements=small)
    assert cluster.round().ins == named("A", ins)


def test_the_lowest_job_priority_goes_first():
    """25. Priorities 10, 1 and 20 on one node: that of 1."""
    cluster = Cluster()
    for priority in (10, 1, 20):
        cluster.submit("A", 1, cpu=32, fields={"priority": priority})
    assert cluster.round().ins == named("A", 1)


def test_a_job_goes_only_where_its_affinity_lets_it():
    """26. Two of four nodes are excluded: two of three large jobs start."""
    from pyresched.model import Constraint, Operator

    cluster = Cluster(0)
    for i, zone in enumerate("aabc"):
        cluster.node(f"n{i}", labels={"zone": zone})
    other = Constraint("zone", Operator.NOT_IN, ("a",))
    cluster.submit("A", 3, cpu=32, affinity=((other,),))
    assert len(cluster.round().ins) == 2


@pytest.mark.parametrize(
    ("tokens", "running", "ins", "outs"),
    [
        (1, {"A": 32}, 1, 1),
        (1, {"A": 31}, 2, 1),
        (5, {"A": 32}, 5, 5),
        (5, {"A": 31}, 6, 5),
        (5, {"A": 25, "B": 5}, 7, 5),
        (None, {"A": 32}, 16, 16),
        (None, {"A": 22, "B": 10}, 6, 6),
    ],
)
def test_fair_share_takes_no_more_runs_than_there_are_tokens(tokens, running, ins, outs):
    """28. Without tokens left, what is new has only what is free."""
    from pyresched.config import PoolConfig

    pool = PoolConfig(
        name="default",
        preemption_rate=None if tokens is None else 0.001,
        preemption_burst=tokens,
    )
    cluster = Cluster(pools=(pool,))
    for name, count in running.items():
        cluster.submit(name, count, on="n0")
    cluster.submit("B", 32)
    decided = cluster.round()
    assert (len(decided.ins), len(decided.outs)) == (ins, outs)
    assert {id[0] for id in decided.ins} == {"B"}


def test_without_tokens_nobody_gives_way_to_a_fairer_share():
    """28. An empty bucket: a round without preemption, and what is free is given all the same."""
    from pyresched.config import PoolConfig

    pool = PoolConfig(name="default", preemption_rate=0.001, preemption_burst=1)
    cluster = Cluster(pools=(pool,))
    cluster.submit("A", 32, on="n0")
    cluster.submit("B", 1)
    assert cluster.round().outs == named("A", 31)
    cluster.submit("B", 32)
    assert cluster.rest()
    cluster.finish("A0")
    decided = cluster.round()
    assert (len(decided.ins), decided.outs) == (1, set())


@pytest.mark.parametrize(
    ("budget", "tried"), [("max_tries_per_round", 1), ("max_tries_per_queue", 2)]
)
def test_a_budget_counts_tries_and_spares_what_runs(budget, tried):
    """30. What runs costs no try. The reference measures time; a count gives the same again."""
    cluster = Cluster(4, **{budget: 1})
    for name in "AB":
        cluster.submit(name, 50, on="n0" if name == "A" else "n1")
        cluster.submit(name, 10)
    decided = cluster.round()
    assert (len(decided.ins), decided.outs) == (tried, set())
    code = "round_budget" if budget == "max_tries_per_round" else "queue_budget"
    assert set(decided.refused.values()) == {code}
