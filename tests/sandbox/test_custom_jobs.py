"""Custom jobs as the sandbox runs them, through Google's discovery client: each replica is a
process of the container's command.
"""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.errors import HttpError

from provision.sandbox.replica_network import ReplicaNetwork, find_ports
from tests.sandbox.test_vertex import REGION, vertex
from tests.sandbox_rig import Clients, clients
from tests.support import require, running

IMAGE = f"docker.io/library/python@sha256:{64 * '0'}"
POOL: dict[str, Any] = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": {"imageUri": IMAGE, "command": ["python3", "-c", "pass"]},
    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
}
L4 = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")


def body(program: str = "pass", *, workers: int = 0, **spec: Any) -> dict[str, Any]:
    pools = [copy.deepcopy(POOL)]
    if workers:
        pools.append({**copy.deepcopy(POOL), "replicaCount": str(workers)})
    for pool in pools:
        pool["containerSpec"]["command"] = ["python3", "-c", program]
    return {
        "displayName": "Run",
        "labels": {"provision-run": "abc"},
        "jobSpec": {
            "workerPoolSpecs": pools,
            "scheduling": {"timeout": "60s", "disableRetries": True},
            **spec,
        },
    }


class CustomJobs:
    def __init__(self, sandbox: Clients) -> None:
        self.sandbox, self.built = sandbox, vertex(sandbox)
        self.rest = self.built.projects().locations().customJobs()

    def create(self, job: dict[str, Any], region: str = REGION) -> dict[str, Any]:
        return dict(self.rest.create(parent=region, body=job).execute())

    def ended(self, name: str) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while (job := self.rest.get(name=name).execute())["state"] not in ENDED:
            assert time.monotonic() < deadline, job
            time.sleep(0.05)
        return dict(job)

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        return self.ended(self.create(job)["name"])

    def logs(self) -> list[str]:
        assert self.sandbox.store is not None
        folder = self.sandbox.store.folder / "replicas"
        return sorted(path.read_text() for path in folder.glob("*/*/log.txt"))


@pytest.fixture
def jobs(sandbox: Clients) -> Iterator[CustomJobs]:
    found = CustomJobs(sandbox)
    yield found
    found.built.close()


def test_replicas_see_their_place_and_the_first_ends_the_job(jobs: CustomJobs) -> None:
    program = (
        "import json, os, time\n"
        "spec = json.loads(os.environ['CLUSTER_SPEC'])\n"
        "print(json.dumps([spec['cluster'], spec['task'], os.environ['RANK']]), flush=True)\n"
        "time.sleep(1 if spec['task']['type'] == 'workerpool0' else 60)\n"
    )
    job = jobs.run(body(program, workers=2))
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    seen = [json.loads(text) for text in jobs.logs()]
    assert {len(cluster["workerpool1"]) for cluster, _, _ in seen} == {2}
    assert sorted((task["type"], task["index"], rank) for _, task, rank in seen) == [
        ("workerpool0", 0, "0"),
        ("workerpool1", 0, "1"),
        ("workerpool1", 1, "2"),
    ]


def test_a_replica_that_fails_ends_the_job_with_the_words_of_the_service(jobs: CustomJobs) -> None:
    job = jobs.run(body("raise SystemExit('no data')"))
    assert job["state"] == "JOB_STATE_FAILED"
    message = job["error"]["message"]
    assert message.startswith("The replica workerpool0-0 exited with a non-zero status of 1. ")
    assert "no data" in message


def test_a_failed_replica_is_restarted_unless_retries_are_disabled(jobs: CustomJobs) -> None:
    program = (
        "import os, sys\n"
        "once = os.path.exists('once')\n"
        "open('once', 'w').close()\n"
        "sys.exit(0 if once else 1)\n"
    )
    again = body(program)
    again["jobSpec"]["scheduling"] = {"timeout": "60s"}
    assert jobs.run(again)["state"] == "JOB_STATE_SUCCEEDED"
    assert jobs.run(body(program))["state"] == "JOB_STATE_FAILED"


