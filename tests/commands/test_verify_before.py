"""`verify --before`: the image of an instance is verified by an execution job, which is deleted."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from provision.targets.execution_jobs import to_orphan_job
from provision.targets.workbench.orphans import _running_jobs
from tests.rig import Bench, make_index, make_wheel

pytest.importorskip("google.cloud.notebooks_v2")

SPEC = """\
gpu: none
python: "3.11"
packages: [alpha]
training: {framework: none}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a, europe-west4-a]
    machine_type: n1-standard-4
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
"""
BEFORE = ("verify", "--before", "spec.yaml", "--sandbox", "--yes")
NOTE = "the same image was verified on "
LIMIT_S = 120


def stored(bench: Bench) -> dict[str, Any]:
    """The emulator's store."""
    path = bench.folder / ".provision/sandbox/store.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def assert_nothing_is_left(bench: Bench) -> None:
    """Check that there is neither a job nor an instance, and that no state names one."""
    left = stored(bench)
    assert (left["executions"], left["instances"]) == ({}, {})
    orphans = bench.run("orphans", "spec.yaml", "--sandbox")
    assert orphans.returncode == 0, orphans.stdout
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    assert stored(bench)["buckets"]["my-bucket"]["objects"] == {}


@contextmanager
def awaiting(bench: Bench) -> Iterator[tuple[subprocess.Popen[str], Store]]:
    """Yield a process that waits for its job, and the store, which another process holds."""
    bench.spec(SPEC)
    with serve(bench.folder / ".provision/sandbox", ("pending-job",), boot=False) as sandbox:
        running = bench.start(*BEFORE)
        assert sandbox.store is not None
        end = time.monotonic() + LIMIT_S
        while not sandbox.store.snapshot()["executions"]:
            assert (time.monotonic() < end, running.poll()) == (True, None)
            time.sleep(0.02)
        yield running, sandbox.store


@pytest.mark.long
def test_the_image_is_verified_and_the_job_is_deleted(bench: Bench) -> None:
    bench.spec(SPEC)
    done = bench.run(*BEFORE)
    assert done.returncode == 0, done.stderr
    for words in (
        "it verifies the image before the instance exists",
        "machine: n1-standard-4, in us-central1",
        "the zones are in several regions; the job runs in the region of us-central1-a",
        "image: workbench-instances-2603-20261004-2157-rc0",
        "cost: at most 75 minutes of this machine, $0.24",
        "the job is deleted when it ends",
        "not shown: capacity of the zone, boot, data disk",
    ):
        assert words in done.stderr
    assert done.stdout.startswith("SIMULATED")
    assert "target wb (on the same image) (workbench)" in done.stdout
    assert "evidence     verified on the same image, by an execution job" in done.stdout
    left = stored(bench)
    assert (left["executions"], left["instances"]) == ({}, {})
    assert left["buckets"]["my-bucket"]["objects"] == {}

    planned = bench.run("plan", "spec.yaml", "--sandbox")
    assert NOTE in planned.stdout
    assert "then quick verification on the instance" in planned.stdout, "it is no verdict on it"
    parity = bench.run("parity", "spec.yaml", "--sandbox", "--output-format", "json")
    assert parity.returncode == 3
    (target,) = json.loads(parity.stdout)["targets"]
    assert (target["standing"], target["elsewhere"].startswith(NOTE)) == ("no report", True)
    shown = bench.run("status", "spec.yaml", "--sandbox")
    assert (shown.returncode, "not verified" in shown.stdout) == (1, True)

    again = bench.run(*BEFORE, "--output-format", "json")
    (result,) = json.loads(again.stdout)["results"]
    assert (result["verdict"], result["not_shown"]) == (
        "simulated",
        "capacity of the zone, boot, data disk",
    )
    bench.spec(SPEC.replace("n1-standard-4", "n1-standard-8"))
    assert NOTE not in bench.run("plan", "spec.yaml", "--sandbox").stdout
    bench.spec(SPEC)
    assert NOTE in bench.run("plan", "spec.yaml", "--sandbox").stdout
    assert_nothing_is_left(bench)
    assert NOTE not in bench.run("plan", "spec.yaml", "--sandbox").stdout


@pytest.mark.long
def test_a_failed_check_is_reported_and_noted(bench: Bench) -> None:
    code = "raise ImportError('alpha lacks a library')\n"
    wheel = make_wheel(bench.folder.parent / "broken", "alpha", "3.0", code=code)
    make_index(bench.folder.parent / "index", (wheel,))
    bench.spec(SPEC)
    done = bench.run(*BEFORE)
    assert done.returncode == 1, done.stderr
    assert "alpha lacks a library" in done.stdout
    planned = bench.run("plan", "spec.yaml", "--sandbox")
    assert "the same image failed its verification on " in planned.stdout
    assert_nothing_is_left(bench)


