"""Custom jobs from plan to removal, by the real command against the emulated Vertex AI: replicas
are processes that install the environment, meet, and run the probe.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from tests.commands.test_enterprise_killed import run as run_killed
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


def test_the_price_on_demand_is_the_most_that_spot_machines_cost(bench: Bench) -> None:
    bench.spec(f"{SPEC}    capacity: spot\npaths: {{checkpoints: /gcs/my-bucket/kept}}\n")
    plan = bench.run("plan", "spec.yaml", "--sandbox")
    assert re.search(r"cost: below \$\d", plan.stdout), plan.stdout + plan.stderr
    assert "custom_model_training_preemptible_cpus (8)" in plan.stdout


def test_two_machines_are_verified_together_and_nothing_stays(bench: Bench) -> None:
    bench.spec(SPEC)
    plan = bench.run("plan", "spec.yaml", "--sandbox")
    assert plan.returncode == 0, plan.stderr
    assert "job: 2 x n1-standard-4, in us-central1" in plan.stdout
    quotas = "custom_model_training_cpus (8), custom_model_training_pd_ssd (200)"
    assert f"quota that counts: {quotas}" in plan.stdout
    assert "retried: once after an internal error; never after a failed verif" in plan.stdout
    done = bench.run(*APPLY)
    assert done.returncode == 0, done.stderr + logs(bench)
    assert done.stdout.startswith("SIMULATED")
    assert "the machines exist only while a job runs" in done.stdout
    assert "activate" not in done.stdout
    (job,) = jobs(bench)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert job["jobSpec"]["scheduling"]["disableRetries"] is True
    assert [pool["replicaCount"] for pool in job["jobSpec"]["workerPoolSpecs"]] == ["1", "1"]
    found = reports(bench)
    assert {"workerpool0-0", "workerpool1-0"} <= found.keys()
    for name in ("workerpool0-0", "workerpool1-0"):
        statuses = check_statuses(found[name])
        expected = {"G01": "pass", "G06": "pass", "G07": "skip", "G08": "pass"}
        assert statuses == expected, found[name]["checks"]
    again = bench.run("plan", "spec.yaml", "--sandbox", "--output-format", "json")
    assert json.loads(again.stdout)["verification"]["cluster"]["needed"] is False
    status = bench.run("status", "spec.yaml", "--sandbox")
    assert "current" in status.stdout, status.stdout
    assert_nothing_costs(bench)


LIMIT_S = 600


@contextmanager
def awaiting(bench: Bench, *words: str, spec: str = SPEC) -> Iterator[tuple[Any, Store]]:
    """Yield a command that waits for its pending job, and the store of the services."""
    bench.spec(spec)
    with serve(bench.folder / ".provision/sandbox", ("pending-job",), boot=False) as sandbox:
        running = bench.start(*APPLY, *words)
        assert sandbox.store is not None
        end = time.monotonic() + LIMIT_S
        while not sandbox.store.snapshot()["custom_jobs"]:
            assert (time.monotonic() < end, running.poll()) == (True, None)
            time.sleep(0.02)
        if "--detach" not in words:
            # The job is awaited from this line on; before it, the command would look for the job.
            assert any(line.rstrip().endswith(": pending") for line in running.stderr or ())
        yield running, sandbox.store


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = running.communicate(timeout=LIMIT_S)
    return running.returncode, errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_proof_is_cancelled_and_awaited(
    bench: Bench, number: signal.Signals, code: int
) -> None:
    with awaiting(bench) as (running, store):
        running.send_signal(number)
        returned, errors = ended(running)
        assert returned == code, errors
        assert "the custom job was cancelled" in errors
        (job,) = store.snapshot()["custom_jobs"].values()
        assert job["state"] == "JOB_STATE_CANCELLED"
        assert_nothing_costs(bench)


def test_a_detached_job_goes_on_and_destroy_ends_it(bench: Bench) -> None:
    with awaiting(bench, "--detach") as (running, store):
        output, errors = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 3, errors
        assert "a job is running; wait for its reports: provision attach" in output
        (job,) = store.snapshot()["custom_jobs"].values()
        assert job["state"] == "JOB_STATE_PENDING"
        assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
        gone = bench.run("destroy", "spec.yaml", "--sandbox", "--yes")
        assert gone.returncode == 0, gone.stderr
        (job,) = store.snapshot()["custom_jobs"].values()
        assert job["state"] == "JOB_STATE_CANCELLED"


def test_a_job_that_is_deleted_or_belongs_to_nobody(bench: Bench) -> None:
    with awaiting(bench) as (running, store):
        with store.edit_data() as data:
            (name,) = data["custom_jobs"]
            kept = data["custom_jobs"].pop(name)
        returned, errors = ended(running)
        assert returned == 3, errors
        assert "was deleted while it was running" in errors
        with store.edit_data() as data:
            data["custom_jobs"][name] = kept
        orphans = bench.run("orphans", "spec.yaml", "--sandbox")
        assert orphans.returncode == 1, orphans.stdout
        assert f"{name}\n  PENDING" in orphans.stdout


@pytest.mark.long
def test_a_detached_job_is_attached(bench: Bench) -> None:
    secret = "projects/my-project/secrets/token"
    bench.spec(
        f"{SPEC}    service_account: a@my-project.iam.gserviceaccount.com\n"
        f"secrets: {{TOKEN: {{secret: {secret}/versions/1}}}}\n"
    )
    with serve(bench.folder / ".provision/sandbox", boot=False) as sandbox:
        assert sandbox.store is not None
        sandbox.store.set_secret(secret, b"a-secret-of-the-user")
        detached = bench.run(*APPLY, "--detach")
        assert detached.returncode == 3, detached.stderr
        attached = bench.run("attach", "spec.yaml", "--sandbox")
        assert attached.returncode == 0, attached.stderr + logs(bench)
        (job,) = jobs(bench)
        assert job["state"] == "JOB_STATE_SUCCEEDED"
        files = [path for path in bench.own.rglob("*") if path.is_file()]
        leaks = [path for path in files if b"a-secret-of-the-user" in path.read_bytes()]
        assert leaks == []
        assert {
            row["status"] for row in reports(bench)["report"]["checks"] if row["id"] == "Y01"
        } == {"pass"}


@pytest.mark.long
def test_a_failed_verification_is_a_finished_job(bench: Bench) -> None:
    bench.spec(SPEC + "requires: {shm: 900GiB}\n")
    done = bench.run(*APPLY)
    assert done.returncode == 1, done.stderr + logs(bench)
    (job,) = jobs(bench)
    assert job["state"] == "JOB_STATE_SUCCEEDED", "it is not repeated"
    found = reports(bench)
    assert check_statuses(found["report"])["G08"] == "fail"
    assert found["report"]["verdict"]["result"] == "failed"


def test_a_forged_report_is_not_accepted(bench: Bench) -> None:
    """The index lists other digests than those of the reports."""
    bench.spec(SPEC)
    with serve(bench.folder / ".provision/sandbox", ("pending-job",), boot=False) as sandbox:
        running = bench.start(*APPLY)
        assert sandbox.store is not None
        end = time.monotonic() + LIMIT_S
        while not (found := sandbox.store.snapshot()["custom_jobs"]):
            assert time.monotonic() < end
            time.sleep(0.02)
        ((name, job),) = found.items()
        variable = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"][0]
        uri = json.loads(variable["value"])["document.json"]["uri"]
        folder = uri.removeprefix("gs://my-bucket/").removesuffix("document.json")
        nonce = folder.rstrip("/").rpartition("/")[2]
        rows = [
            {"name": replica, "verdict": "verified", "sha256": "0" * 64}
            for replica in ("workerpool0-0", "workerpool1-0")
        ]
        index = json.dumps({"nonce": nonce, "replicas": rows}).encode()
        report = json.dumps({"subject": {"nonce": nonce}, "verdict": {"result": "verified"}})
        sandbox.store.put_object("my-bucket", f"{folder}index.json", index)
        sandbox.store.put_object("my-bucket", f"{folder}workerpool0-0/report.json", report.encode())
        with sandbox.store.edit_data() as data:
            data["custom_jobs"][name]["state"] = "JOB_STATE_SUCCEEDED"
        returned, errors = ended(running)
        assert returned == 3, errors
        assert "is not the one the replica wrote" in errors


@pytest.mark.long(minutes=True)
def test_a_job_that_appears_after_its_command_was_killed_is_the_only_one(
    bench: Bench, tmp_path: Path
) -> None:
    """The request was sent, and its job is listed a second later."""
    bench.spec(SPEC)
    log = tmp_path / "calls.txt"
    with serve(bench.folder / ".provision/sandbox", ("pending-job",), boot=False) as sandbox:
        assert sandbox.store is not None
        # What is written once, such as the lock, is there before the calls are counted.
        for _ in range(2):
            log.write_text("")
            assert run_killed(bench, log, 0, *APPLY, "--detach").returncode == 3
            assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        (number,) = [
            number
            for number, call in enumerate(log.read_text().splitlines(), 1)
            if call.endswith("/customJobs")
        ]
        with sandbox.store.edit_data() as data:
            *_, job = data["custom_jobs"].values()
            data["custom_jobs"].clear()
        assert run_killed(bench, log, number, *APPLY, "--detach").returncode == -9
        assert sandbox.store.snapshot()["custom_jobs"] == {}
        (intent,) = [
            json.loads(line)
            for path in (bench.folder / ".provision/sandbox/state").rglob("*")
            if path.is_file() and b"custom-job" in path.read_bytes()
            for line in [path.read_text()]
        ][:1]
        nonce, lineage = _find_texts(intent, "nonce"), _find_texts(intent, "lineage")
        again = bench.start(*APPLY, "--detach")
        time.sleep(1)
        labels = {**job["labels"], "provision-run": nonce, "provision-lineage": lineage}
        with sandbox.store.edit_data() as data:
            late = {**job, "labels": labels, "state": "JOB_STATE_PENDING"}
            data["custom_jobs"][job["name"]] = late
        returned, errors = ended(again)
        assert returned == 3, errors
        assert list(sandbox.store.snapshot()["custom_jobs"]) == [job["name"]], errors


def _find_texts(document: Any, key: str) -> str:
    """The first text with a key in a JSON document."""
    if isinstance(document, dict):
        if isinstance(document.get(key), str):
            return str(document[key])
        document = list(document.values())
    found = (_find_texts(item, key) for item in document) if isinstance(document, list) else ()
    return next(filter(None, found), "")


@pytest.mark.long(minutes=True)
def test_a_run_that_is_killed_at_any_call(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "calls.txt"
    bench.spec(SPEC)
    with serve(bench.folder / ".provision/sandbox", boot=False) as sandbox:
        assert sandbox.store is not None
        assert bench.run(*APPLY).returncode == 0
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        with sandbox.store.edit_data() as data:
            data["custom_jobs"].clear()
        assert run_killed(bench, log, 0, *APPLY).returncode == 0
        calls = log.read_text().splitlines()
        assert sum("customJobs" in call for call in calls) == 1, calls
        for number in range(1, len(calls) + 1):
            assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
            with sandbox.store.edit_data() as data:
                data["custom_jobs"].clear()
            about = f"killed at {number}: {calls[number - 1]}"
            killed = run_killed(bench, log, number, *APPLY)
            assert killed.returncode == -9, (about, killed.stderr)
            orphans = bench.run("orphans", "spec.yaml", "--sandbox")
            assert orphans.returncode == 0, (about, orphans.stdout)
            again = run_killed(bench, log, 0, *APPLY)
            assert again.returncode == 0, (about, again.stderr)
            assert again.stdout.startswith("SIMULATED"), about
            states = [job["state"] for job in sandbox.store.snapshot()["custom_jobs"].values()]
            assert states == ["JOB_STATE_SUCCEEDED"], about


Case = tuple[str, str, tuple[str, ...], int, str]
FAILURES: list[Case] = [
    ("lost", SPEC, ("worker-lost:workerpool1-0",), 3, "exited with a non-zero status of 137"),
    (
        "stockout",
        TWO_REGIONS,
        ("stockout:us-central1", "stockout:europe-west4"),
        2,
        "europe-west4: the region has no capacity for the job",
    ),
    ("internal", SPEC, ("internal-job:2",), 2, "failed twice with an internal error in Vertex AI"),
    (
        "no such replica",
        SPEC,
        ("worker-lost:workerpool1-7",),
        2,
        "--fault worker-lost:workerpool1-7: the job does not have this replica; it has workerpool0",
    ),
    ("quota", SPEC, ("quota:us-central1",), 2, "custom_model_training_cpus"),
    ("act as", SPEC, ("act-as",), 2, "iam.serviceAccounts.actAs"),
    ("cancelled", SPEC, ("cancelled-by-other",), 3, "was cancelled, but not by this command"),
    ("no write", SPEC, ("no-bucket-write",), 3, "roles/storage.objectUser"),
    ("multi-region", SPEC, ("bucket-location:EU",), 2, "only use buckets in a single region"),
]


@pytest.mark.long(after=2)
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
    if done.stderr.count("request: custom job"):
        assert_nothing_costs(bench)