def test_a_job_is_found_by_its_label_and_cancelled_and_deleted(jobs: CustomJobs) -> None:
    job = jobs.create(body("import time; time.sleep(60)"))
    text = "labels.provision-run=abc"
    found = jobs.rest.list(parent=REGION, filter=text).execute()["customJobs"]
    assert [row["name"] for row in found] == [job["name"]]
    assert jobs.rest.list(parent=REGION, filter="labels.provision-run=other").execute() == {}
    either = "labels.provision-run=other OR labels.provision-run=abc"
    assert len(jobs.rest.list(parent=REGION, filter=either).execute()["customJobs"]) == 1
    for wrong in ("labels.a>b", f"{either} AND labels.a=b"):
        with pytest.raises(HttpError, match="Invalid filter"):
            jobs.rest.list(parent=REGION, filter=wrong).execute()
    with pytest.raises(HttpError, match="has not ended"):
        jobs.rest.delete(name=job["name"]).execute()
    jobs.rest.cancel(name=job["name"], body={}).execute()
    ended = jobs.ended(job["name"])
    assert (ended["state"], ended["error"]["code"]) == ("JOB_STATE_CANCELLED", 1)
    with pytest.raises(HttpError, match="cannot be cancelled"):
        jobs.rest.cancel(name=job["name"], body={}).execute()
    assert jobs.rest.delete(name=job["name"]).execute()["done"]
    assert jobs.rest.list(parent=REGION).execute() == {}


def test_a_cancelled_job_leaves_no_process(jobs: CustomJobs, tmp_path: Path) -> None:
    note = tmp_path / "note"
    program = f"import time; open({str(note)!r}, 'w').close(); time.sleep(60)"
    job = jobs.create(body(program))
    while not note.exists():
        time.sleep(0.02)
    assert running(str(note))
    jobs.rest.cancel(name=job["name"], body={}).execute()
    jobs.ended(job["name"])
    assert running(str(note)) == []


@pytest.mark.long
def test_a_timeout_ends_the_job(jobs: CustomJobs) -> None:
    job = body("import time; time.sleep(60)")
    job["jobSpec"]["scheduling"]["timeout"] = "1s"
    assert "timeout of 1 seconds" in jobs.run(job)["error"]["message"]


def _pool(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(POOL), **changes}


FLEX = {"strategy": "FLEX_START", "maxWaitDuration": "7200s"}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no pool", {"workerPoolSpecs": []}, "from 1 to 4 pools"),
    ("chief", {"workerPoolSpecs": [_pool(replicaCount="2")]}, "replica_count of 1"),
    ("no machine", {"workerPoolSpecs": [_pool(machineSpec={})]}, "is not supported"),
    (
        "machine",
        {"workerPoolSpecs": [_pool(machineSpec={"machineType": "c3-standard-8"})]},
        "'c3-standard-8' is not supported",
    ),
    (
        "no count",
        {"workerPoolSpecs": [_pool(machineSpec={**L4, "acceleratorCount": 0})]},
        "go together",
    ),
    (
        "count",
        {"workerPoolSpecs": [_pool(machineSpec={**L4, "acceleratorCount": 2})]},
        "2 x NVIDIA_L4 cannot be used",
    ),
    (
        "enum",
        {"workerPoolSpecs": [_pool(machineSpec={**L4, "acceleratorType": "NVIDIA_TESLA_L4"})]},
        "accelerator_type",
    ),
    ("disk", {"workerPoolSpecs": [_pool(diskSpec={"bootDiskSizeGb": 50})]}, "from 100 to 64000"),
    ("disk type", {"workerPoolSpecs": [_pool(diskSpec={"bootDiskType": "pd-extreme"})]}, "pd-ext"),
    (
        "image",
        {
            "workerPoolSpecs": [
                _pool(containerSpec={"imageUri": "quay.io/a/b", "command": ["true"]})
            ]
        },
        "neither in Artifact Registry nor on Docker Hub",
    ),
    ("two programs", {"workerPoolSpecs": [_pool(pythonPackageSpec={"pythonModule": "a"})]}, "one"),
    ("wait", {"scheduling": {"maxWaitDuration": "60s"}}, "only supported with FLEX_START"),
    ("flex start", {"scheduling": FLEX}, "not supported for this accelerator"),
    ("duration", {"scheduling": {"timeout": "1h"}}, "Duration"),
    ("network", {"network": "my-network"}, "not a full name"),
    ("unknown", {"shmSize": "1"}, "Cannot find field"),
]


