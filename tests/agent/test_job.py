"""A replica's place in its job, from the variables that Vertex AI sets, and the meeting."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from provision.agent.job.cli import JobMachine, find_driver_paths
from provision.agent.job.cluster import ClusterError, ClusterPlace, read_place
from provision.agent.job.document import ProgramRequest
from provision.agent.job.meeting import Meeting
from provision.agent.job.program import ProgramEnd, build_command, build_variables
from provision.agent.job.program_output import OutputSender
from provision.agent.workbench.cloud import ServiceCallFailed
from provision.agent.workbench.document import parse_document
from provision.agent.workbench.environment import Environment
from provision.agent.workbench.instance import PhaseFailed, UserAccount
from provision.agent.workbench.status import SecretRedactor
from tests.agent.workbench.bench import Cloud

CLUSTER = {
    "workerpool0": ["127.0.0.1:2222"],
    "workerpool1": ["127.0.0.1:2222", "127.0.0.1:2222"],
}
PORT = "CMLE_TRAINING_WORKERPOOL0_4C1F_0_SERVICE_PORT_TRAINING_PORT"


def variables(pool: str, index: object, **more: str) -> dict[str, str]:
    task = {"type": pool, "index": index, "trial": "7"}
    document = {"cluster": CLUSTER, "environment": "cloud", "task": task, "job": {}}
    # Kubeflow's variables count nodes; they are never used.
    return {"CLUSTER_SPEC": json.dumps(document), "RANK": "9", "WORLD_SIZE": "9", **more}


def test_ranks_follow_the_pools() -> None:
    places = [
        read_place(variables(pool, index))
        for pool, index in (("workerpool0", 0), ("workerpool1", 0), ("workerpool1", "1"))
    ]
    assert [place.rank for place in places] == [0, 1, 2]
    assert {place.names for place in places} == {
        ("workerpool0-0", "workerpool1-0", "workerpool1-1")
    }
    assert {(place.chief, place.port, place.address) for place in places} == {
        ("127.0.0.1", 3333, "127.0.0.1")
    }


def test_the_port_is_that_of_the_services_variable() -> None:
    assert read_place(variables("workerpool0", 0, **{PORT: "4444"})).port == 4444
    assert read_place(variables("workerpool0", 0, **{PORT: "x"})).port == 3333


def test_without_the_variable_the_replica_is_alone() -> None:
    assert read_place({}) == ClusterPlace(
        "workerpool0-0", 0, ("workerpool0-0",), "127.0.0.1", 3333, "127.0.0.1"
    )


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"CLUSTER_SPEC": "{"}, "CLUSTER_SPEC is malformed"),
        ({"CLUSTER_SPEC": "[]"}, "CLUSTER_SPEC is malformed"),
        ({"CLUSTER_SPEC": '{"cluster": {}}'}, "CLUSTER_SPEC is malformed"),
        (variables("workerpool2", 0), "does not list this replica, workerpool2-0"),
    ],
)
def test_a_place_that_cannot_be_read(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        read_place(environ)


class Bucket:
    """The objects of a job, as a dictionary in place of the client."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.answer: dict[str, Any] = {}

    def find_object(self, address: str) -> bytes | None:
        return self.objects.get(address)

    def write_object(self, address: str, content: bytes, _content_type: str) -> dict[str, Any]:
        if "refused" in address:
            raise ServiceCallFailed("cannot write", 403)
        self.objects[address] = content
        return self.answer


class Time:
    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now


def meeting_of(bucket: Bucket, rank: int, nonce: str = "nonce-1") -> Meeting:
    names, time = ("workerpool0-0", "workerpool1-0"), Time()
    place = ClusterPlace(names[rank], rank, names, "chief", 3333, "10.0.0.1")
    return Meeting(bucket, "gs://b/run/", nonce, place, time.sleep, time.clock)  # type: ignore[arg-type]


def test_replicas_meet_in_the_order_of_their_ranks() -> None:
    bucket = Bucket()
    first, second = meeting_of(bucket, 0), meeting_of(bucket, 1)
    second.write_report({"name": "workerpool1-0"})
    lines: list[str] = []
    with pytest.raises(PhaseFailed, match="workerpool0-0 did not start within 60 s"):
        second.await_reports(60, lines.append)
    assert lines == ["1 of 2 replicas; missing: workerpool0-0"]
    first.write_report({"name": "workerpool0-0"})
    assert [report["name"] for report in second.await_reports(60, print)] == [
        "workerpool0-0",
        "workerpool1-0",
    ]


def test_a_report_of_another_run_does_not_count() -> None:
    bucket = Bucket()
    first = meeting_of(bucket, 0)
    first.write_report({"name": "workerpool0-0"})
    meeting_of(bucket, 1, "nonce-2").write_report({"name": "workerpool1-0"})
    with pytest.raises(PhaseFailed, match="workerpool1-0 did not start"):
        first.await_reports(5, print)


def test_the_failure_of_another_replica_ends_the_wait_at_once() -> None:
    bucket = Bucket()
    first = meeting_of(bucket, 0)
    status = {"n": "nonce-1", "s": "error", "p": "packages", "e": "no space left"}
    bucket.objects["gs://b/run/workerpool1-0/status.json"] = json.dumps(status).encode()
    with pytest.raises(PhaseFailed, match="the replica workerpool1-0 failed: no space left"):
        first.await_reports(3600, print)


