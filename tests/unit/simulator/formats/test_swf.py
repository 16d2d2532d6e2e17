"""Standard Workload Format: every trap of real logs, met by a line that has it."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.errors import InputError
from pyresched.model import NANOS
from pyresched.simulator.formats.swf import Ending, WorkloadLog, parse_swf, read_swf


def line(**fields: object) -> str:
    """A line of a job of 4 processors that ran 60 s, with *fields* (f1 to f18) replaced."""
    values: list[object] = [1, 100, 5, 60, 4, -1, -1, 4, 600, -1, 1, 7, 1, -1, 1, -1, -1, -1]
    for name, value in fields.items():
        values[int(name[1:]) - 1] = value
    return " ".join(str(value) for value in values)


def read(*lines: str) -> WorkloadLog:
    """The log that *lines* hold."""
    return parse_swf(lines, name="log")


def test_a_line_becomes_a_job_with_times_in_nanoseconds() -> None:
    """All fields that a simulation needs come over."""
    (job,) = read(line(f10=2048)).jobs
    assert (job.number, job.line, job.user, job.queue) == (1, 1, 7, 1)
    assert (job.submitted_at, job.run_time) == (100 * NANOS, 60 * NANOS)
    assert (job.cores, job.memory_kb, job.ending) == (4, 2048, Ending.COMPLETED)


@pytest.mark.parametrize(
    ("status", "ending"),
    [
        (-1, Ending.COMPLETED),
        (0, Ending.FAILED),
        (1, Ending.COMPLETED),
        (2, Ending.COMPLETED),
        (3, Ending.COMPLETED),
        (4, Ending.FAILED),
        (5, Ending.CANCELLED),
        ("1.0", Ending.COMPLETED),
    ],
)
def test_each_status_has_its_ending(status: object, ending: Ending) -> None:
    """-1 is what logs write that do not know; the rest is the format's table."""
    assert read(line(f11=status)).jobs[0].ending is ending


def test_missing_values_are_none() -> None:
    """-1 stands for a missing value in every field, -1.0 as well."""
    (job,) = read(line(f3=-1, f10="-1.0", f12=-1, f15=-1)).jobs
    assert (job.wait, job.memory_kb, job.user, job.queue) == (0, None, None, None)


@pytest.mark.parametrize("requested", [-1, 0])
def test_processors_allocated_stand_in_for_a_missing_request(requested: int) -> None:
    """A job that asked for nothing known takes what it got."""
    assert read(line(f8=requested, f5=16)).jobs[0].cores == 16


def test_floats_are_exact() -> None:
    """A time with a fraction is that many nanoseconds, not a rounded binary number."""
    (job,) = read(line(f2="100.000000001", f4="552.21", f5="8.0", f8="8.0")).jobs
    assert job.submitted_at == 100_000_000_001
    assert job.run_time == 552_210_000_000
    assert job.cores == 8


def test_run_time_zero_is_a_run_time() -> None:
    """A job that ran for 0 s ran."""
    assert read(line(f4=0)).jobs[0].run_time == 0


@pytest.mark.parametrize("run_time", [-1, 0])
def test_a_job_cancelled_before_it_ran_has_no_run_time(run_time: int) -> None:
    """It is gone `wait` after its submit."""
    (job,) = read(line(f11=5, f3=30, f4=run_time)).jobs
    assert job.run_time is None
    assert job.wait == 30 * NANOS


def test_a_job_cancelled_while_it_ran_keeps_its_run_time() -> None:
    """It is cancelled when it has run for that long."""
    assert read(line(f11=5, f4=33)).jobs[0].run_time == 33 * NANOS


def test_jobs_come_in_order_of_submit_then_of_line() -> None:
    """Logs are not always sorted."""
    log = read(line(f1=1, f2=50), line(f1=2, f2=10), line(f1=3, f2=50), line(f1=4, f2=10))
    assert [job.number for job in log.jobs] == [2, 4, 1, 3]
    assert log.first_submit == 10 * NANOS


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1 2 3", "has 3 fields instead of 18"),
        (line() + " 5", "has 19 fields instead of 18"),
        (line(f4=-1), "run time (field 4) is missing"),
        (line(f4=-5), "run time (field 4) is '-5', below 0"),
        (line(f4="x"), "run time (field 4) is 'x', not a number"),
        (line(f4="nan"), "run time (field 4) is 'nan', not a number"),
        (line(f4="1_0"), "run time (field 4) is '1_0', not a number"),
        (line(f4="\u0663"), "run time (field 4) is '\\u0663', not a number"),
        (line(f4="1e99"), "run time (field 4) is past 1000000000 s"),
        (line(f2=-1), "submit time (field 2) is missing"),
        (line(f2=10**17), "submit time (field 2) is past 4000000000 s"),
        (line(f5=-1, f8=-1), "processors requested and allocated (fields 8 and 5) are both"),
        (line(f8="2.5"), "processors requested (field 8) is '2.5', not a whole number"),
        (line(f8=10**17), "processors 100000000000000000 are more than 1000000000"),
        (line(f1=-1), "job number (field 1) is missing"),
        (line(f1="1e50"), "job number (field 1) is '1e50', past 1000000000000000000"),
        (line(f11=6), "status (field 11) is '6', not one of -1 to 5"),
        (line(f11="0.5"), "status (field 11) is '0.5', not one of -1 to 5"),
        (line(f12="root"), "user (field 12) is 'root', not a number"),
        ("\x01\x02" * 40, "has 1 fields instead of 18"),
    ],
)
def test_a_line_that_cannot_be_used_is_kept_with_its_number(bad: str, reason: str) -> None:
    """It is counted and named, and the lines around it still count."""
    log = read("; header", line(f1=10), bad, line(f1=11))
    assert [job.number for job in log.jobs] == [10, 11]
    assert log.lines_read == 3
    ((number, why),) = [(skip.number, skip.reason) for skip in log.skipped]
    assert number == 3
    assert why.startswith(reason)