def test_bodies_that_are_refused(jobs: CustomJobs, subtests: pytest.Subtests) -> None:
    for name, spec, words in REFUSED:
        with subtests.test(name), pytest.raises(HttpError, match=words) as caught:
            jobs.create(body(**spec))
        assert caught.value.status_code == 400
    where = REGION.replace("us-central1", "europe-west1")
    with pytest.raises(HttpError, match="is not supported in region"):
        jobs.create(body(workerPoolSpecs=[_pool(machineSpec=L4)]), where)
    assert jobs.rest.list(parent=REGION).execute() == {}


def require_hosts(folder: Path) -> None:
    """Skip the test if this machine cannot isolate hosts."""
    reason = ""
    try:
        ReplicaNetwork(folder / "hosts", ["workerpool0-0"], "try", frozenset(), frozenset()).close()
    except OSError as error:
        reason = str(error)
    require("root", not reason, reason)


LOOK = """import contextlib, json, os, socket, sys, time, urllib.request
spec = json.loads(os.environ["CLUSTER_SPEC"])
is_chief = spec["task"]["type"] == "workerpool0"
chief, worker = (spec["cluster"][pool][0].partition(":")[0] for pool in sorted(spec["cluster"]))
port = int(os.environ["CMLE_TRAINING_WORKERPOOL0_0_SERVICE_PORT_TRAINING_PORT"])
def connect(address, limit=5):
    for _ in range(100):
        try:
            return socket.create_connection(address, timeout=limit)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"nobody listens at {address}")
"""
MEET = f"""{LOOK}
if is_chief:
    listening = socket.create_server(("0.0.0.0", port))
    connection, _ = listening.accept()
    name, address = json.loads(connection.makefile().readline())
    connection.sendall(b"received")
    connect((address, 6001)).close()  # every port of the machine itself
    try:
        socket.create_connection((worker, 6001), timeout=5)
    except ConnectionRefusedError:
        closed = True
    try:
        socket.getaddrinfo(name, 1)
    except OSError:
        unknown = True
    urllib.request.urlopen(os.environ["STORAGE_EMULATOR_HOST"] + "/storage/v1/b/a/o/b?alt=media")
    print(json.dumps([closed, unknown, os.path.exists("/dev/shm/theirs")]), flush=True)
else:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((chief, 1))
        address = probe.getsockname()[0]
    direct = socket.create_server((address, 6001))
    open("/dev/shm/theirs", "w").close()
    received = b""
    while not received:  # a name accepts connections before anyone listens behind it
        with connect((chief, port)) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(json.dumps([socket.gethostname(), address]).encode() + b"\\n")
            received = connection.recv(64)
    time.sleep(60)
"""


def test_each_replica_has_its_own_host(jobs: CustomJobs, tmp_path: Path) -> None:
    """Names forward the ports of the service only, and services of this machine are reached."""
    require_hosts(tmp_path)
    assert jobs.sandbox.store is not None
    jobs.sandbox.store.put_object("a", "b", b"content")
    job = jobs.run(body(MEET, workers=1))
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert [json.loads(text) for text in jobs.logs() if text] == [[True, True, False]]


