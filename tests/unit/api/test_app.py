"""The HTTP API: what it shows, takes and refuses."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from kit.driving import node, report, scheduler
from kit.jobs import job
from pyresched.model import NANOS, JobState, ReschedulePolicy
from pyresched.scheduler import Scheduler
from pyresched.store import MemoryJournal

if os.environ.get("CI") != "true":
    pytest.importorskip("litestar", reason="needs the extra `server`; always there in CI")

import uvicorn  # only where the extra is
from litestar.testing import TestClient

from pyresched.api import create_app

NOW = 1_000


@pytest.fixture
def made() -> Scheduler:
    """One with a node, a job that runs, one that waits and one that was refused."""
    made = scheduler(node("n1", 1))
    made.submit([job("runs"), job("waits", submitted_at=1), job("big", 9000, 1)], 1)
    made.step(2)
    return made


@pytest.fixture
def client(made: Scheduler) -> Iterator[TestClient]:
    """A client of the API over it, at the time 1,000."""
    with TestClient(create_app(made, clock=lambda: NOW)) as client:
        yield client


def asked(id: str, **fields: object) -> dict[str, object]:
    """A request for one job."""
    return {"id": id, "queue": "q", "resources": {"cpu": "500m", "memory": "256Mi"}, **fields}


def test_a_job_is_shown_with_its_runs(client: TestClient) -> None:
    """Quantities as people write them, instants in nanoseconds."""
    shown = client.get("/jobs/runs").json()
    assert (shown["state"], shown["queue"], shown["validated"]) == ("leased", "queue-a", True)
    assert shown["resources"] == {"cpu": "1", "memory": "1073741824"}
    assert [(run["node_id"], run["leased_at"], run["outcome"]) for run in shown["runs"]] == [
        ("n1", 2, None)
    ]
    refused = client.get("/jobs/big").json()
    assert (refused["state"], refused["reason"]) == ("failed", "exceeds_every_node")


def test_an_unknown_job_is_not_found(client: TestClient) -> None:
    """By name."""
    answer = client.get("/jobs/nobody")
    assert (answer.status_code, answer.json()["detail"]) == (404, "no job 'nobody'")


def test_jobs_are_listed_in_pages_by_queue_and_state(client: TestClient) -> None:
    """Every job once over all pages."""
    ids, offset = [], 0
    while offset is not None:
        page = client.get("/jobs", params={"limit": 2, "offset": offset}).json()
        ids += [each["id"] for each in page["jobs"]]
        offset = page["next_offset"]
    assert ids == ["big", "runs", "waits"]
    queued = client.get("/jobs", params={"state": "queued"}).json()
    assert [each["id"] for each in queued["jobs"]] == ["waits"]
    assert client.get("/jobs", params={"queue": "other"}).json()["jobs"] == []


@pytest.mark.parametrize(
    "params", [{"state": "asleep"}, {"limit": 0}, {"limit": 9999}, {"offset": -1}, {"limit": "x"}]
)
def test_a_bad_question_is_refused(client: TestClient, params: dict[str, object]) -> None:
    """With status 400, and what would be right for a state."""
    answer = client.get("/jobs", params=params)
    assert answer.status_code == 400
    if "state" in params:
        assert "known: queued, leased" in answer.json()["detail"]


def test_nodes_and_queues_are_shown_with_their_jobs(client: TestClient) -> None:
    """A queue counts its jobs by state."""
    (shown,) = client.get("/nodes").json()
    assert (shown["id"], shown["jobs"], shown["lost_at"]) == ("n1", ["runs"], None)
    assert shown["total"] == {"cpu": "1", "memory": "1073741824"}
    (queue,) = client.get("/queues").json()
    assert (queue["name"], queue["weight"]) == ("queue-a", 1.0)
    assert queue["jobs"] == {"leased": 1, "queued": 1, "failed": 1}


def test_submitted_jobs_are_the_schedulers(client: TestClient, made: Scheduler) -> None:
    """Requests round up; the answer shows them as taken, a refused one with its reason."""
    members = [
        asked(f"g{n}", gang={"id": "g", "cardinality": 2}, payload={"argv": ["true"]})
        for n in range(2)
    ]
    answer = client.post("/jobs", json={"jobs": [*members, asked("wide", resources={"cpu": 99})]})
    assert answer.status_code == 201
    shown = {each["id"]: each for each in answer.json()["jobs"]}
    assert shown["g0"]["state"] == "queued"
    assert shown["wide"]["reason"] == "exceeds_every_node"
    row = made.snapshot().get("g1")
    assert (row.submitted_at, row.gang.cardinality) == (NOW, 2)
    assert row.payload == {"argv": ["true"]}
    assert made.check() == []


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"jobs": [asked("good"), asked("runs")]}, 409, "job 'runs' is there already"),
        ({"jobs": [asked("good"), asked("a", resources={"gpu": 1})]}, 400, "unknown resource"),
        ({"jobs": [asked("good"), asked("a", resources={"cpu": "-1"})]}, 400, "job 'a'"),
        ({"jobs": [asked("good"), asked("a", priority=-1)]}, 400, "priority must be"),
        ({"jobs": [asked("good"), asked("")]}, 400, "needs an id"),
        ({"jobs": [asked("good"), asked("a", pools=[])]}, 400, "job 'a': pools"),
        (
            {"jobs": [asked("good"), asked("a", gang={"id": "g", "cardinality": 1})]},
            400,
            "at least 2",
        ),
        ({"jobs": [asked("good"), asked("a", colour="red")]}, 400, ""),
        ({"jobs": [asked("good"), asked("x" * 300)]}, 400, "255"),
        ({"jobs": 7}, 400, ""),
        ([], 400, ""),
    ],
)
def test_a_bad_submit_is_refused_whole(
    client: TestClient, made: Scheduler, body: object, status: int, says: str
) -> None:
    """In one line; the good job of the request is not taken either."""
    answer = client.post("/jobs", json=body)
    assert answer.status_code == status
    assert says in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    assert "good" not in made.snapshot()


def test_a_missing_extra_is_one_line_and_import_pyresched_needs_none() -> None:
    """Without litestar the package imports, and the API says what to install."""
    script = (
        "import sys; sys.modules['litestar'] = None\n"
        "import pyresched, pyresched.scheduler, pyresched.service\n"
        "try:\n    import pyresched.api\n"
        "except pyresched.errors.MissingExtra as bad:\n    print(bad)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n") == 1
    assert "pip install 'pyresched[server]'" in done.stdout


def test_the_api_describes_itself(client: TestClient) -> None:
    """As OpenAPI, with every route."""
    described = client.get("/schema/openapi.json").json()
    commands = {f"/jobs/{{job_id}}/{name}" for name in ("stop", "force", "policy")}
    assert set(described["paths"]) == {"/jobs", "/jobs/{job_id}", "/nodes", "/queues", *commands}


def test_a_real_server_answers_while_the_scheduler_is_driven(made: Scheduler) -> None:
    """Uvicorn on a free port; a submit over HTTP is placed by the next step."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(create_app(made, clock=lambda: NOW), log_level="error", lifespan="off")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        body = json.dumps({"jobs": [asked("new")]}).encode()
        request = urllib.request.Request(f"{url}/jobs", body, {"Content-Type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            assert answer.status == 201
        report(made, "runs", kind="succeeded", now=NOW)
        made.cancel(["waits"], NOW)
        made.step(NOW)
        with urllib.request.urlopen(f"{url}/jobs/new", timeout=20) as answer:  # noqa: S310
            assert json.load(answer)["state"] == "leased"
    finally:
        server.should_exit = True
        thread.join()
    assert made.snapshot().get("new").state is JobState.LEASED


@pytest.fixture
def failing(made: Scheduler) -> Scheduler:
    """The same with a job that failed once and may be tried twice more."""
    policy = ReschedulePolicy(attempts=3, interval="1h", delay="30s")
    made.join_nodes([node("n2", 1)], 2)
    made.submit([job("fails", policy=policy)], 2)
    made.step(3)
    report(made, "fails", kind="failed", now=10)
    return made


def test_a_job_that_waits_says_how_long_and_what_is_used_up(
    failing: Scheduler, client: TestClient
) -> None:
    """Then the chain of its runs, and at last why nothing follows."""
    shown = client.get("/jobs/fails").json()
    assert (shown["state"], shown["failed_at"]) == ("backing_off", 10)
    assert shown["retry_delay"] == shown["eligible_at"] - 10 == 30 * NANOS
    assert shown["policy"] == "3 in 1h0m0s with constant delay, max_delay = 0s"
    for used in range(3):
        shown = client.get("/jobs/fails").json()
        assert (shown["attempts_used"], shown["reschedules"]) == (f"{used}/3 in 1h", used)
        at = shown["eligible_at"]
        failing.step(at)
        again = client.get("/jobs/fails").json()
        assert again["attempts_used"] == f"{used + 1}/3 in 1h"
        report(failing, "fails", kind="failed", now=at + 5)
    shown = client.get("/jobs/fails").json()
    assert (shown["state"], shown["reason"]) == ("failed", "exhausted")
    assert (shown["attempts_used"], shown["eligible_at"]) == ("3/3 in 1h", None)
    assert [run["outcome"] for run in shown["runs"]] == ["failed"] * 4
    assert client.get("/jobs/big").json()["attempts_used"] != ""


def test_runs_are_stopped_and_jobs_forced_and_given_policies(
    failing: Scheduler, client: TestClient
) -> None:
    """Each answers with the job as it is then."""
    assert client.post("/jobs/fails/force").json()["state"] == "queued"
    failing.step(20)
    stopped = client.post("/jobs/fails/stop").json()
    assert (stopped["state"], stopped["runs"][-1]["reason"]) == ("backing_off", "stopped")
    given = client.put("/jobs/fails/policy", json={"policy": "attempts=0"}).json()
    assert (given["state"], given["reason"]) == ("failed", "disabled")
    given = client.put("/jobs/fails/policy", json={}).json()
    assert given["policy"] == str(ReschedulePolicy.default("batch"))
    assert given["state"] == "backing_off"


def test_a_job_that_a_command_ends_is_shown_though_its_journal_forgets_it() -> None:
    """As it ended; it is gone only for the next who asks."""
    made = scheduler(node("n1", 1), journal=MemoryJournal(keep_ended=False))
    made.submit([job("once", policy=ReschedulePolicy())], 1)
    made.step(2)
    with TestClient(create_app(made, clock=lambda: NOW)) as client:
        stopped = client.post("/jobs/once/stop")
        assert (stopped.status_code, stopped.json()["state"]) == (200, "cancelled")
        assert client.post("/jobs/once/stop").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("POST", "/jobs/nobody/stop", None, 404, "no job 'nobody'"),
        ("POST", "/jobs/nobody/force", None, 404, "no job 'nobody'"),
        ("PUT", "/jobs/nobody/policy", {}, 404, "no job 'nobody'"),
        ("PUT", "/jobs/waits/policy", {"policy": "atempts=1"}, 400, "did you mean 'attempts'?"),
        ("PUT", "/jobs/waits/policy", {"policy": "attempts=1,interval=1s"}, 400, "at least 15s"),
        ("PUT", "/jobs/waits/policy", {"plan": ""}, 400, "Validation failed"),
    ],
)
def test_a_command_that_cannot_be_is_refused(
    client: TestClient, *, method: str, path: str, body: object, status: int, detail: str
) -> None:
    """With its status and one line."""
    answer = client.request(method, path, json=body)
    assert answer.status_code == status
    assert detail in answer.json()["detail"]
