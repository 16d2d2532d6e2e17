"""Merging of reschedule blocks: job, group, default; and where each value comes from."""

import itertools
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kit.reschedule_vectors import facts, policy_of
from pyresched.model import (
    NANOS,
    Block,
    DisconnectBlock,
    DisconnectRule,
    MigrateBlock,
    MigrateRule,
    RescheduleBlock,
    ReschedulePolicy,
    RestartBlock,
    UpdateBlock,
    UpdateRule,
)
from pyresched.reschedule import RestartPolicy
from pyresched.spec import Origin, merge_reschedule
from pyresched.spec.defaults import (
    merge_disconnect,
    merge_migrate,
    merge_restart,
    merge_update,
)

FIELDS = RescheduleBlock.__struct_fields__

# Rows of the merge facts on which rule `unlimited-alone` gives another policy: none of them
# writes `unlimited = true` beside an inherited attempt.
UNLIMITED_ALONE: list[str] = []


def block_of(row: dict[str, object] | None) -> RescheduleBlock | None:
    """A block as a row gives it: null is not written."""
    if row is None:
        return None
    written = {name.removesuffix("_ns"): value for name, value in row.items() if value is not None}
    return RescheduleBlock(**written)


def test_facts_on_merging_agree_or_carry_the_rule() -> None:
    """Every row, and the exact list of those that differ."""
    seen = facts("merge")
    assert len(seen) == 20
    differing = []
    for row in seen:
        job, group = block_of(row["job_level"]), block_of(row["group_level"])
        policy, _ = merge_reschedule(job, group, row["job_type"])
        if policy != policy_of(row["expected"]):
            differing.append(row["id"])
    assert differing == UNLIMITED_ALONE


def test_unlimited_alone_drops_the_attempts_that_a_batch_group_inherits() -> None:
    """Rule `unlimited-alone`: default attempts and interval are not in the way of it."""
    for job, group in itertools.permutations((RescheduleBlock(unlimited=True), None)):
        policy, origins = merge_reschedule(job, group, "batch")
        assert policy == ReschedulePolicy(delay=5 * NANOS, unlimited=True)
        assert origins["attempts"] is origins["interval"] is Origin.UNUSED
        assert origins["delay"] is Origin.DEFAULT
    # What is written beside it, in whichever block, stays: an error for validation to tell.
    both = merge_reschedule(RescheduleBlock(attempts=3), RescheduleBlock(unlimited=True), "batch")
    assert (both[0].attempts, both[0].unlimited) == (3, True)
    assert (both[1]["attempts"], both[1]["unlimited"]) == (Origin.JOB, Origin.GROUP)
    # A written interval stays, an inherited one goes.
    kept, _ = merge_reschedule(None, RescheduleBlock(unlimited=True, interval=9), "batch")
    assert (kept.attempts, kept.interval) == (0, 9)
    # And nothing changes where unlimited is written as false, or only inherited.
    off, _ = merge_reschedule(None, RescheduleBlock(unlimited=False), "batch")
    assert off == ReschedulePolicy.default("batch")
    inherited, _ = merge_reschedule(None, RescheduleBlock(attempts=3), "service")
    assert (inherited.attempts, inherited.unlimited) == (3, True)


def test_a_given_default_stands_in_for_that_of_the_type() -> None:
    """The configuration may set other defaults, or none."""
    default = ReschedulePolicy(attempts=7, interval=70, delay=7)
    policy, origins = merge_reschedule(None, RescheduleBlock(delay=8), "batch", default=default)
    assert (policy.attempts, policy.interval, policy.delay) == (7, 70, 8)
    assert origins["attempts"] is Origin.DEFAULT
    assert merge_reschedule(None, None, "batch", default=None) == (None, {})
    filled, _ = merge_reschedule(None, RescheduleBlock(delay=8), "batch", default=None)
    assert filled == ReschedulePolicy(delay=8, delay_function="")


BLOCKS = st.none() | st.builds(
    lambda **fields: RescheduleBlock(**{k: v for k, v in fields.items() if v is not None}),
    attempts=st.none() | st.integers(0, 9),
    interval=st.none() | st.integers(0, 99),
    delay=st.none() | st.integers(0, 99),
    delay_function=st.none() | st.sampled_from(["", "constant", "fibonacci"]),
    max_delay=st.none() | st.integers(0, 99),
    unlimited=st.none() | st.booleans(),
)


