"""The main job end to end, as a user runs it: files in, one command, tables out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.repository import ROOT
from kit.simulations import breaches, log_text, read_tables
from pyresched.cli.__main__ import main
from pyresched.errors import ConfigError
from pyresched.model import NANOS
from pyresched.simulator import Checks, simulate
from pyresched.simulator.formats.failures import FailureLog, NodeFailure
from pyresched.simulator.formats.swf import parse_swf
from pyresched.simulator.tables import write_tables

EXAMPLES = ROOT / "examples"
SHAPE = {f"n{number:04}": 4 for number in range(1, 5)}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a gang, a failing job, a preemptible one and one that is too wide."""
    path = tmp_path / "log.swf"
    path.write_text(
        log_text(
            {8: 10, 4: 500},
            {8: 4, 4: 100, 2: 5, 11: 0},
            {8: 4, 4: 1000, 2: 6, 15: 2, 12: 8},
            {8: 17, 2: 7},
            {8: 2, 4: -1, 3: 30, 11: 5, 2: 8},
            {8: 1, 4: 0, 2: 9},
        )
    )
    return path


def simulated(log: Path, out: Path, *options: str) -> dict:
    """Run the command and return the summary; nothing of the result may be odd."""
    assert main(["simulate", str(log), "--nodes", "4x4", "--out", str(out), *options]) == 0
    assert breaches(out, cores=SHAPE) == []
    return read_tables(out)[2]


def test_every_job_ends_and_is_accounted_for(log: Path, tmp_path: Path) -> None:
    """Each of the six goes its own way."""
    summary = simulated(log, tmp_path / "out", "--check")
    jobs, runs, _ = read_tables(tmp_path / "out")
    states = ("succeeded", "succeeded", "succeeded", "refused", "cancelled", "succeeded")
    assert tuple(job["state"] for job in jobs) == states
    assert [job["queue"] for job in jobs] == ["user-7"] * 2 + ["user-8"] + ["user-7"] * 3
    assert jobs[3]["reason"] == "gang_exceeds_pool"
    # The second failed in the log, and as this seed has it not again; meanwhile the third, which
    # is less urgent, had its node.
    assert [job["runs"] for job in jobs] == ["1", "2", "2", "0", "1", "1"]
    assert summary["reschedules"] == 1
    assert jobs[0]["pieces"] == "3"
    assert len({run["node_id"] for run in runs if run["job_id"] == "1"}) == 3
    assert summary["lines"] == {"read": 6, "skipped": 0}


def test_a_rescheduled_run_takes_another_node(tmp_path: Path) -> None:
    """It waits for its delay and prefers nodes on which it has not failed."""
    path = tmp_path / "log.swf"
    path.write_text(log_text({11: 0, 4: 100}))
    simulated(path, tmp_path / "out", "--check")
    _, runs, _ = read_tables(tmp_path / "out")
    first, second = runs[:2]
    assert first["outcome"] == "failed"
    assert first["reason"] == "exit_status"
    assert float(second["started_s"]) >= float(first["ended_s"]) + 5
    assert second["node_id"] != first["node_id"]


def test_runs_of_a_lost_node_are_replaced_at_once(tmp_path: Path) -> None:
    """Without delay or budget; a node is back when the last of its outages ends."""
    log, failures = tmp_path / "log.swf", tmp_path / "failures.csv"
    log.write_text(log_text(*({8: 4, 4: 7200} for _ in range(4))))
    failures.write_text(
        "nodenumz,Prob Started,Prob Fixed\n"
        "0,1/1/2000 0:00,1/1/2000 0:01\n"  # aligned to the first submit
        "5,1/1/2000 1:00,1/1/2000 1:10\n"  # node index 5 of 4 is 1
        "1,1/1/2000 1:05,1/1/2000 1:30\n"
    )
    summary = simulated(log, tmp_path / "out", "--failures", str(failures), "--check")
    assert (summary["nodes_lost"], summary["runs_lost"], summary["reschedules"]) == (2, 1, 0)
    assert summary["jobs"]["succeeded"] == 4
    _, runs, _ = read_tables(tmp_path / "out")
    (lost,) = [run for run in runs if run["outcome"] == "lost"]
    assert (lost["node_id"], lost["ended_s"], lost["reason"]) == ("n0002", "3600", "node_lost")
    back = [run for run in runs if run["node_id"] == "n0002" and float(run["started_s"]) >= 3600]
    assert all(float(run["started_s"]) >= 5400 for run in back)
    (replaced,) = [run for run in runs if run["job_id"] == lost["job_id"] and run is not lost]
    assert replaced["attempt"] == "2"


