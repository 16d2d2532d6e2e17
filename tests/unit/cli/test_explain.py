"""`pyresched explain`: what is printed, exit codes."""

import json
from pathlib import Path

import pytest

from kit.commands import Run
from kit.jobs import backing_off, gang, job, leased, requirements
from kit.rounds import POOL, World, node
from pyresched.model import NANOS
from pyresched.scheduling import RoundState, save_round


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A round in which `x[1]` lacks half a core."""
    world = World().with_nodes(node("n1"), node("n2", labels={"zone": "b"})).with_queues("a")
    world.running(job("old", 3000, 1024, queue="a"), "n1")
    world.with_jobs(job("first", 1000, 1024, queue="a"))
    asked = requirements(4500, 1024)
    world.with_jobs(job("x[1]", queue="a", submitted_at=5, requirements=asked))
    path = tmp_path / "some.round"
    save_round(
        path,
        *(world.job_db().snapshot(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), 0),
    )
    return path


def test_it_says_why_a_job_waits_and_what_would_start_it(run: Run, file: Path) -> None:
    """Place, reason, nearest node, changes; brackets in names are shown."""
    code, out, err = run("explain", file, "x[1]")
    assert (code, err) == (0, "")
    for shown in ("x[1]: refused", "1 job before it", "4.5", "n2", "cpu more on node"):
        assert shown in out


def test_it_says_where_a_job_is_that_does_not_wait(run: Run, file: Path) -> None:
    """Nothing about changes."""
    code, out, _ = run("explain", file, "old")
    assert code == 0
    assert "running" in out
    assert "starts with" not in out


def test_json_has_all_of_it(run: Run, file: Path) -> None:
    """For programs; as many rounds as are allowed."""
    code, out, _ = run("explain", file, "x[1]", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["reason"]["code"] == "exceeds_every_node"
    assert [change["kind"] for change in told["changes"]] == ["ask_less", "more_room"]
    code, out, _ = run("explain", file, "x[1]", "--json", "--rounds", 0)
    assert json.loads(out)["changes"] == []
    _, out, _ = run("explain", file, "x[1]", "--rounds", 0)
    assert "no change was tried" in out
    assert "not tried; --rounds" in out


def test_a_member_that_backs_off_is_told_how_long_yet(run: Run, tmp_path: Path) -> None:
    """The rest of its gang is queued, so it is in the round."""
    failed, waits = gang("g", 1000, 1024, size=2, queue="a")
    world = World().with_nodes(node("n1")).with_queues("a")
    world.with_jobs(backing_off(leased(failed), eligible_at=30 * NANOS), waits)
    path = tmp_path / "some.round"
    save_round(
        path,
        *(world.job_db().snapshot(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), 0),
    )
    _, out, _ = run("explain", path, failed.id)
    for shown in ("backing off", "queued again", "in 30s"):
        assert shown in out


def test_what_cannot_be_asked_is_refused_in_one_line(run: Run, file: Path) -> None:
    """A job that is not there, a file that is none; exit code 2."""
    for arguments in ((file, "x"), (file.parent / "gone", "x"), (file.parent, "x")):
        code, out, err = run("explain", *arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
