"""Requests are admitted whole or not at all, and checked when they can be."""

from collections.abc import Mapping, Sequence

import pytest

from kit.jobs import gang, job, jobs, leased
from kit.readers import DictReader
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import DuplicateId, InputError
from pyresched.model import (
    NANOS,
    Changes,
    EventKind,
    Gang,
    GroupRules,
    Job,
    JobId,
    JobState,
    MigrateRule,
    Queue,
    ReasonCode,
    ReschedulePolicy,
    UnschedulableReason,
)
from pyresched.reschedule import Dialect
from pyresched.submit import admit, validate

TOO_LARGE = UnschedulableReason(ReasonCode.EXCEEDS_EVERY_NODE)


class AtMostFour:
    """A check that refuses what asks for more than four cores, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[JobId]] = []

    def __call__(self, jobs: Sequence[Job]) -> Mapping[JobId, UnschedulableReason]:
        self.asked.append([each.id for each in jobs])
        return {each.id: TOO_LARGE for each in jobs if each.requirements.resources[0] > 4000}


def admitted(
    *new: Job,
    reader: DictReader | None = None,
    queues: Sequence[Queue] = (),
    pools: Sequence[str] = ("default",),
    reached: Sequence[str] | None = None,
    check: AtMostFour | None = None,
    config: SchedulingConfig | None = None,
) -> Changes:
    """What a submit of *new* at 9 leads to."""
    return admit(
        new,
        reader or DictReader(),
        queues={queue.name: queue for queue in queues},
        pools=set(pools),
        reached=None if reached is None else set(reached),
        check=check or AtMostFour(),
        config=config or SchedulingConfig(),
        now=9,
    )


def kinds(changes: Changes) -> list[EventKind]:
    """What is said to have happened, in order."""
    return [event.kind for event in changes.events]


def test_a_job_that_fits_is_admitted_validated_at_version_one() -> None:
    """Whatever flag and version it comes with."""
    for given in (job("a", validated=False), job("a", validated=True, version=7), job("a")):
        changes = admitted(given)
        assert changes.jobs == (job("a", validated=True, version=1),)
    assert changes.expected()["job", "a"] == 0
    assert kinds(changes) == [EventKind.QUEUE_CHANGED, EventKind.SUBMITTED]


def test_a_job_that_no_node_could_hold_ends_at_once_with_its_reason() -> None:
    """It is in the journal, failed, so that its user can read why; the others are admitted."""
    changes = admitted(job("big", 5000, 1), job("small"))
    big, small = changes.jobs
    assert (big.state, big.ended_at, big.reason) == (JobState.FAILED, 9, "exceeds_every_node")
    assert (big.version, small.validated) == (1, True)
    assert kinds(changes)[1:] == [EventKind.SUBMITTED, EventKind.REFUSED, EventKind.SUBMITTED]


def test_without_known_nodes_nothing_is_checked_or_refused() -> None:
    """A cluster that starts up refuses nobody, and believes no flag of a user."""
    check = AtMostFour()
    changes = admitted(job("big", 5000, 1), pools=(), check=check)
    assert [(row.state, row.validated) for row in changes.jobs] == [(JobState.QUEUED, False)]
    assert check.asked == []


def test_a_job_is_not_refused_while_a_pool_of_its_own_is_still_to_come() -> None:
    """It may fit there; where it fits already, it need not wait."""
    config = SchedulingConfig(pools=tuple(PoolConfig(name=name) for name in "ab"))
    big, small = job("big", 5000, 1, pools=("a", "b")), job("small", pools=("a", "b"))
    changes = admitted(big, small, pools=("a",), config=config)
    assert [(row.state, row.validated) for row in changes.jobs] == [
        (JobState.QUEUED, False),
        (JobState.QUEUED, True),
    ]
    whole = admitted(big, small, pools=("a", "b"), config=config)
    assert [row.state for row in whole.jobs] == [JobState.FAILED, JobState.QUEUED]


def test_a_pool_whose_jobs_may_be_guests_is_one_to_check_against() -> None:
    """What fits there passes; what does not waits for the pool's own nodes, which may hold it."""
    two_pools = SchedulingConfig(
        pools=(PoolConfig(name="default", away_pools=("big",)), PoolConfig(name="big"))
    )
    new = (job("small"), job("large", 5000, 1))
    changes = admitted(*new, config=two_pools, pools=["big"], reached=["big", "default"])
    assert [each.validated for each in changes.jobs] == [True, False]
    reader = DictReader(changes.jobs)
    later = validate(
        reader, pools={"big", "default"}, reached={"big", "default"}, check=AtMostFour(), now=10
    )
    assert [(each.id, each.state) for each in later.jobs] == [("large", JobState.FAILED)]


