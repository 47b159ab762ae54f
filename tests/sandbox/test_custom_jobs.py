"""Custom jobs as the sandbox runs them, through Google's discovery client: each replica is a
process of the container's command.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.errors import HttpError

from tests.sandbox.test_vertex import REGION, vertex
from tests.sandbox_rig import Clients

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
    with pytest.raises(HttpError, match="Invalid filter"):
        jobs.rest.list(parent=REGION, filter="labels.a>b").execute()
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
    note = tmp_path / "pid"
    program = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    job = jobs.create(body(program))
    while not note.exists() or not note.read_text():
        time.sleep(0.02)
    jobs.rest.cancel(name=job["name"], body={}).execute()
    jobs.ended(job["name"])
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


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
