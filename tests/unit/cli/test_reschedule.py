"""`pyresched reschedule explain`: what is printed, drawn and refused."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.commands import Run
from kit.policies import policies
from pyresched.model import RescheduleBlock, ReschedulePolicy
from pyresched.reschedule import Prospect, Severity, outlook, problems, timeline
from pyresched.spec import block_text

THREE = "attempts=3,interval=1h,delay=30s"


def test_it_says_what_is_in_effect_where_from_and_when_it_ends(run: Run) -> None:
    """Written and inherited values, run by run, the end and its reason."""
    code, out, err = run("reschedule", "explain", "--policy", THREE, "--runtime", "10s")
    assert (code, err) == (0, "")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    assert ["delay", "30s", "written"] in rows
    assert ["max_delay", "0s", "default of the type"] in rows
    assert ["3", "1m20s", "1m30s", "30s", "2/3", ""] in rows
    assert ["4", "2m", "2m10s", "", "3/3", "exhausted: 3 of 3 in 1h"] in rows
    assert "gives up with run 4, 2m10s after the first start" in out


def test_what_never_ends_is_said_and_cut(run: Run) -> None:
    """The first runs, how many more, the last; from when on nothing changes."""
    code, out, _ = run("reschedule", "explain", "--type", "service")
    assert code == 0
    assert "84 runs more" in out
    assert "It never gives up; the delay after run 8 and all that follow is 1h." in out


@pytest.mark.parametrize(
    ("policy", "severity", "sentence", "code"),
    [
        (
            "attempts=10,interval=1h,delay=20m",
            "error",
            "10 attempts need an interval of 3h20m; yours is 1h",
            1,
        ),
        ("unlimited=true,delay=2s", "warning", "write at least 5s, or limit the attempts", 0),
        (
            "attempts=3,unlimited=true",
            "error",
            "attempts = 3 (written) beside unlimited = true (written)",
            1,
        ),
    ],
)
def test_problems_come_with_the_fix(
    run: Run, policy: str, severity: str, sentence: str, code: int
) -> None:
    """An error is exit code 1, a warning is not."""
    got, out, _ = run("reschedule", "explain", "--policy", policy)
    assert got == code
    assert f"{severity}: " in out
    assert sentence in " ".join(out.split())


def test_the_dialect_and_the_least_delay_are_options(run: Run) -> None:
    """What is an error in one is a warning in the other."""
    policy = "attempts=15,interval=26m30s,delay=30s,delay_function=exponential,max_delay=2m"
    asked = ("reschedule", "explain", "--policy", policy)
    assert run(*asked)[0] == 0
    assert run(*asked, "--dialect", "exact")[0] == 1
    assert run(*asked, "--min-delay", "1m")[0] == 1


@pytest.mark.parametrize("job_type", ["system", "sysbatch"])
def test_types_that_are_never_rescheduled_say_so(run: Run, job_type: str) -> None:
    """A policy for one is an error."""
    code, out, _ = run("reschedule", "explain", "--type", job_type)
    assert (code, f"A {job_type} job is never rescheduled" in out) == (0, True)
    code, out, _ = run("reschedule", "explain", "--type", job_type, "--policy", THREE)
    assert (code, "drop the reschedule block" in out) == (1, True)


@given(policy=policies(), runtime=st.integers(0, 10**12), failures=st.integers(1, 30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_json_is_what_the_library_says(
    run: Run, policy: ReschedulePolicy, runtime: int, failures: int
) -> None:
    """Every step, the outlook and every problem, for any policy; exit code 1 with an error."""
    block = RescheduleBlock(
        attempts=policy.attempts % 50,
        interval=policy.interval,
        delay=policy.delay,
        delay_function=policy.delay_function,
        max_delay=policy.max_delay,
        unlimited=policy.unlimited,
    )
    code, out, _ = run(
        *("reschedule", "explain", "--json", "--policy", block_text(block)),
        *("--runtime", f"{runtime}ns", "--failures", failures),
    )
    told = json.loads(out)
    policy = ReschedulePolicy(**told["policy"])
    assert told["policy"] == block.written()
    assert set(told["origins"].values()) == {"written"}
    steps = timeline(policy, runtime=runtime, failures=failures)
    assert [(step["run"], step["started"], step["failed"]) for step in told["timeline"]] == [
        (step.number, step.started, step.failed) for step in steps
    ]
    for shown, step in zip(told["timeline"], steps, strict=True):
        verdict = step.verdict
        assert (shown["eligible"], shown["reason"]) == (verdict.eligible, verdict.reason.value)
        assert shown["next"] == (verdict.at if verdict.eligible else None)
        assert (shown["attempted"], shown["used"]) == (verdict.attempted, verdict.used)
    seen = outlook(policy, runtime=runtime)
    assert Prospect(told["outlook"]["prospect"]) is seen.prospect
    assert (told["outlook"]["runs"], told["outlook"]["after"]) == (seen.runs, seen.after)
    wrong = problems(policy)
    assert [problem["code"] for problem in told["problems"]] == [each.code.value for each in wrong]
    assert code == any(each.severity is Severity.ERROR for each in wrong)


def test_a_timeline_ends_where_it_is_asked_to(run: Run) -> None:
    """By runs, or by time."""
    asked = ("reschedule", "explain", "--type", "service", "--json")
    assert len(json.loads(run(*asked, "--failures", 5)[1])["timeline"]) == 5
    times = [step["started"] for step in json.loads(run(*asked, "--until", "1h")[1])["timeline"]]
    assert [each // 10**9 for each in times] == [0, 30, 90, 210, 450, 930, 1890]


def test_it_is_drawn_as_a_page_or_a_picture(run: Run, tmp_path: Path) -> None:
    """And says where."""
    for name, start in (("a.png", b"\x89PNG"), ("a.html", b"<!doctype html>")):
        path = tmp_path / name
        code, out, _ = run("reschedule", "explain", "--policy", THREE, "--plot", path)
        assert (code, f"drawn: {path}" in out) == (0, True)
        assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policy", "atempts=3"], "--policy: 'atempts' is no field"),
        (["--policy", "delay=1d"], "--policy: delay: '1d' is not a duration"),
        (["--type", "cron"], "--type"),
        (["--dialect", "strict"], "--dialect"),
        (["--runtime", "soon"], "--runtime: 'soon' is not a duration"),
        (["--runtime", "-5s"], "--runtime: '-5s' is out of range"),
        (["--failures", "0"], "--failures"),
        (["--plot", "a.svg"], "--plot: a.svg is neither .html nor .png"),
        (["--plot", "nowhere/a.png"], "--plot: nowhere is no folder"),
    ],
)
def test_what_cannot_be_asked_is_one_line(run: Run, arguments: list[str], sentence: str) -> None:
    """Exit code 2, nothing on stdout."""
    code, out, err = run("reschedule", "explain", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("pyresched: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_a_picture_that_cannot_be_written_is_refused(run: Run, tmp_path: Path) -> None:
    """Before anything is printed."""
    (tmp_path / "a.png").mkdir()
    code, out, err = run("reschedule", "explain", "--plot", tmp_path / "a.png")
    assert (code, out) == (2, "")
    assert "cannot be written" in err


def test_help_gives_examples(run: Run) -> None:
    """Of the group and of the command."""
    assert "explain" in run("reschedule", "--help")[1]
    assert "pyresched reschedule explain --policy" in run("reschedule", "explain", "--help")[1]