TALK = f"""{LOOK}
if is_chief:
    listening = socket.create_server(("0.0.0.0", port))
    connection, _ = listening.accept()
    connection.settimeout(1)
    began, count = time.monotonic(), 0
    try:
        while time.monotonic() < began + 3:
            count += len(connection.recv(2**20))
    except TimeoutError:
        print("silent", flush=True)
    print(round(count / (time.monotonic() - began) / 1e6, 2), flush=True)
else:
    while True:
        with connect((chief, port)) as connection, contextlib.suppress(ConnectionError):
            while True:
                connection.sendall(bytes(2**20))
"""


@pytest.mark.long
def test_a_silent_host_is_not_seen_to_end(tmp_path: Path) -> None:
    require_hosts(tmp_path)
    with clients(tmp_path / "sandbox", "silent-host:workerpool1-0") as sandbox:
        jobs = CustomJobs(sandbox)
        job = jobs.run(body(TALK, workers=1))
        log = "".join(jobs.logs())
        jobs.built.close()
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert "silent" in log


@pytest.mark.long
def test_a_slow_link_carries_100_mbit(tmp_path: Path) -> None:
    require_hosts(tmp_path)
    with clients(tmp_path / "sandbox", "slow-link:workerpool1-0") as sandbox:
        jobs = CustomJobs(sandbox)
        job = jobs.run(body(TALK, workers=1))
        (log,) = filter(None, jobs.logs())
        jobs.built.close()
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert 1 < float(log) < 20, "MB/s; without the fault it is hundreds"


RUN = """import sys; from pathlib import Path
from tests.sandbox.test_custom_jobs import CustomJobs, body
from tests.sandbox_rig import clients
with clients(Path(sys.argv[1])) as sandbox:
    jobs = CustomJobs(sandbox)
    for _ in range(int(sys.argv[2])):
        print(jobs.run(body(sys.argv[3], workers=1))["state"], flush=True)
"""


@pytest.mark.long(after=1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill", "interrupt"])
def test_nothing_stays_when_the_sandbox_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    require_hosts(tmp_path)
    note = tmp_path / "note"
    # Its child is in another session.
    program = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {str(note)!r}],"
        " start_new_session=True)\n"
        f"os.mkdir({str(note)!r} + os.environ['RANK'])\n"
        "time.sleep(60)\n"
    )
    words = [sys.executable, "-c", RUN, str(tmp_path / "sandbox"), "1", program]
    process = subprocess.Popen(words, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("note?"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert running(str(note))
    process.send_signal(number)
    process.wait(30)
    while left := [*running(str(note)), *running(str(tmp_path))]:
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def test_without_namespaces_replicas_share_this_network_after_one_notice(tmp_path: Path) -> None:
    program = f"{LOOK}print(chief, flush=True)\ntime.sleep(60 * (not is_chief))"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "sandbox"), "2", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "JOB_STATE_SUCCEEDED\n" * 2
    notice = (
        "SANDBOX: the machines of jobs share the network of this machine, because it cannot "
        "isolate them: ip is missing; install iproute2"
    )
    assert done.stderr.count("SANDBOX") == 1
    assert notice in done.stderr
    logs = [file.read_text() for file in (tmp_path / "sandbox").glob("replicas/*/*0-0/log.txt")]
    assert logs == ["127.0.0.1\n"] * 2


def test_the_fault_slow_link_needs_namespaces(tmp_path: Path) -> None:
    with clients(tmp_path / "sandbox", "slow-link:workerpool1-0") as sandbox:
        jobs = CustomJobs(sandbox)
        path = os.environ["PATH"]
        os.environ["PATH"] = str(tmp_path)
        try:
            message = jobs.run(body(workers=1))["error"]["message"]
        finally:
            os.environ["PATH"] = path
        jobs.built.close()
    assert "the slow-link fault needs network namespaces: ip is missing" in message


def test_ports_of_addresses() -> None:
    text = "https://u:p@index.corp:8443/simple http://127.0.0.1:5000 localhost:42 https://a.b/c:7"
    assert find_ports(text) == {8443, 5000, 42}
