"""`pyresched replay`, and `simulate --save-round`: what is printed, exit codes, files."""

import hashlib
import json
from pathlib import Path

import pytest

from kit.commands import Run
from kit.jobs import job
from kit.rounds import POOL, World, node
from kit.simulations import log_text
from pyresched.scheduling import RoundState, load_round, save_round


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A round in which one job gives way, one is placed and one refused."""
    world = World().with_nodes(node("n1")).with_queues("a", "b")
    world.running(job("old[1]", 3000, 1024, queue="a", priority_class="spot"), "n1")
    world.running(job("older", 1000, 1024, queue="a", priority_class="spot"), "n1")
    world.with_jobs(
        job("new", 2000, 1024, queue="b"), job("large", 9000, 1024, queue="b", submitted_at=1)
    )
    path = tmp_path / "some.round"
    save_round(
        path,
        *(world.job_db().snapshot(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), 0),
    )
    return path


def test_a_replay_shows_who_gave_way_to_whom_and_who_waits_why(run: Run, file: Path) -> None:
    """Names are shown as they are, brackets too."""
    code, out, err = run("replay", file)
    assert (code, err) == (0, "")
    for shown in ("new", "old[1]", "fair_share", "exceeds_every_node", "large: ", "shares"):
        assert shown in out
    assert "cpu: wanted 9," in out  # cores, as explain has them, not thousandths


def test_the_whole_result_is_printed_and_kept_as_json(run: Run, file: Path) -> None:
    """The same bytes in both, and those whose digest was saved."""
    kept = file.with_name("result.json")
    code, out, _ = run("replay", file, "--json", "--save-result", kept)
    assert code == 0
    assert kept.read_bytes() == out.encode()
    assert json.loads(out)["refused_by_code"] == {"exceeds_every_node": 1}
    saved = load_round(file)
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == saved.digest
    assert run("replay", file, "--save-result", kept)[0] == 2
    assert run("replay", file, "--save-result", kept, "--force")[0] == 0


def test_a_check_passes_for_the_same_decisions_only(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 and one line for other ones."""
    code, _, err = run("replay", file, "--check")
    assert code == 0
    assert "decides what it did" in err
    monkeypatch.setattr("pyresched.cli.replay.result_bytes", lambda _: b"{}\n")
    code, _, err = run("replay", file, "--check")
    assert code == 1
    assert "decides otherwise" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [None, b"", b"some text\n"])
def test_what_is_no_saved_round_is_refused_in_one_line(
    run: Run, file: Path, content: bytes | None
) -> None:
    """Exit code 2."""
    cut = file.read_bytes()[:-9] if content is None else content
    file.write_bytes(cut)
    code, out, err = run("replay", file)
    assert (code, out) == (2, "")
    assert err.startswith(f"pyresched: {file}: is ")
    assert err.count("\n") == 1


def test_a_table_shows_its_first_rows_unless_all_are_asked_for(run: Run, tmp_path: Path) -> None:
    """And says how many are left."""
    world = World().with_nodes(node("n1", 90_000, 90_000)).with_queues("a")
    world.with_jobs(job(f"job-{n:02}", queue="a") for n in range(30))
    save_round(
        tmp_path / "some.round",
        *(world.job_db().snapshot(), world.node_db(), world.queues),
        *(POOL, world.config, RoundState(), 0),
    )
    _, out, _ = run("replay", tmp_path / "some.round")
    assert "job-19" in out
    assert "job-20" not in out
    assert "and 10 more" in out
    _, out, _ = run("replay", tmp_path / "some.round", "--all")
    assert "job-29" in out


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three jobs, one after the other on one core."""
    path = tmp_path / "log.swf"
    path.write_text(log_text({}, {2: 30}, {2: 60}))
    return path


def test_a_simulation_saves_the_round_that_it_is_asked_for(run: Run, log: Path) -> None:
    """As it was before it ran."""
    file = log.with_name("second.round")
    code, _, err = run("simulate", log, "--nodes", "1x1", "--save-round", 2, file)
    assert (code, err) == (0, "")
    code, out, _ = run("replay", file, "--check")
    assert code == 0
    assert "scheduled" in out
    assert run("simulate", log, "--nodes", "1x1", "--save-round", 2, file)[0] == 2
    assert run("simulate", log, "--nodes", "1x1", "--save-round", 2, file, "--force")[0] == 0


def test_a_round_that_there_was_not_is_named(run: Run, log: Path) -> None:
    """Exit code 2, with how many there were; a number below 1 before anything runs."""
    file = log.with_name("some.round")
    code, out, err = run("simulate", log, "--nodes", "1x1", "--save-round", 999, file)
    assert code == 2
    assert "jobs" in out
    assert "rounds; write" in err
    assert not file.exists()
    code, out, err = run("simulate", log, "--nodes", "1x1", "--save-round", 0, file)
    assert (code, out) == (2, "")
    assert "the first is 1" in err