@pytest.mark.long
def test_a_killed_run_is_continued_with_the_same_job(bench: Bench) -> None:
    with awaiting(bench) as (running, store):
        (name,) = store.snapshot()["executions"]
        running.kill()
        running.communicate(timeout=LIMIT_S)
        assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
    done = bench.run(*BEFORE)
    assert done.returncode == 0, done.stderr
    assert f"execution job {name.rpartition('/')[2]}:" in done.stderr
    assert "an interrupted run started it; provision waits for its report" in done.stderr
    assert "request: execution job" not in done.stderr, "no second job"
    assert_nothing_is_left(bench)


def test_a_job_of_a_lost_state_is_an_orphan(bench: Bench) -> None:
    with awaiting(bench) as (running, store):
        running.kill()
        running.communicate(timeout=LIMIT_S)
        (name,) = store.snapshot()["executions"]
        for file in ("state.json", "journal.json"):
            (bench.folder / ".provision/sandbox/state" / file).unlink(missing_ok=True)
        found = bench.run("orphans", "spec.yaml", "--sandbox")
        assert found.returncode == 1, found.stderr
        assert name.rpartition("/")[2] in found.stdout
        assert "JOB_STATE_PENDING" in found.stdout
        job = {"name": name, "labels": {"provision-spec": "s", "provision-target": "t"}}
        assert to_orphan_job(job).delete == (
            f"gcloud workbench executions delete {name.rpartition('/')[2]} --project=my-project "
            "--region=us-central1"
        )


@pytest.mark.parametrize("fault", ["permission", "api-disabled"])
def test_orphans_without_the_right_to_list_jobs(tmp_path: Path, fault: str) -> None:
    with serve(tmp_path / "sandbox", (fault,), boot=False) as sandbox:
        system = RealSystem({}, endpoints=sandbox.endpoints)
        assert list(_running_jobs("my-project", "us-central1", system)) == []


@pytest.mark.long
def test_destroy_after_a_killed_run_deletes_the_job(bench: Bench) -> None:
    with awaiting(bench) as (running, _):
        running.kill()
        running.communicate(timeout=LIMIT_S)
        assert len(stored(bench)["executions"]) == 1
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        assert_nothing_is_left(bench)


def test_an_interrupted_run_deletes_its_job(bench: Bench) -> None:
    with awaiting(bench) as (running, _):
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 130, errors
        assert_nothing_is_left(bench)


@pytest.mark.long
def test_a_job_that_is_deleted_while_it_is_awaited(bench: Bench) -> None:
    with awaiting(bench) as (running, store):
        with store.edit_data() as data:
            data["executions"].clear()
        _, errors = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 3, errors
        assert "error: the image was not verified" in errors
        assert "was deleted while it was running" in errors
        assert_nothing_is_left(bench)


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("stockout:us-central1", 3, "No available zone"),
        ("act-as", 2, "actAs"),
        ("quota:us-central1", 2, "CPUS"),
        ("permission", 2, "notebooks.instances.list"),
        ("bucket-location:EU", 2, "is in the multi-region EU"),
    ],
)
def test_a_job_that_the_service_does_not_run(
    bench: Bench, fault: str, code: int, words: str
) -> None:
    bench.spec(SPEC)
    done = bench.run(*BEFORE, "--fault", fault)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    if (bench.folder / ".provision/sandbox/store.json").exists():
        assert_nothing_is_left(bench)


REFUSED: list[tuple[str, str, tuple[str, ...], str]] = [
    ("", "", ("--only", "P02"), "--before and --only cannot be combined"),
    (
        "    service_account: trainer@my-project.iam.gserviceaccount.com\n",
        "",
        (),
        "`service_account` is not set, but an execution job needs a service account",
    ),
    (
        "[us-central1-a, europe-west4-a]",
        "[us-west12-a]",
        (),
        "Vertex AI has no endpoint in us-west12",
    ),
]


@pytest.mark.parametrize(("old", "new", "words", "text"), REFUSED)
def test_what_cannot_be_verified_before(
    bench: Bench, old: str, new: str, words: tuple[str, ...], text: str
) -> None:
    bench.spec(SPEC.replace(old, new) if old else SPEC)
    done = bench.run(*BEFORE, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_kinds_without_an_image_are_refused(bench: Bench) -> None:
    bench.spec(
        "gpu: none\npython: '3.11'\npackages: [alpha]\ntargets:\n"
        "  t: {kind: colab-enterprise, project: my-project, region: us-central1}\n"
    )
    done = bench.run(*BEFORE)
    assert done.returncode == 2
    assert "t cannot be verified before it exists" in done.stderr
    assert "kinds with an image: workbench" in done.stderr


def test_nothing_runs_without_a_confirmation(bench: Bench) -> None:
    bench.spec(SPEC)
    done = bench.run(*BEFORE[:-1])
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not (bench.folder / ".provision/sandbox/store.json").exists(), "nothing was requested"