@given(BLOCKS, BLOCKS, st.sampled_from(["service", "batch"]))
def test_the_last_writer_of_a_field_wins_and_is_named(job, group, job_type) -> None:
    """Group over job over default, field by field; origins in the order of the fields."""
    policy, origins = merge_reschedule(job, group, job_type)
    assert tuple(origins) == FIELDS
    for name in FIELDS:
        writers = [(Origin.GROUP, group), (Origin.JOB, job)]
        written = [
            (o, b.written()[name]) for o, b in writers if b is not None and name in b.written()
        ]
        if written:
            assert (origins[name], getattr(policy, name)) == written[0]
        else:
            unused = policy.unlimited and origins["unlimited"] is not Origin.DEFAULT
            unused = unused and name in ("attempts", "interval")
            assert origins[name] is (Origin.UNUSED if unused else Origin.DEFAULT)
            if not unused:
                assert getattr(policy, name) == getattr(ReschedulePolicy.default(job_type), name)
            else:
                assert getattr(policy, name) == 0


def test_a_type_that_nobody_knows_fills_nothing_in() -> None:
    """What is written stands over zeros; validation names the type."""
    policy, origins = merge_reschedule(None, RescheduleBlock(attempts=2), "cron")
    assert policy == ReschedulePolicy(attempts=2, delay_function="")
    assert origins["delay"] is Origin.DEFAULT


SECONDS = st.none() | st.integers(0, 99)


def blocks(kind: type[Block], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Blocks of any written fields, or none."""
    return st.none() | st.builds(
        lambda **given: kind(**{name: value for name, value in given.items() if value is not None}),
        **fields,
    )


MIGRATE = blocks(MigrateBlock, max_parallel=SECONDS, min_healthy_time=SECONDS)
UPDATE = blocks(UpdateBlock, progress_deadline=SECONDS, min_healthy_time=SECONDS, canary=SECONDS)
RESTART = blocks(
    RestartBlock,
    attempts=SECONDS,
    interval=SECONDS,
    delay=SECONDS,
    mode=st.none() | st.sampled_from(["fail", "delay"]),
)
DISCONNECT = blocks(
    DisconnectBlock,
    lost_after=SECONDS,
    stop_on_client_after=SECONDS,
    replace=st.none() | st.booleans(),
    reconcile=st.none() | st.sampled_from(["keep_original", "best_score"]),
)


def agrees(
    made: Struct,
    origins: Mapping[str, Origin],
    default: Struct,
    job: Block | None,
    group: Block | None,
) -> None:
    """Group over job over default, field by field; origins in the order of the fields."""
    assert tuple(origins) == made.__struct_fields__
    for name in origins:
        for origin, block in ((Origin.GROUP, group), (Origin.JOB, job)):
            if block is not None and name in block.written():
                assert (origins[name], getattr(made, name)) == (origin, block.written()[name])
                break
        else:
            assert (origins[name], getattr(made, name)) == (Origin.DEFAULT, getattr(default, name))


@given(MIGRATE, MIGRATE, UPDATE, UPDATE)
def test_blocks_of_job_and_group_are_merged_as_reschedule_is(
    job: MigrateBlock | None,
    group: MigrateBlock | None,
    job_update: UpdateBlock | None,
    group_update: UpdateBlock | None,
) -> None:
    """A service has a migrate rule in any case, a deployment only where it is written."""
    rule, origins = merge_migrate(job, group, "service")
    assert rule is not None
    agrees(rule, origins, MigrateRule(), job, group)
    if job is None and group is None:
        assert merge_migrate(job, group, "batch") == (None, {})
    else:
        assert merge_migrate(job, group, "batch") == (rule, origins)
    update, origins = merge_update(job_update, group_update)
    assert (update is None) is (job_update is None and group_update is None)
    if update is not None:
        agrees(update, origins, UpdateRule(), job_update, group_update)


@given(RESTART, DISCONNECT, st.sampled_from(["service", "batch"]))
def test_blocks_of_a_group_alone_stand_over_their_default(
    restart: RestartBlock | None, disconnect: DisconnectBlock | None, job_type: str
) -> None:
    """Restarts have one by type; without a block nothing out of reach is tolerated."""
    default = RestartPolicy.default(job_type)
    policy, origins = merge_restart(restart, default)
    agrees(policy, origins, default, None, restart)
    rule, origins = merge_disconnect(disconnect)
    assert (rule is None) is (disconnect is None)
    if rule is not None:
        agrees(rule, origins, DisconnectRule(), None, disconnect)
