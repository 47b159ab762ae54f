"""Verifications by execution jobs that fail or do not end: message, exit code, and what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

SPEC = """\
gpu: none
python: "3.11"
packages: [alpha]
targets:
  team:
    kind: colab-enterprise
    project: my-project
    region: us-central1
    machine_type: e2-standard-8
    isolation: venv
    bucket: gs://my-bucket/provision
    service_account: trainer@my-project.iam.gserviceaccount.com
"""
APPLY = ("apply", "spec.yaml", "--sandbox", "--yes")
ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED")


def stored(bench: Bench) -> dict[str, Any]:
    """The emulator's store."""
    text = (bench.folder / ".provision/sandbox/store.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document


def assert_nothing_costs(bench: Bench) -> None:
    """Check that no job runs, that all is recorded, and that `destroy` removes it."""
    states = [job["jobState"] for job in stored(bench)["executions"].values()]
    assert [state for state in states if state not in ENDED] == []
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    left = stored(bench)
    assert (left["templates"], left["executions"]) == ({}, {})


FAILURES: list[tuple[tuple[str, ...], str, int, tuple[str, ...]]] = [
    (
        ("--fault", "no-bucket-write"),
        "",
        3,
        (
            "did not write a report",
            "report.json: HTTP Error 403: Forbidden",
            "roles/storage.objectUser",
        ),
    ),
    (("--fault", "dead-kernel"), "", 3, ("did not write a report", "the kernel died")),
    (
        (),
        "max_duration: 1s",
        3,
        # Its kernel may not even have begun, which leaves no status to read.
        ("did not finish within 1 s",),
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("words", "field", "code", "texts"), FAILURES)
def test_a_job_that_brings_no_report(
    bench: Bench, words: tuple[str, ...], field: str, code: int, texts: tuple[str, ...]
) -> None:
    bench.spec(SPEC + (f"    {field}\n" if field else ""))
    done = bench.run(*APPLY, *words)
    assert done.returncode == code, done.stderr
    assert [text for text in texts if text not in done.stderr] == [], done.stderr
    assert "Traceback" not in done.stderr
    assert_nothing_costs(bench)


@pytest.mark.long
def test_an_environment_that_cannot_be_made(bench: Bench) -> None:
    bench.spec(SPEC)
    begun = bench.run(*APPLY, "--detach", "--fault", "pending-job")
    assert begun.returncode == 3, begun.stderr
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    for wheel in Path(bench.index.removeprefix("file://")).parent.rglob("alpha*.whl"):
        wheel.write_bytes(b"damaged")
    done = bench.run(*APPLY)
    assert done.returncode == 1, done.stderr
    assert "the notebook could not create the environment" in done.stderr
    assert "in stage install" in done.stderr
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_check_that_fails(bench: Bench) -> None:
    bench.spec(SPEC.replace("targets:", "requires: {shm: 900TiB}\ntargets:"))
    done = bench.run(*APPLY)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("NOT AS DECLARED"), done.stdout
    assert "900 TiB" in done.stdout
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_job_that_is_deleted_while_it_is_awaited(bench: Bench) -> None:
    bench.spec(SPEC)
    with serve(bench.folder / ".provision/sandbox", ("pending-job",), boot=False) as sandbox:
        running = bench.start(*APPLY)
        assert sandbox.store is not None
        assert running.stderr is not None
        # The job is awaited from this line on; before it, the command would look for the job.
        assert any(line.rstrip().endswith(": pending") for line in running.stderr)
        jobs = sandbox.store.snapshot()["executions"]
        assert [job["jobState"] for job in jobs.values()] == ["JOB_STATE_PENDING"]
        with sandbox.store.edit_data() as data:
            data["executions"].clear()
        _, errors = running.communicate(timeout=120)
        assert running.returncode == 3, errors
        assert "was deleted while it was running" in errors
        assert "run the same command again to start a new job" in errors
        assert_nothing_costs(bench)


def test_an_answer_that_is_lost_leaves_one_template(bench: Bench) -> None:
    bench.spec("".join(SPEC.splitlines(keepends=True)[:-3]))
    done = bench.run(*APPLY, "--fault", "lost-answer")
    assert done.returncode == 3, done.stderr
    assert len(stored(bench)["templates"]) == 1
    assert_nothing_costs(bench)


@pytest.mark.long
def test_answers_that_are_lost_leave_one_template_and_one_job(bench: Bench) -> None:
    bench.spec(SPEC)
    done = bench.run(*APPLY, "--fault", "lost-answer:2")
    assert done.returncode == 0, done.stderr
    assert (len(stored(bench)["templates"]), len(stored(bench)["executions"])) == (1, 1)
    assert_nothing_costs(bench)


@pytest.mark.parametrize("location", ["EU", "nam4"])
def test_a_bucket_of_several_regions_is_refused(bench: Bench, location: str) -> None:
    bench.spec(SPEC)
    done = bench.run(*APPLY, "--fault", f"bucket-location:{location}")
    assert done.returncode == 2, done.stdout
    kind = "multi-region" if location == "EU" else "dual-region"
    assert f"bucket my-bucket is in the {kind} {location.upper()}" in done.stderr
    assert "gcloud storage buckets create gs://NAME --location=us-central1" in done.stderr
    assert not (bench.folder / ".provision/sandbox/store.json").exists(), "nothing was requested"


def test_a_bucket_of_another_region_is_noted(bench: Bench) -> None:
    bench.spec(SPEC)
    planned = bench.run("plan", "spec.yaml", "--sandbox", "--fault", "bucket-location:us-east1")
    assert planned.returncode == 0, planned.stderr
    assert "bucket: it is in us-east1, not in us-central1" in planned.stdout
    planned = bench.run("plan", "spec.yaml", "--sandbox", "--fault", "bucket-location:US-CENTRAL1")
    assert "bucket:" not in planned.stdout


def test_a_region_without_the_gpu_is_an_error(bench: Bench) -> None:
    text = SPEC.replace("gpu: none", "gpu: L4").replace("us-central1", "africa-south1")
    bench.spec(text.replace("e2-standard-8", "auto"))
    done = bench.run("plan", "spec.yaml", "--sandbox")
    assert done.returncode == 1, done.stderr
    assert "error[GCP026]" in done.stderr
    assert "africa-south1 does not offer L4" in done.stderr