def test_a_job_number_that_stands_twice_counts_once() -> None:
    """The second line is named, with the first one's number."""
    log = read(line(f1=5), line(f1=5))
    assert len(log.jobs) == 1
    assert log.skipped[0].reason == "job number 5 stands in line 1 already"


def test_parts_after_the_line_of_the_whole_are_skipped() -> None:
    """A log that has both would run the job twice otherwise."""
    log = read(line(f1=5, f4=90), line(f1=5, f4=40, f11=2), line(f1=5, f4=50, f11=3))
    assert [job.run_time for job in log.jobs] == [90 * NANOS]
    assert [skip.number for skip in log.skipped] == [2, 3]


def test_parts_without_a_line_of_the_whole_are_one_job() -> None:
    """It runs as long as all its parts, and ends like the last of them."""
    log = read(line(f1=5, f4=40, f11=2), line(f1=5, f4=50, f11=2), line(f1=5, f4=1, f11=4))
    ((run_time, ending),) = [(job.run_time, job.ending) for job in log.jobs]
    assert (run_time, ending) == (91 * NANOS, Ending.FAILED)
    assert log.skipped == ()
    assert log.lines_read == 3


def test_a_part_after_the_last_part_is_skipped() -> None:
    """A job ends once."""
    log = read(line(f1=5, f11=3), line(f1=5, f11=2))
    assert log.skipped[0].reason == "job 5 has its last part in line 1 already"


def test_the_header_says_sizes_and_which_queues_give_way() -> None:
    """Keys are read whatever their case; 'not preemptible' does not count as preemptible."""
    log = read(
        "; MaxNodes: 151",
        ";MaxProcs: 2004 (and a note)",
        ";     Queue: 1 - Normal jobs queue - jobs are not preemptible",
        ";     Queue: 2 - Best-effort jobs can be preempted by normal jobs.",
        "; Queue: 3 low and preemptible",
        "; Queue: 4 non-preemptible",
        "; Computer: x",
        line(),
    )
    assert log.header_number("MaxNodes") == 151
    assert log.header_number("maxprocs") == 2004
    assert log.header_number("Nothing") is None
    with pytest.raises(InputError, match="header says Computer: 'x'; write a whole number"):
        log.header_number("Computer")
    assert log.preemptible_queues == {2, 3}


def write(path: Path, content: bytes) -> Path:
    """*path* with *content* in it."""
    path.write_bytes(content)
    return path


def test_mixed_line_ends_and_a_last_line_without_one(tmp_path: Path) -> None:
    """CR LF, LF and lone CR each end a line, and numbers count them all alike."""
    first, second, third = (line(f1=number) for number in (1, 2, 3))
    content = f"; a\r\n; b\n\r\n{first}\r{second}\r\nbad\n{third}".encode()
    log = read_swf(write(tmp_path / "log.swf", content))
    assert [(job.number, job.line) for job in log.jobs] == [(1, 4), (2, 5), (3, 7)]
    assert [skip.number for skip in log.skipped] == [6]


def test_a_packed_log_is_read_whatever_its_name(tmp_path: Path) -> None:
    """The content says whether a file is packed."""
    packed = write(tmp_path / "log.swf", gzip.compress(line().encode()))
    plain = write(tmp_path / "log.swf.gz", b"\xef\xbb\xbf; caf\xe9\n" + line().encode())
    assert read_swf(packed).jobs[0].line == 1
    log = read_swf(plain)
    assert log.jobs[0].line == 2
    assert log.skipped == (), "a byte order mark is no part of the first line"


BAD_FILES = {
    "empty": (b"", "is empty"),
    "only a header": (b"; Version: 2\n", "holds no job"),
    "only bad lines": (b"a b c\nd e f\n", "none of its 2 lines can be used (line 1: has 3 fields"),
    "binary": (bytes(range(256)) * 20, "is not text"),
    "utf-16": (line().encode("utf-16"), "is not text"),
    "one endless line": (b"1 " * 600_000, "line 1 has 1000000 characters or more"),
    "cut gzip": (gzip.compress(line().encode() * 1000)[:-20], "the packed file is damaged"),
    "broken gzip": (b"\x1f\x8b" + b"junk" * 30, "the packed file is damaged"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_log_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    """The line names the file and what is wrong with it."""
    content, reason = BAD_FILES[name]
    path = write(tmp_path / "log.swf", content)
    with pytest.raises(InputError) as refusal:
        read_swf(path)
    message = str(refusal.value)
    assert message.startswith(f"{path}: ")
    assert reason in message
    assert "\n" not in message
    assert message.isprintable()


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """So is a name that no file can have."""
    with pytest.raises(InputError, match="no such file or directory"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(InputError, match="is a folder"):
        read_swf(tmp_path)
    with pytest.raises(InputError, match="null"):
        read_swf("a\0b")


@given(st.lists(st.text(alphabet="0123456789-+.eE;x \t", max_size=90), max_size=6))
def test_any_text_is_read_or_refused_and_every_line_accounted_for(lines: list[str]) -> None:
    """Nothing but InputError comes out, and lines read are jobs plus skipped ones."""
    log = read(line(), *lines)
    assert log.lines_read == len(log.jobs) + len(log.skipped)
