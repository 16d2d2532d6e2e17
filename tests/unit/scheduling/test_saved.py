"""Saved rounds as files: what is in them, what is refused, what is left behind."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kit.jobs import job, requirements
from kit.rounds import POOL, World, node
from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.errors import ConfigError, InputError, UnreadableRound
from pyresched.model import (
    Constraint,
    Operator,
    Queue,
    ReasonCode,
    ResourceVector,
    Taint,
    WellKnownNodeType,
)
from pyresched.scheduling import RoundState, load_round, run_round, save_round
from pyresched.scheduling.buckets import Bucket
from pyresched.scheduling.penalties import ShortRun
from pyresched.scheduling.state import RateState


def small_world() -> World:
    """A node that holds one of two jobs."""
    world = World(now=7).with_nodes(node("n1")).with_queues("a")
    return world.with_jobs(
        job("first", 3000, 1024, queue="a"), job("second", 3000, 1024, queue="a")
    )


def save(path: Path, world: World, **options: Any) -> None:
    """Save the round that *world* has now."""
    save_round(
        path,
        *(world.job_db().snapshot(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), world.now),
        **options,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small round that was saved."""
    path = tmp_path / "some.round"
    save(path, small_world())
    return path


def test_a_file_says_what_it_is_and_who_wrote_it(file):
    """In a line that any program can read; the rest is as long as it says."""
    line, _, body = file.read_bytes().partition(b"\n")
    header = json.loads(line)
    assert (header["pyresched"], header["version"]) == ("saved round", 1)
    assert header["size"] == len(body)
    assert load_round(file).saved_by == header["by"]


def test_what_was_given_is_what_is_read(file):
    """Pool, time, rows."""
    inputs = load_round(file).inputs
    world = small_world()
    assert (inputs.pool, inputs.now, inputs.config) == (POOL, 7, world.config)
    assert dict(inputs.queues) == world.queues
    assert inputs.nodes == tuple(world.nodes.values())
    assert inputs.jobs() == world.jobs


def test_a_large_round_is_packed(tmp_path):
    """A thousand alike jobs take a few bytes each."""
    world = small_world().with_jobs(job(f"job-{n:04}", queue="a") for n in range(1000))
    save(tmp_path / "large.round", world)
    assert (tmp_path / "large.round").stat().st_size < 20_000
    assert load_round(tmp_path / "large.round").run()[0] == world.round()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 0.999])
def test_a_file_that_is_cut_short_is_refused(file, share):
    """Wherever it ends."""
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(UnreadableRound, match=r"cut short|is no saved round"):
        load_round(file)


def test_a_file_with_something_behind_it_is_refused(tmp_path, file):
    """Two files in one, or an end of line that an editor added; packed or not."""
    world = small_world().with_jobs(job(f"job-{n:04}", queue="a") for n in range(300))
    save(tmp_path / "packed.round", world)
    for path in (file, tmp_path / "packed.round"):
        path.write_bytes(path.read_bytes() + b"\n")
        with pytest.raises(UnreadableRound, match=r"goes on after its \d+ bytes, by 1;"):
            load_round(path)


def test_a_file_with_a_byte_changed_is_refused(file):
    """Each byte after the header."""
    content = file.read_bytes()
    start = content.index(b"\n") + 1
    for at in range(start, len(content), 7):
        file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(UnreadableRound, match="checksum"):
            load_round(file)


def test_a_packed_file_with_a_byte_changed_is_refused(tmp_path):
    """What the packing itself notices, and what only the checksum does."""
    world = small_world().with_jobs(job(f"job-{n:04}", queue="a") for n in range(300))
    path = tmp_path / "packed.round"
    save(path, world)
    content = path.read_bytes()
    for at in range(content.index(b"\n") + 1, len(content) - 4, 97):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(UnreadableRound, match="checksum"):
            load_round(path)


def test_a_file_of_another_format_is_refused_with_who_wrote_it(file):
    """So that its reader knows which release to take."""
    content = file.read_bytes()
    file.write_bytes(content.replace(b'"version":1', b'"version":2', 1))
    with pytest.raises(UnreadableRound, match=r"format 2, written by pyresched .*reads format 1"):
        load_round(file)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"{}\n", b"[]\n", b'{"pyresched": 3}\n', b"PK\x03\x04", b"x" * 5000],
    ids=["empty", "line", "object", "list", "number", "zip", "long"],
)
def test_a_file_that_is_something_else_is_refused(tmp_path, content):
    """One line, with the name of the file."""
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(UnreadableRound, match=r"other: is no saved round") as refused:
        load_round(path)
    assert "\n" not in str(refused.value)


def test_what_is_no_file_is_refused(tmp_path):
    """Missing, a folder, a name that no file can have."""
    for path in (tmp_path / "missing", tmp_path, "a\0b"):
        with pytest.raises(UnreadableRound):
            load_round(path)