def test_a_preemptible_run_gives_way_and_comes_back(tmp_path: Path) -> None:
    """A queue above its share loses a best-effort run to a normal job of another queue."""
    log = tmp_path / "log.swf"
    low = [{8: 4, 4: 5000, 12: 1, 15: 2} for _ in range(4)]
    log.write_text(log_text(*low, {8: 4, 4: 100, 2: 1000, 12: 2}))
    summary = simulated(log, tmp_path / "out", "--check")
    assert summary["preemptions"] == 1
    assert summary["jobs"]["succeeded"] == 5
    simulated(log, tmp_path / "none", "--preemptible-queue", "none")
    assert read_tables(tmp_path / "none")[2]["preemptions"] == 0


def test_until_leaves_jobs_unfinished_and_says_why(tmp_path: Path) -> None:
    """What ended by then has ended; the rest waits, runs or is still to come."""
    log = tmp_path / "log.swf"
    log.write_text(
        log_text({8: 4, 4: 99}, *({8: 4, 4: 1000} for _ in range(5)), {2: 50, 8: 99}, {2: 500})
    )
    summary = simulated(log, tmp_path / "out", "--until", "100s")
    jobs, _, _ = read_tables(tmp_path / "out")
    assert [job["state"] for job in jobs] == ["succeeded"] + ["unfinished"] * 5 + [
        *("refused", "unfinished"),
    ]
    reasons = [job["reason"] for job in jobs if job["state"] == "unfinished"]
    assert reasons == ["running"] * 4 + ["insufficient_resources", "ahead"]
    assert summary["makespan_s"] == 100
    assert summary["utilisation"] == 1.0


def test_a_shorter_cycle_places_sooner(tmp_path: Path) -> None:
    """Two cycles are never closer than asked for; without a least time each event has its own."""
    log = tmp_path / "log.swf"
    log.write_text(log_text({4: 100}, {2: 3}, {2: 4}))
    for cycle, starts in (("10s", [0, 10, 10]), ("1s", [0, 3, 4]), ("0", [0, 3, 4])):
        simulated(log, tmp_path / cycle, "--cycle", cycle)
        jobs, _, _ = read_tables(tmp_path / cycle)
        assert [float(job["started_s"]) for job in jobs] == starts


def test_leases_of_running_jobs_are_renewed(tmp_path: Path) -> None:
    """A lease shorter than a job, and even than a cycle, ends no run."""
    log, config = tmp_path / "log.swf", tmp_path / "pyresched.toml"
    log.write_text(log_text({4: 1000}, {4: 200, 8: 12}))
    for number, lease in enumerate(("60s", "4s")):
        config.write_text(f'lease_duration = "{lease}"\n')
        summary = simulated(log, tmp_path / str(number), "--config", str(config), "--check")
        assert summary["runs_lost"] == 0
        assert summary["jobs"]["succeeded"] == 2


