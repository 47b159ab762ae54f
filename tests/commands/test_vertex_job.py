"""Custom jobs from plan to removal, by the real command against the emulated Vertex AI: replicas are
processes that install the environment, meet, and run the probe.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

SPEC = f"""\
gpu: none
python: "3.11"
packages: [alpha]
targets:
  cluster:
    kind: vertex-job
    project: my-project
    regions: [us-central1]
    bucket: gs://my-bucket/provision
    machine_type: n1-standard-4
    replicas: 2
    image: docker.io/library/python@sha256:{64 * "0"}
"""
TWO_REGIONS = SPEC.replace("[us-central1]", "[us-central1, europe-west4]").replace(
    "gs://my-bucket/provision", "{us-central1: gs://my-us/p, europe-west4: gs://my-eu/p}"
)
APPLY = ("apply", "spec.yaml", "--sandbox", "--yes")
ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")


def stored(bench: Bench) -> dict[str, Any]:
    """The emulator's store."""
    text = (bench.folder / ".provision/sandbox/store.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document


def jobs(bench: Bench) -> list[dict[str, Any]]:
    return sorted(stored(bench)["custom_jobs"].values(), key=lambda job: str(job["createTime"]))


def logs(bench: Bench) -> str:
    """The output of all replicas, for a failure's message."""
    folder = bench.folder / ".provision/sandbox/replicas"
    return "\n".join(
        f"== {path}\n{path.read_text()}" for path in sorted(folder.glob("*/*/log.txt"))
    )


def assert_nothing_costs(bench: Bench) -> None:
    """Check that no job runs, that all is recorded, and that `destroy` removes it."""
    assert [job["state"] for job in jobs(bench) if job["state"] not in ENDED] == []
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    objects = [bucket["objects"] for bucket in stored(bench)["buckets"].values()]
    assert not any(objects), objects


def reports(bench: Bench) -> dict[str, Any]:
    (folder,) = (bench.folder / ".provision/sandbox/state/reports").iterdir()
    return {path.stem: json.loads(path.read_bytes()) for path in folder.glob("*.json")}


def check_statuses(report: dict[str, Any]) -> dict[str, str]:
    return {row["id"]: row["status"] for row in report["checks"] if row["id"].startswith("G")}


def test_two_machines_are_verified_together_and_nothing_stays(bench: Bench) -> None:
    bench.spec(SPEC)
    plan = bench.run("plan", "spec.yaml", "--sandbox")
    assert plan.returncode == 0, plan.stderr
    assert "job: 2 x n1-standard-4, in us-central1" in plan.stdout
    assert "quota that counts: custom_model_training_cpus" in plan.stdout
    done = bench.run(*APPLY)
    assert done.returncode == 0, done.stderr + logs(bench)
    assert done.stdout.startswith("SIMULATED")
    (job,) = jobs(bench)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert job["jobSpec"]["scheduling"]["disableRetries"] is True
    assert [pool["replicaCount"] for pool in job["jobSpec"]["workerPoolSpecs"]] == ["1", "1"]
    found = reports(bench)
    assert {"workerpool0-0", "workerpool1-0"} <= found.keys()
    for name in ("workerpool0-0", "workerpool1-0"):
        statuses = check_statuses(found[name])
        assert statuses == {"G01": "pass", "G06": "pass", "G08": "pass"}, found[name]["checks"]
    again = bench.run("plan", "spec.yaml", "--sandbox", "--output-format", "json")
    assert json.loads(again.stdout)["verification"]["cluster"]["needed"] is False
    status = bench.run("status", "spec.yaml", "--sandbox")
    assert "current" in status.stdout, status.stdout
    assert_nothing_costs(bench)


def test_a_job_is_detached_and_attached(bench: Bench) -> None:
    bench.spec(SPEC)
    detached = bench.run("sandbox", "faults")
    assert "worker-lost:REPLICA" in detached.stdout


Case = tuple[str, str, tuple[str, ...], int, str]
FAILURES: list[Case] = [
    ("stockout", SPEC, ("stockout:us-central1",), 2, "no region took the job"),
    ("quota", SPEC, ("quota:us-central1",), 2, "custom_model_training_cpus"),
    ("act as", SPEC, ("act-as",), 2, "iam.serviceAccounts.actAs"),
    ("cancelled", SPEC, ("cancelled-by-other",), 3, "was cancelled, and not by this command"),
    ("lost", SPEC, ("worker-lost:workerpool1-0",), 3, "exited with a non-zero status of 137"),
    ("no write", SPEC, ("no-bucket-write",), 3, "roles/storage.objectUser"),
    ("multi-region", SPEC, ("bucket-location:EU",), 2, "only use buckets in a single region"),
]


@pytest.mark.parametrize(
    ("spec", "faults", "code", "words"),
    [case[1:] for case in FAILURES],
    ids=[c[0] for c in FAILURES],
)
def test_failures_say_why_and_leave_nothing_that_costs(
    bench: Bench, spec: str, faults: tuple[str, ...], code: int, words: str
) -> None:
    bench.spec(spec)
    done = bench.run(*APPLY, *(word for fault in faults for word in ("--fault", fault)))
    assert done.returncode == code, done.stderr
    assert words in done.stderr.replace("\n  ", " "), done.stderr
    assert_nothing_costs(bench)


def test_the_next_region_is_tried_after_a_stockout_and_a_lost_answer_makes_one_job(
    bench: Bench,
) -> None:
    bench.spec(TWO_REGIONS)
    faults = ("--fault", "stockout:us-central1", "--fault", "lost-answer:2")
    done = bench.run(*APPLY, *faults)
    assert done.returncode == 0, done.stderr + logs(bench)
    first, second = jobs(bench)
    assert (first["state"], second["state"]) == ("JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")
    assert second["name"].split("/")[3] == "europe-west4"
    assert done.stderr.count("the response was lost, but the job exists") == 2
    assert_nothing_costs(bench)
