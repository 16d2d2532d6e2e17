"""Commands and steps: what is decided, committed and seen, and in which order."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from kit.driving import node, report, run_names, said, scheduler
from kit.jobs import job, jobs
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import (
    ConfigError,
    Conflict,
    DuplicateId,
    InputError,
    TooManyJobs,
    UnknownNode,
)
from pyresched.jobdb import JobDb
from pyresched.model import (
    NANOS,
    Changes,
    Ends,
    JobState,
    Node,
    PoolName,
    Queue,
    QueueName,
    ReasonCode,
    ReschedulePolicy,
    ResourceVector,
    RoundResult,
    RowKey,
    UnschedulableReason,
)
from pyresched.scheduler import Scheduler, cycle, sync
from pyresched.scheduling import Arguments, RoundState, load_round, save_round
from pyresched.scheduling.limits import limits_for, spent
from pyresched.store import MemoryJournal

POLICY = ReschedulePolicy(attempts=2, interval=3600 * NANOS, delay=5 * NANOS)
TWO_POOLS = SchedulingConfig(pools=(PoolConfig(name="default"), PoolConfig(name="other")))


class Interrupted(MemoryJournal):
    """Does something just before the next commit."""

    before: Callable[[], object] | None = None

    def commit(self, changes: Changes, *, expect: Mapping[RowKey, int]) -> int:
        """As the journal does, after `before`."""
        before, self.before = self.before, None
        if before is not None:
            before()
        return super().commit(changes, expect=expect)


def test_a_job_that_is_due_is_placed_in_the_same_step() -> None:
    """Due jobs go back before the round, not after it."""
    made = scheduler(node())
    made.submit([job("a", policy=POLICY)], 0)
    made.step(0)
    report(made, "a", kind="failed", now=1)
    assert made.step(1).next_wake == 1 + POLICY.delay
    assert not made.step(POLICY.delay).results
    made.step(1 + POLICY.delay)
    assert made.snapshot().get("a").state is JobState.LEASED
    assert said(made, "a")[-3:] == ["requeued", "leased", "rescheduled"]


def test_jobs_that_came_before_the_nodes_are_placed_once_there_are_some() -> None:
    """What fits none of them is refused then, in the step that would have placed it."""
    made = scheduler()
    made.submit([job("big", 5000, 1), job("small")], 0)
    assert made.step(0).results["default"].scheduled == ()
    made.join_nodes([node()], 1)
    made.step(1)
    assert made.snapshot().get("small").state is JobState.LEASED
    assert made.snapshot().get("big").reason == "exceeds_every_node"


def test_a_submit_is_checked_against_what_its_queue_may_hold() -> None:
    """By the row of the queue as it is; the same job of another queue is placed."""
    made = scheduler(node())
    limited = Queue(name="limited", max_fraction_by_class={"default": {"cpu": 0.5}})
    made.put_queues([limited], 0)
    made.submit([job("a", 3000, 1, queue="limited"), job("b", 3000, 1)], 1)
    assert made.snapshot().get("a").reason == "class_limit"
    assert made.snapshot().get("b").validated


def test_a_step_without_news_has_no_round() -> None:
    """After one that changed nothing; any news brings the next."""
    made = scheduler(node())
    made.submit(jobs(6), 0)
    assert len(made.step(0).results["default"].scheduled) == 4
    assert not made.step(1).results["default"].scheduled
    serial = made.sync.serial
    assert not made.step(2).results
    assert made.sync.serial == serial, "a step that does nothing commits nothing"
    report(made, "job-000000", kind="succeeded", now=3)
    assert len(made.step(3).results["default"].scheduled) == 1


def test_a_pool_sees_the_decisions_of_the_pools_before_it() -> None:
    """A job that may run in both is placed once, and all of a cycle is one commit."""
    made = scheduler(node("d"), node("o", pool="other"), config=TWO_POOLS)
    made.submit(jobs(5, pools=("default", "other")), 0)
    serial = made.sync.serial
    results = made.step(0).results
    assert [len(results[pool].scheduled) for pool in ("default", "other")] == [4, 1]
    assert made.sync.serial == serial + 1
    assert made.check() == []


def test_what_a_limit_on_a_round_kept_back_asks_for_another_round() -> None:
    """At once, though nothing comes from outside; none once the queue is through."""
    made = scheduler(node(), config=SchedulingConfig(max_queue_lookback=1))
    made.submit(jobs(2), 0)
    assert made.step(7).next_wake == 7
    assert made.step(7).next_wake is None
    assert all(each.state is JobState.LEASED for each in made.snapshot().leased())
    assert len(list(made.snapshot().leased())) == 2


def test_a_rate_brings_a_round_without_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it allows one job more, after a round that it kept from starting anything."""
    config = SchedulingConfig(rate=2.0, burst=1)
    used = spent("default", config, RoundState(), 10, {QueueName("q"): 1}, 0)
    refused = {"j": UnschedulableReason(ReasonCode.RATE_LIMIT, Ends.ROUND)}
    result = RoundResult(pool=PoolName("default"), refused=refused)
    monkeypatch.setattr(cycle, "run_round", lambda *_: (result, used))
    made = scheduler(node(), config=config)
    assert made.step(10).next_wake == 10 + NANOS // 2
    assert not made.step(9 + NANOS // 2).results
    assert made.step(10 + NANOS // 2).results


def test_pools_hand_what_is_left_of_the_rates_from_one_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Within a cycle and from the last pool to the first of the next one, if they share them."""
    seen: list[tuple[str, RoundState]] = []

    def used(*arguments: Any) -> tuple[RoundResult, RoundState]:
        """One job more of the rates, each time."""
        _, _, _, pool, config, state, now = arguments
        seen.append((pool, state))
        after = spent(pool, config, state, now, {QueueName("q"): 1}, 0)
        return RoundResult(pool=pool), after

    monkeypatch.setattr(cycle, "run_round", used)
    left = {}
    for scope in ("all_pools", "pool"):
        pools = (PoolConfig(name="default"), PoolConfig(name="other"))
        config = SchedulingConfig(pools=pools, rate=1.0, burst=9, rate_scope=scope)
        made = scheduler(node(), config=config)
        made.step(0)
        made.submit([job("a")], 0)
        made.step(0)
        left[scope] = [limits_of(pool, config, state) for pool, state in seen]
        seen.clear()
    assert left == {"all_pools": [9, 8, 7, 6], "pool": [9, 9, 8, 8]}


def limits_of(pool: str, config: SchedulingConfig, state: RoundState) -> int | None:
    """How many jobs a round over *pool* may start at 0."""
    return limits_for(pool, {}, config, state, 0, ResourceVector([1, 1])).tokens


def test_what_each_round_of_a_step_took_can_be_saved_and_run_again(tmp_path) -> None:
    """The second pool's on top of the decisions of the first; in a step without news, nothing."""
    made = scheduler(node("d"), node("o", pool="other"), config=TWO_POOLS)
    made.submit(jobs(5, pools=("default", "other")), 0)

    def keep(taken: Arguments) -> None:
        save_round(tmp_path / taken.pool, *taken)

    results = made.step(0, on_round=keep).results
    for pool in ("default", "other"):
        assert load_round(tmp_path / pool).run()[0] == results[pool]
    made.step(1)
    made.step(2, on_round=pytest.fail)


def test_the_round_that_is_due_is_saved_and_nothing_changes(tmp_path) -> None:
    """What the next step then decides."""
    made = scheduler(node())
    made.submit(jobs(6), 0)
    serial = made.sync.serial
    made.save_round(tmp_path / "due", "default", 0)
    assert made.sync.serial == serial
    result = load_round(tmp_path / "due").run()[0]
    assert len(result.scheduled) == 4
    assert made.step(0).results["default"] == result
    with pytest.raises(ConfigError, match="unknown pool"):
        made.save_round(tmp_path / "due", "nowhere", 0)


def test_the_next_wake_is_the_first_lease_end_or_delay() -> None:
    """None while nothing waits for time."""
    made = scheduler(node(), config=SchedulingConfig(lease_duration=50))
    assert made.step(0).next_wake is None
    made.submit([job("a", policy=POLICY), job("b", policy=POLICY)], 0)
    assert made.step(0).next_wake == 50
    report(made, "a", kind="running", now=20)
    assert made.step(20).next_wake == 50
    report(made, "b", kind="running", now=30)
    assert made.step(30).next_wake == 70
    report(made, "b", kind="succeeded", now=31)
    assert made.step(70).results["default"].scheduled, "the lost run of `a` is replaced at once"
    assert said(made, "a")[-3:] == ["lost", "requeued", "leased"]


def test_a_conflict_leaves_memory_as_it_was_and_the_next_command_sees_why() -> None:
    """Two schedulers over one journal: never do both decide on a row."""
    journal = Interrupted()
    ours = scheduler(node(), journal=journal)
    ours.submit([job("a")], 0)
    theirs = Scheduler(SchedulingConfig(), journal, ids=run_names("their"))
    journal.before = lambda: theirs.cancel(["a"], 1)
    before = list(ours.snapshot())
    with pytest.raises(Conflict, match="job 'a'"):
        ours.step(1)
    assert list(ours.snapshot()) == before
    assert not ours.step(2).results["default"].scheduled
    assert ours.snapshot().get("a").state is JobState.CANCELLED
    assert ours.check() == []


def test_a_follower_catches_up_over_many_commits() -> None:
    """With the first command after them; rows may have jumped over states in between."""
    leader = scheduler(node())
    follower = Scheduler(SchedulingConfig(), leader.journal, ids=run_names("follower"))
    leader.submit([job("a", policy=POLICY), job("b")], 0)
    leader.step(0)
    assert len(follower.snapshot()) == 0
    follower.report([], 0)
    assert follower.snapshot().get("a").state is JobState.LEASED
    report(leader, "a", kind="failed", now=1)
    leader.step(1 + POLICY.delay)
    report(leader, "a", kind="failed", now=2 + POLICY.delay)
    follower.report([], 3 + POLICY.delay)
    assert list(follower.snapshot()) == list(leader.snapshot())
    assert follower.check() == []


def test_what_memory_cannot_hold_is_refused_before_the_commit() -> None:
    """An id of 300 characters; nothing of the request is in the journal."""
    made = scheduler(node())
    before = made.journal.load()
    with pytest.raises(InputError, match="255"):
        made.submit([job("good"), job("x" * 300)], 0)
    with pytest.raises(InputError, match="no text that UTF-8 can hold"):
        made.submit([job("good"), job("\ud800")], 0)
    with pytest.raises(InputError, match="label"):
        made.join_nodes([node("good"), node("n", labels={"x": "y" * 300})], 0)
    with pytest.raises(InputError, match="the resources are cpu, memory"):
        made.join_nodes([Node(id="n", total=ResourceVector([1]))], 0)
    with pytest.raises(ConfigError, match="unknown pool 'elsewhere'"):
        made.join_nodes([node("n", pool="elsewhere")], 0)
    assert made.journal.load() == before
    assert made.check() == []


def test_jobs_beyond_what_memory_holds_are_refused_before_the_commit(monkeypatch) -> None:
    """All of a request, so that memory never has to refuse what was committed."""
    monkeypatch.setattr(sync, "JobDb", partial(JobDb, most_jobs=3))
    made = scheduler(node())
    made.submit(jobs(2), 0)
    with pytest.raises(TooManyJobs):
        made.submit(jobs(2, prefix="more"), 0)
    assert len(made.journal.load()[0].jobs) == 2
    made.submit([job("one-more")], 0)
    assert made.check() == []


def test_a_round_whose_commit_fails_leaves_no_state_behind(monkeypatch) -> None:
    """What rounds carry over is kept with what they decided, or not at all."""
    journal = Interrupted()
    made = scheduler(node(), journal=journal)
    made.submit([job("a")], 0)
    kept = []
    real = cycle.run_round

    class Counting(RoundState):
        rounds: int

    def counting(*arguments):
        result, _ = real(*arguments)
        kept.append(arguments[5])
        return result, Counting(rounds=len(kept))

    def fail() -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(cycle, "run_round", counting)
    journal.before = fail
    with pytest.raises(ConnectionError):
        made.step(1)
    made.step(2)
    assert kept == [RoundState(), RoundState()]
    made.cancel(["a"], 3)
    made.step(3)
    assert kept[2] == Counting(rounds=2)


def test_a_long_run_stays_small_where_ended_jobs_are_not_kept() -> None:
    """Rows, log and memory hold what lives."""
    journal = MemoryJournal(keep_ended=False)
    made = scheduler(node(), journal=journal)
    for n in range(200):
        new = [each.id for each in made.submit(jobs(4, prefix=f"round-{n}"), n).jobs]
        made.step(n)
        report(made, *new, kind="succeeded", now=n)
        journal.forget(journal.end())
    assert len(made.snapshot()) == 0
    assert (len(journal._jobs), len(journal._events), len(journal._ended)) == (0, 0, 0)
    assert set(journal._written) == {("node", "node-1"), ("queue", "queue-a")}
    assert made.check() == []


def test_queues_are_those_of_the_journal_then_those_of_the_configuration() -> None:
    """A queue that an operator configured is there without a row; one that was put wins."""
    config = SchedulingConfig(queues=(Queue(name="q", weight=2.0),), create_queues=False)
    made = scheduler(node(), config=config)
    assert made.queues["q"].weight == 2.0
    made.submit([job("a", queue="q")], 0)
    changes = made.put_queues([Queue(name="q", weight=3.0), Queue(name="r")], 1)
    assert [(queue.name, queue.version) for queue in changes.queues] == [("q", 1), ("r", 1)]
    assert made.queues["q"].weight == 3.0
    assert not made.put_queues([Queue(name="q", weight=3.0)], 2)
    changes = made.put_queues([Queue(name="q", weight=3.0, cordoned=True)], 3)
    assert changes.queues == (Queue(name="q", weight=3.0, cordoned=True, version=2),)
    with pytest.raises(InputError, match="cordoned"):
        made.submit([job("b", queue="q")], 3)
    assert said(made)[-2:] == ["queue_changed", "queue_changed"]


def test_a_queue_with_limits_on_what_is_not_configured_is_refused() -> None:
    """By the path of what it names, and none of the request is made."""
    made = scheduler()
    odd = Queue(name="q", max_fraction_by_class={"default": {"cpus": 0.5}})
    with pytest.raises(ConfigError, match=r"'q'.max_fraction_by_class.default.cpus: .*'cpu'\?"):
        made.put_queues([Queue(name="good"), odd], 0)
    assert not made.queues


def test_a_queue_with_two_settings_is_refused() -> None:
    """In one line, and none of the request is made."""
    made = scheduler()
    with pytest.raises(DuplicateId) as refused:
        made.put_queues([Queue(name="good"), Queue(name="q"), Queue(name="q", weight=2.0)], 0)
    assert "\n" not in str(refused.value)
    assert not made.queues


def test_commands_return_what_they_committed() -> None:
    """Nothing when nothing changed; a refused job tells why in its row."""
    made = scheduler(node())
    changes = made.submit([job("big", 9000, 1)], 0)
    assert changes.jobs[0].reason == "exceeds_every_node"
    assert made.snapshot().get("big") == changes.jobs[0]
    assert made.cordon_nodes(["node-1"], 1).nodes[0].version == 2
    assert not made.cordon_nodes(["node-1"], 1)
    made.submit([job("a")], 1)
    assert not made.step(1).results["default"].scheduled
    made.uncordon_nodes(["node-1"], 2)
    assert made.step(2).results["default"].scheduled
    with pytest.raises(UnknownNode):
        made.lose_nodes(["node-2"], 3)