def test_an_id_is_one_job() -> None:
    """A second job under it is refused, whether it comes along or later; nothing is admitted."""
    new = [job("a"), job("b")]
    with pytest.raises(DuplicateId, match="job 'a' is twice in one request"):
        admitted(*new, job("a"))
    with pytest.raises(DuplicateId, match="job 'a' is there already"):
        admitted(*new, reader=DictReader([leased(job("a"))]))


def test_many_duplicates_are_named_in_one_line() -> None:
    """The first few, and how many more."""
    with pytest.raises(DuplicateId) as refused:
        admitted(*jobs(9), *jobs(9))
    assert "\n" not in str(refused.value)
    assert "'job-000004' and 4 more are twice" in str(refused.value)


def test_an_unknown_queue_is_made_once_or_refused() -> None:
    """As the configuration says; the nearest name is offered."""
    changes = admitted(job("a", queue="new"), job("b", queue="new"))
    assert changes.queues == (Queue(name="new", weight=1.0),)
    with pytest.raises(InputError, match=r"job 'a': queue: unknown queue 'queue-a'.*'queue-b'"):
        admitted(
            job("a"), queues=[Queue(name="queue-b")], config=SchedulingConfig(create_queues=False)
        )


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (job("a", queue="closed"), "job 'a': queue: 'closed' is cordoned"),
        (leased(job("a")), "job 'a': is not new"),
        (job("a", priority_class="urgent"), "job 'a': priority_class: unknown priority class"),
        (job("a", pools=("elsewhere",)), "job 'a': pools: unknown pool 'elsewhere'"),
        (job("a", pools=()), "job 'a': pools: none is left"),
        (job("a", job_type="cron"), "job 'a': job_type: unknown job type 'cron'"),
        (job("a", 1, 2, 3), "job 'a': resources: 3 amounts; give 2: cpu, memory"),
        (job("a", 1000, -1), "job 'a': resources: an amount is negative"),
        (
            job("a", policy=ReschedulePolicy(unlimited=True, delay_function="linear")),
            "job 'a': policy: delay_function 'linear' is unknown",
        ),
        (
            job("a", policy=ReschedulePolicy(attempts=10**30, interval="1h", delay="30s")),
            "job 'a': policy: attempts is 1000000000000000000000000000000; write a whole number, at",
        ),
        (
            job("a", rules=GroupRules(migrate=MigrateRule(max_parallel=0))),
            "job 'a': rules.migrate.max_parallel: 0 lets no run leave; write 1 or more",
        ),
        (
            job("a", policy=ReschedulePolicy(attempts=9, interval=8 * NANOS, delay=NANOS)),
            "job 'a': policy: interval is 8s; write at least 15s",
        ),
        (
            job("a", policy=ReschedulePolicy(unlimited=True, delay=1.5)),
            "job 'a': policy: delay is 1.5; write whole ns, as of parse_duration()",
        ),
        (job("a", policy=3), "job 'a': policy: 3 is no ReschedulePolicy; give one, or None"),
    ],
)
def test_a_job_that_cannot_be_used_is_refused_by_name_and_field(new: Job, says: str) -> None:
    """One line; the good jobs of the request are not admitted either."""
    with pytest.raises(InputError) as refused:
        admitted(job("good"), new, queues=[Queue(name="closed", cordoned=True)])
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_policy_may_be_as_quick_as_its_author_likes() -> None:
    """A program with processes of its own need not wait a second; nobody goes back in time."""
    quick = ReschedulePolicy(attempts=2, interval=3600 * NANOS, delay=NANOS // 100)
    assert admitted(job("a", policy=quick)).jobs[0].policy == quick
    with pytest.raises(InputError, match="policy: delay is -1s; write at least 0s"):
        admitted(job("a", policy=ReschedulePolicy(unlimited=True, delay=-NANOS)))


def test_every_fault_is_counted() -> None:
    """The first in full, the others by where they are."""
    with pytest.raises(InputError, match=r"job 'a': pools.*and 1 more: job 'b': job_type"):
        admitted(job("a", pools=()), job("b", job_type="cron"))


def test_a_whole_gang_is_checked_and_refused_as_one() -> None:
    """One member that fits nowhere takes the others with it."""
    small, big = gang("g")
    big = big.replace(requirements=job("x", 5000, 1).requirements, version=1)
    changes = admitted(small, big, *gang("h"))
    assert [row.state for row in changes.jobs] == [JobState.FAILED] * 2 + [JobState.QUEUED] * 2
    assert [row.validated for row in changes.jobs[2:]] == [True, True]


def test_a_gang_that_comes_in_parts_is_checked_when_it_is_whole() -> None:
    """Until then its members wait, unvalidated."""
    first, second, third = gang("g", size=3)
    check = AtMostFour()
    changes = admitted(first, second, check=check)
    assert [row.validated for row in changes.jobs] == [False, False]
    reader = DictReader().with_changes(changes)
    changes = admitted(third, reader=reader, check=check)
    assert [row.validated for row in changes.jobs] == [False]
    assert check.asked == []
    reader = reader.with_changes(changes)
    changes = validate(reader, pools={"default"}, check=check, now=9)
    assert [(row.id, row.validated) for row in changes.jobs] == [
        ("g.0", True),
        ("g.1", True),
        ("g.2", True),
    ]
    assert check.asked == [["g.0", "g.1", "g.2"]]


@pytest.mark.parametrize(
    "change",
    [
        {"gang": Gang("g", 3)},
        {"gang": Gang("g", 2, "rack")},
        {"requirements": job("x", priority_class="best-effort").requirements},
        {"job_type": "service"},
        {"policy": ReschedulePolicy(attempts=9, interval=2**50)},
    ],
)
def test_members_of_a_gang_must_agree(change) -> None:
    """With each other and with those that came before."""
    first, second = gang("g")
    other = second.replace(version=1, **change)
    with pytest.raises(InputError, match=r"gang 'g' of queue 'queue-a': job 'g.1' differs"):
        admitted(first, other)
    with pytest.raises(InputError, match=r"differs from job 'g.0'"):
        admitted(other, reader=DictReader([first]))


def test_a_gang_has_no_more_members_than_it_says() -> None:
    """Counted with those that came before and have not ended."""
    first, second = gang("g")
    third = job("g.2", gang=Gang("g", 2))
    with pytest.raises(InputError, match="3 members; its cardinality is 2"):
        admitted(first, second, third)
    with pytest.raises(InputError, match="3 members"):
        admitted(third, reader=DictReader([first, second]))
    over = [each.replace(state=JobState.CANCELLED, ended_at=1) for each in (first, second)]
    assert admitted(third, reader=DictReader(over)).jobs


def test_jobs_are_validated_or_refused_once_their_nodes_are_known() -> None:
    """Each once; the second time nothing is left to check."""
    reader = DictReader([job("big", 5000, 1, validated=False), job("small", validated=False)])
    check = AtMostFour()
    assert not validate(reader, pools=set(), check=check, now=9)
    changes = validate(reader, pools={"default"}, check=check, now=9)
    states = {row.id: (row.state, row.validated, row.reason) for row in changes.jobs}
    assert states == {
        "big": (JobState.FAILED, False, "exceeds_every_node"),
        "small": (JobState.QUEUED, True, ""),
    }
    assert kinds(changes) == [EventKind.REFUSED]
    assert not validate(reader.with_changes(changes), pools={"default"}, check=check, now=9)


def test_how_strict_a_submit_is_with_policies_is_configured() -> None:
    """No least delay and Nomad's check unless the configuration says otherwise."""
    hasty = job("a", policy=ReschedulePolicy(attempts=2, interval="1m", delay="2s"))
    endless = job(
        "a",
        policy=ReschedulePolicy(
            attempts=15,
            interval="26m30s",
            delay="30s",
            delay_function="exponential",
            max_delay="2m",
        ),
    )
    for one, strict, sentence in (
        (hasty, SchedulingConfig(reschedule_min_delay=5 * NANOS), "write at least 5s"),
        (endless, SchedulingConfig(reschedule_dialect=Dialect.EXACT), "may never stop"),
    ):
        assert admitted(one).jobs[0].state is JobState.QUEUED
        with pytest.raises(InputError, match=sentence):
            admitted(one, config=strict)