def test_a_running_replica_has_not_ended() -> None:
    bucket = Bucket()
    first = meeting_of(bucket, 0)
    for name, state in (("workerpool0-0", "done"), ("workerpool1-0", "running")):
        status = {"n": "nonce-1", "s": state, "v": "verified", "sha256": "ab"}
        bucket.objects[f"gs://b/run/{name}/status.json"] = json.dumps(status).encode()
    with pytest.raises(PhaseFailed, match="workerpool1-0 did not finish"):
        first.await_ends(5, print)
    bucket.objects["gs://b/run/workerpool1-0/status.json"] = json.dumps(
        {"n": "nonce-1", "s": "done", "v": "failed", "sha256": "cd"}
    ).encode()
    first.write_index(first.await_ends(5, print))
    index = json.loads(bucket.objects["gs://b/run/index.json"])
    assert [(row["name"], row["verdict"], row["sha256"]) for row in index["replicas"]] == [
        ("workerpool0-0", "verified", "ab"),
        ("workerpool1-0", "failed", "cd"),
    ]


def test_the_clock_is_compared_with_that_of_the_bucket() -> None:
    bucket = Bucket()
    bucket.answer = {"timeCreated": "2020-01-01T00:00:00.123Z"}
    offset = meeting_of(bucket, 0).measure_clock()
    assert offset is not None
    assert offset > 86400 * 365
    bucket.answer = {"timeCreated": "yesterday"}
    assert meeting_of(bucket, 0).measure_clock() is None


def program(*argv: str, processes: int = 0) -> ProgramRequest:
    return ProgramRequest(argv, processes, 3, {})


def test_programs_find_the_driver_of_the_host(tmp_path: Path) -> None:
    """A plain image has the driver's folder on no search path."""
    driver = tmp_path / "nvidia"
    (driver / "lib64").mkdir(parents=True)
    environ = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/own", "PROVISION_RUN": "{}"}
    paths = find_driver_paths(environ, str(driver))
    user = UserAccount("root", os.getuid(), os.getgid(), tmp_path)
    machine = JobMachine(user, tmp_path, SecretRedactor(), {**environ, **paths}, paths)
    (tmp_path / "cloud").mkdir()
    with Cloud(tmp_path / "cloud") as cloud:
        environment = Environment(parse_document(cloud.document("nonce-0001", "alpha")), machine)
    found = build_variables(program("python", "train.py"), environment, {})
    assert found["LD_LIBRARY_PATH"] == f"{driver}/lib64:/own"
    assert found["PATH"] == f"{environment.prefix}/bin:/usr/bin:/bin:{driver}/bin"
    assert "PROVISION_RUN" not in found
    shown = machine.run(["env"], 60, variables=environment.activation).stdout.splitlines()
    assert f"LD_LIBRARY_PATH={found['LD_LIBRARY_PATH']}" in shown
    assert f"PATH={found['PATH']}" in shown
    assert find_driver_paths(environ, str(tmp_path / "none")) == {}


def test_torchrun_meets_at_the_chief_and_other_programs_start_as_they_are() -> None:
    place = read_place(variables("workerpool1", 1))
    command = build_command(program("python", "train.py", "--lr=1", processes=4), place, "py", "")
    assert command == [
        *("py", "-m", "torch.distributed.run", "--nnodes=3", "--nproc-per-node=4"),
        *("--node-rank=2", "--master-addr=127.0.0.1", "--master-port=3333"),
        *("--local-addr=127.0.0.1", "--max-restarts=3", "train.py", "--lr=1"),
    ]
    assert build_command(program("python3", "-c", "0"), place, "py", "") == ["py", "-c", "0"]
    with pytest.raises(PhaseFailed, match="nowhere is neither in the environment"):
        build_command(program("nowhere"), place, "py", "/none")


def sent(bucket: Bucket) -> list[str]:
    return [content.decode() for _, content in sorted(bucket.objects.items())]


def test_output_is_sent_by_lines_so_that_no_secret_is_split() -> None:
    bucket, redactor = Bucket(), SecretRedactor()
    redactor.add_secrets(["hunter2-hunter2"])
    sender = OutputSender(bucket, "gs://b/run/workerpool0-0/", 2, redactor)  # type: ignore[arg-type]
    sender.add(b"first\r50%\rhunter2-")
    sender.send()
    assert bucket.objects == {}
    sender.add(b"hunter2\nend")
    sender.send()
    sender.send(everything=True)
    assert list(bucket.objects) == [
        "gs://b/run/workerpool0-0/output-002-00000.txt",
        "gs://b/run/workerpool0-0/output-002-00001.txt",
    ]
    assert sent(bucket) == ["first\n50%\n<redacted>\n", "end"]


def test_output_stays_while_the_bucket_refuses_it(capsys: pytest.CaptureFixture[str]) -> None:
    bucket = Bucket()
    sender = OutputSender(bucket, "gs://b/refused/", 1, SecretRedactor())  # type: ignore[arg-type]
    sender.add(b"line\n")
    sender.send()
    sender.send()
    assert capsys.readouterr().err == "provision: cannot write\n"
    sender.folder = "gs://b/run/"
    sender.send()
    assert sent(bucket) == ["line\n"]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ProgramEnd(5, None), 5),
        (ProgramEnd(None, "SIGKILL"), 137),
        (ProgramEnd(None, "SIGTERM", is_reclaimed=True), 143),
    ],
)
def test_a_signal_has_the_exit_code_of_a_shell(end: ProgramEnd, code: int) -> None:
    assert end.exit_code == code


def test_a_failed_worker_waits_for_the_chief() -> None:
    bucket = Bucket()
    first, second = meeting_of(bucket, 0), meeting_of(bucket, 1)
    time = second.sleep.__self__  # type: ignore[attr-defined]
    second.await_chief(30)
    assert time.now >= 30
    before = time.now
    bucket.objects[first._address("workerpool0-0", "status")] = json.dumps(
        {"n": "nonce-1", "s": "done"}
    ).encode()
    second.await_chief(30)
    assert time.now == before