def test_a_file_of_values_that_no_round_takes_is_refused(file, monkeypatch):
    """Though its checksum holds: a kind of requirements that is not there."""
    saved = sys.modules["pyresched.scheduling.saved"]
    row = saved._JobRow.of
    monkeypatch.setattr(
        saved._JobRow, "of", lambda job, index: structs.replace(row(job, index), kind=9)
    )
    save(file, small_world())
    with pytest.raises(UnreadableRound, match="holds what no round takes"):
        load_round(file)


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    """And nothing is left behind."""
    for path in (tmp_path, tmp_path / "missing" / "some.round", "a\0b"):
        with pytest.raises(InputError):
            save(path, small_world())
    assert list(tmp_path.iterdir()) == []


def test_what_no_round_takes_is_not_saved(tmp_path):
    """An unknown pool; nothing is written."""
    world = small_world()
    with pytest.raises(ConfigError, match="unknown pool 'nowhere'"):
        save_round(
            tmp_path / "some.round",
            *(world.reader(), world.node_db(), world.queues, "nowhere"),
            *(world.config, RoundState(), 0),
        )
    assert list(tmp_path.iterdir()) == []


def test_a_queue_with_a_weight_that_is_none_is_saved_as_it_is(tmp_path):
    """So that a round that refuses it can be looked into."""
    for weight in (0.0, -1.0, float("nan"), float("inf")):
        world = small_world()
        structs.force_setattr(world.queues["a"], "weight", weight)
        for anonymous in (False, True):
            save(tmp_path / "some.round", world, anonymous=anonymous)
            result, _ = load_round(tmp_path / "some.round").run()
            codes = {reason.code for reason in result.refused.values()}
            assert codes == {ReasonCode.INVALID_WEIGHT}


def test_requests_that_come_to_equal_each_other_keep_their_scopes_apart(tmp_path):
    """Jobs that ask alike share hosts by turns; under pseudonyms others may ask alike too."""
    world = World().with_nodes(node("n1", labels={"size": "5"})).with_queues("a")
    alone = Constraint("", Operator.DISTINCT_HOSTS)
    for n in (1, 2):
        above = Constraint("size", Operator.GT, (str(n),))
        asked = requirements(constraints=(above, alone))
        world.with_jobs(job(f"job-{n}", queue="a", requirements=asked))
    assert len(world.round().scheduled) == 2
    save(tmp_path / "some.round", world, anonymous=True)
    assert len(load_round(tmp_path / "some.round").run()[0].scheduled) == 2


def test_names_of_settings_and_amounts_stay(tmp_path):
    """Resources, classes and pools are no secrets, and a reader needs them."""
    world = small_world()
    save(tmp_path / "some.round", world, anonymous=True)
    inputs = load_round(tmp_path / "some.round").inputs
    assert inputs.config == world.config
    assert {job.id for job in inputs.jobs().values()} == {"job-1", "job-2"}
    assert [job.requirements for job in inputs.jobs().values()] == [
        job.requirements for job in world.jobs.values()
    ]


def test_names_in_settings_and_in_the_state_are_kept_or_replaced(tmp_path):
    """Queues by name, taints of node types, short runs; any value stays any."""
    config = SchedulingConfig(
        node_types=(WellKnownNodeType(name="gpus", taints=(Taint("gpu", "*"), Taint("b", "x"))),),
        pools=(PoolConfig(name="default", queue_weights={"a": 3.0, "b": 4.0}),),
        queues=(Queue(name="a"),),
        queue_rate=1.0,
        queue_burst=2,
    )
    world = small_world().with_queues("b")
    run = ShortRun("gone", POOL, "b", ResourceVector((1, 2)), 99)
    bucket = Bucket(nanos=-5, part=3, at=1)
    state = RoundState(rates=RateState(all=bucket, queues={"b": bucket}), penalties=(run,))
    args = (world.job_db().snapshot(), world.node_db(), world.queues, POOL, config, state, 7)
    save_round(tmp_path / "some.round", *args)
    inputs = load_round(tmp_path / "some.round").inputs
    assert (inputs.config, inputs.state) == (config, state)
    save_round(tmp_path / "some.round", *args, anonymous=True)
    inputs = load_round(tmp_path / "some.round").inputs
    assert inputs.config.pools[0].queue_weights == {"queue-1": 3.0, "queue-2": 4.0}
    assert inputs.config.queues[0].name == "queue-1"
    assert inputs.config.node_types[0].taints == (
        Taint("label-2", "*"),
        Taint("label-1", "value-2"),
    )
    assert inputs.state.rates == RateState(all=bucket, queues={"queue-2": bucket})
    assert inputs.state.penalties == (structs.replace(run, job_id="job-2", queue="queue-2"),)


def test_a_saved_round_can_be_run_often(file):
    """Each time on nodes of its own."""
    saved = load_round(file)
    assert saved.run() == saved.run() == run_round(*saved.inputs.arguments())