def test_a_configured_policy_decides_how_often_a_job_is_tried(tmp_path: Path) -> None:
    """All 40 jobs of the log failed, so hardly any later try succeeds."""
    log, config = tmp_path / "log.swf", tmp_path / "pyresched.toml"
    log.write_text(log_text(*({11: 0, 8: 1 + n % 6, 4: 9} for n in range(40))))
    for attempts in (0, 1, 3):
        config.write_text(f"[reschedule.batch]\nattempts = {attempts}\ninterval = '9h'\n")
        summary = simulated(log, tmp_path / str(attempts), "--config", str(config), "--check")
        jobs, _, _ = read_tables(tmp_path / str(attempts))
        assert max(int(job["runs"]) for job in jobs) == 1 + attempts
        assert summary["reschedules"] == summary["attempts"] - 40
        assert 35 * attempts <= summary["reschedules"] <= 40 * attempts
        assert summary["jobs"]["failed"] >= 35


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    """Tables and summary; another seed draws other failures."""
    log = EXAMPLES / "cluster.swf.gz"
    summaries = {}
    for name, seed, hashes in (("a", "0", "1"), ("b", "0", "2"), ("c", "5", "1")):
        subprocess.run(
            [
                *(sys.executable, "-m", "pyresched.cli", "simulate", log, "--seed", seed),
                *("--failures", EXAMPLES / "failures.csv", "--out", tmp_path / name),
                *("--until", "48h"),
            ],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            check=True,
            capture_output=True,
        )
        summaries[name] = (tmp_path / name / "summary.json").read_text()
    for file in ("jobs.csv", "runs.csv", "summary.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "runs.csv").read_bytes() != (tmp_path / "c" / "runs.csv").read_bytes()


def test_json_on_stdout_is_the_summary(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else is printed there."""
    simulated(log, tmp_path / "out", "--json")
    assert json.loads(capsys.readouterr().out) == read_tables(tmp_path / "out")[2]


job_fields = st.fixed_dictionaries(
    {
        2: st.integers(0, 400),
        4: st.integers(0, 200),
        8: st.integers(1, 20),
        11: st.sampled_from([0, 0, 1, 1, 1, 5]),
        12: st.integers(1, 3),
        15: st.integers(1, 2),
    }
)
failure = st.builds(
    NodeFailure,
    node=st.integers(0, 5),
    after=st.integers(0, 600).map(lambda s: s * NANOS),
    length=st.integers(0, 300).map(lambda s: s * NANOS),
)


@given(
    jobs=st.lists(job_fields, min_size=1, max_size=25),
    failures=st.lists(failure, max_size=6),
    cycle=st.sampled_from([0, 1, 10, 60]),
)
@settings(max_examples=25)
def test_any_log_runs_through_and_breaks_no_invariant(
    tmp_path_factory: pytest.TempPathFactory,
    jobs: list[dict[int, object]],
    failures: list[NodeFailure],
    cycle: int,
) -> None:
    """Every job ends, whatever fails; checkers find nothing, in memory and in the tables."""
    folder = tmp_path_factory.mktemp("result")
    failures.sort(key=lambda each: (each.after, each.node))
    result = simulate(
        parse_swf(log_text(*jobs).splitlines(), name="log"),
        nodes="4x4",
        failures=FailureLog(name="f", failures=tuple(failures), lines_read=len(failures)),
        cycle=cycle * NANOS,
        checks=Checks.EVERY_STEP,
    )
    write_tables(result, folder)
    assert breaches(folder, cores=SHAPE) == []
    assert result.summary.jobs.unfinished == 0
    refused = sum(int(str(job[8])) > 16 for job in jobs if job[11] != 5 or job[4] != 0)
    assert result.summary.jobs.refused >= refused


def test_a_configured_restart_comes_before_a_reschedule(tmp_path: Path) -> None:
    """Processes start again within their run, after their delay; without it there is no restart."""
    path = tmp_path / "log.swf"
    path.write_text(log_text({11: 0, 4: 100}, {4: 100}, {11: 0, 8: 8, 4: 50}))
    config = tmp_path / "config.toml"
    config.write_text('[restart.batch]\nattempts = 2\ninterval = "1h"\ndelay = "20s"\n')
    plain = simulated(path, tmp_path / "plain")
    assert plain["restarts"] == 0
    summary = simulated(path, tmp_path / "out", "--config", str(config), "--check")
    jobs, runs, _ = read_tables(tmp_path / "out")
    assert summary["restarts"] == sum(int(run["restarts"]) for run in runs) > 0
    assert summary["restarts"] == sum(int(job["restarts"]) for job in jobs)
    assert jobs[1]["restarts"] == "0"
    (first, *_) = [run for run in runs if run["job_id"] == "1"]
    restarts = int(first["restarts"])
    assert 1 <= restarts <= 2
    lasted = float(first["ended_s"]) - float(first["started_s"])
    assert 100 + 120 * restarts <= lasted <= 100 + 125 * restarts
    assert simulated(path, tmp_path / "again", "--config", str(config)) == summary


def test_a_restart_without_a_delay_takes_time_all_the_same(tmp_path: Path) -> None:
    """A process that fails at once and for ever does not stop the clock: mode delay, until."""
    path = tmp_path / "log.swf"
    path.write_text(log_text(*({11: 0, 4: 0} for _ in range(50))))
    config = tmp_path / "config.toml"
    config.write_text(
        '[restart.batch]\nattempts = 3\ninterval = "5s"\ndelay = "0s"\nmode = "delay"\n'
    )
    summary = simulated(path, tmp_path / "out", "--config", str(config), "--until", "1m")
    assert summary["restarts"] > 50


def test_runs_say_what_was_before_them_and_what_follows(tmp_path: Path) -> None:
    """The chain of runs and nodes, attempts used, when the next may start, why none does."""
    path = tmp_path / "log.swf"
    path.write_text(log_text(*({11: 0, 4: 100} for _ in range(40))))
    config = tmp_path / "config.toml"
    config.write_text('[reschedule.batch]\nattempts = 3\ninterval = "1h"\ndelay = "30s"\n')
    simulated(path, tmp_path / "out", "--config", str(config), "--cycle", "0s")
    jobs, runs, _ = read_tables(tmp_path / "out")
    seen = 0
    for job in jobs:
        chain = [run for run in runs if run["job_id"] == job["id"]]
        assert int(job["reschedules"]) == len(chain) - 1
        for n, run in enumerate(chain):
            before = chain[n - 1] if n else {"id": "", "node_id": ""}
            assert (run["previous_run"], run["previous_node"]) == (before["id"], before["node_id"])
            if run["outcome"] != "failed":
                assert (run["attempts_used"], run["eligible_s"], run["stopped"]) == ("", "", "")
            elif n < 3:
                assert run["attempts_used"] == f"{n}/3 in 1h"
                assert float(run["eligible_s"]) == float(run["ended_s"]) + 30
                assert run["stopped"] == ""
            else:
                seen += 1
                used = (run["attempts_used"], run["eligible_s"], run["stopped"])
                assert used == ("3/3 in 1h", "", "exhausted")
    assert seen > 0


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ('reschedule_dialect = "exact"', "may never stop"),
        ('reschedule_min_delay = "1m"', "delay is 30s; write at least 1m"),
    ],
)
def test_a_strict_configuration_is_held_to_its_own_policies(
    tmp_path: Path, log: Path, setting: str, sentence: str
) -> None:
    """What a submit would refuse of a job is refused of the defaults of a type."""
    config = tmp_path / "config.toml"
    policy = 'attempts = 15\ninterval = "26m30s"\ndelay = "30s"\n'
    policy += 'delay_function = "exponential"\nmax_delay = "2m"\n'
    config.write_text(f"[reschedule.batch]\n{policy}")
    simulate(log, nodes="4x4", config=config)
    config.write_text(f"{setting}\n[reschedule.batch]\n{policy}")
    with pytest.raises(ConfigError, match=sentence):
        simulate(log, nodes="4x4", config=config)
