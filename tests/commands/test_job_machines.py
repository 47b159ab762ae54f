"""What the machines of a job show each other, by the real command against the emulated Vertex AI.

Each machine is a host in network namespaces.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from remaking.index import PipIndex
from tests.commands.test_vertex_job import (
    APPLY,
    LIMIT_S,
    SPEC,
    check_statuses,
    ended,
    logs,
    reports,
)
from tests.rig import Bench
from tests.sandbox.test_custom_jobs import require_hosts
from tests.support import require

pytest.importorskip("google.cloud.notebooks_v2")


@pytest.mark.long
def test_checkpoints_on_the_disk_of_each_machine_fail(bench: Bench, tmp_path: Path) -> None:
    """/dev/shm is not shared by the hosts of the emulator; the folder of this test is."""
    require_hosts(tmp_path)
    bench.spec(SPEC + "paths: {checkpoints: /dev/shm/checkpoints}\n")
    done = bench.run(*APPLY)
    assert done.returncode == 1, done.stderr + logs(bench)
    assert "/dev/shm/checkpoints: this machine cannot read what" in " ".join(done.stdout.split())
    assert check_statuses(reports(bench)["workerpool1-0"])["G07"] == "fail"
    shared = tmp_path / "shared"
    bench.spec(SPEC + f"paths: {{checkpoints: {shared}}}\n")
    done = bench.run(*APPLY)
    assert done.returncode == 0, done.stderr + logs(bench)
    assert check_statuses(reports(bench)["workerpool1-0"])["G07"] == "pass"
    assert list(shared.iterdir()) == [], "the files of the check are removed"


def test_a_machine_that_differs_or_is_there_twice_fails_the_job(bench: Bench) -> None:
    """The second machine is forged: it has the name of the first one, and another Python."""
    bench.spec(SPEC)
    faults = ("replica-missing:workerpool1-0",)
    with serve(bench.folder / ".provision/sandbox", faults, boot=False) as sandbox:
        store = sandbox.store
        assert store is not None
        running = bench.start(*APPLY)

        def await_object(ending: str, state: str = "") -> tuple[str, dict[str, Any]]:
            end = time.monotonic() + LIMIT_S
            while True:
                assert (time.monotonic() < end, running.poll()) == (True, None)
                for name in store.snapshot()["buckets"].get("my-bucket", {}).get("objects", ()):
                    stored = store.object("my-bucket", name) if name.endswith(ending) else None
                    document = json.loads(stored.content) if stored else {}
                    if document.get("s", "") == state and document:
                        return name.removesuffix(ending), document
                time.sleep(0.05)

        def put(folder: str, name: str, document: dict[str, Any]) -> None:
            store.put_object(
                "my-bucket", f"{folder}workerpool1-0/{name}", json.dumps(document).encode()
            )

        folder, ready = await_object("workerpool0-0/ready.json")
        put(folder, "ready.json", {**ready, "python": "3.9.1"})
        _, status = await_object("workerpool0-0/status.json", "done")
        report = store.object("my-bucket", f"{folder}workerpool0-0/report.json")
        assert report is not None
        store.put_object("my-bucket", f"{folder}workerpool1-0/report.json", report.content)
        put(folder, "status.json", status)
        returned, errors = ended(running)
    assert returned == 1, errors + logs(bench)
    found = check_statuses(reports(bench)["workerpool0-0"])
    assert (found["G01"], found["G06"]) == ("fail", "fail")


@pytest.mark.long(minutes=True)
def test_a_throttled_link_of_four_machines_names_its_host(bench: Bench, tmp_path: Path) -> None:
    require_hosts(tmp_path)
    links = os.environ.get("PIP_FIND_LINKS", "")
    require("index", bool(links), "torch is installed from the folder in PIP_FIND_LINKS")
    spec = SPEC.replace("[alpha]", '["torch==2.13.0"]').replace("replicas: 2", "replicas: 4")
    bench.spec(spec + "training: {framework: torch, precision: fp32, strategy: ddp}\n")
    fault = ("--fault", "slow-link:workerpool1-1")
    done = bench.run(*APPLY, *fault, PIP_FIND_LINKS=links)
    assert done.returncode == 1, done.stderr + logs(bench)
    for name, report in reports(bench).items():
        found = {row["id"]: row for row in report["checks"]}
        assert found["G04"]["status"] == "fail", name
        assert found["G04"]["message"].startswith("workerpool1-1: every link is slow"), name
        assert (found["G02"]["status"], found["G03"]["status"]) == ("pass", "warn")


@pytest.mark.long(minutes=True)
def test_two_machines_train_a_step(bench: Bench, tmp_path: Path, hf_python: str) -> None:
    """The packages are those of the environment that other tests train in."""
    require_hosts(tmp_path)
    code = (
        "from importlib.metadata import distributions as d\n"
        "print(*{i.metadata['Name'] + '==' + i.version for i in d()}, sep='\\n')"
    )
    listed = subprocess.run([hf_python, "-c", code], capture_output=True, text=True, check=True)
    versions = dict(line.split("==") for line in listed.stdout.split())
    names = ("torch", "transformers", "accelerate")
    own = ", ".join(f'"{name}=={versions[name]}"' for name in names)
    bench.spec(SPEC.replace("[alpha]", f"[{own}]") + "training: {strategy: ddp}\n")
    links, cert = os.environ.get("PIP_FIND_LINKS", ""), os.environ.get("PIP_CERT", "")
    require("index", bool(links), "torch is installed from the folder in PIP_FIND_LINKS")
    index = PipIndex().url
    done = bench.run(*APPLY, PIP_FIND_LINKS=links, PIP_CERT=cert, PROVISION_INDEX_PYPI=index)
    assert done.returncode == 0, done.stderr + logs(bench)
    for name in ("workerpool0-0", "workerpool1-0"):
        found = {row["id"]: row for row in reports(bench)[name]["checks"]}
        assert found["G05"]["status"] == "pass", found["G05"]
