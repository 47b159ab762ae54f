"""Specs and machines of jobs with which nothing can run, by the real command against the emulated
Vertex AI: what is reported, the exit code, and that nothing is left that costs.
"""

from __future__ import annotations

import pytest

from tests.commands.test_job_run import CODE, RUN, prepare
from tests.commands.test_vertex_job import APPLY, SPEC, assert_nothing_costs, jobs, logs
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

GPU = SPEC.replace("gpu: none", "gpu: {type: L4, count: 1}").replace(
    "    machine_type: n1-standard-4\n    replicas: 2\n", ""
)
B200 = GPU.replace("type: L4, count: 1", "type: B200, count: 8").replace(
    "    image", "    boot_disk: {type: hyperdisk-balanced}\n    image"
)
Case = tuple[str, str, str]
REFUSED: dict[str, Case] = {
    "region": (
        SPEC.replace("us-central1", "us-centrl1"),
        '"us-centrl1" is not a Vertex AI region',
        "use us-central1",
    ),
    "GPU not offered": (
        GPU.replace("us-central1", "europe-west1"),
        "europe-west1 does not offer L4 for training",
        "use asia-northeast3",
    ),
    "image by tag": (
        SPEC.replace(f"@sha256:{64 * '0'}", ":3.12-slim"),
        "is not pinned to a digest",
        "write NAME@sha256:DIGEST",
    ),
    "image of another registry": (
        SPEC.replace("docker.io/library/python", "quay.io/a/b"),
        "jobs cannot use images of quay.io",
        "copy the image to Artifact Registry",
    ),
    "GB200 without reservation": (
        B200.replace("B200, count: 8", "GB200, count: 4"),
        "GB200 requires a reservation",
        "set `capacity: {reservation: projects/PROJECT/zones/ZONE/reservations/NAME}`",
    ),
    "replicas without strategy": (
        GPU.replace("[alpha]", "[torch]") + "    replicas: 2\n",
        "2 machines are requested, but `strategy: none` trains on each of them alone",
        "set `strategy: ddp` under `training`",
    ),
}


def test_a_spec_that_no_job_can_honour_is_refused_before_anything_is_requested(
    bench: Bench, subtests: pytest.Subtests
) -> None:
    for name, (spec, what, fix) in REFUSED.items():
        with subtests.test(name):
            bench.spec(spec)
            done = bench.run(*APPLY)
            text = " ".join((done.stdout + done.stderr).split())
            assert done.returncode == 1, text
            for words in (what, "--> spec.yaml:", "= why: ", fix):
                assert words in text, text
            assert not (bench.folder / ".provision/sandbox/store.json").exists()


def test_a_gpu_that_is_rarely_available_on_demand_is_reported(bench: Bench) -> None:
    bench.spec(B200.replace("[alpha]", "[torch]") + "training: {strategy: ddp}\n")
    done = bench.run("lint", "spec.yaml")
    assert done.returncode == 0, "a reservation and Spot are recommended, not required"
    text = " ".join(done.stdout.split())
    assert "warning[GCP033] job-scarce-gpu: B200 is rarely available on demand" in text
    assert "help: set `capacity: spot`, or use a reservation" in text


def expect_timeout(bench: Bench, words: tuple[str, ...], missing: str, code: int) -> None:
    """Run a command whose job waits for a machine that never starts."""
    prepare(bench, SPEC + "    max_duration: 30s\n" + CODE)
    done = bench.run(*words)
    assert done.returncode == code, done.stderr + logs(bench)
    text = " ".join(done.stderr.split())
    assert f"in the phase rendezvous: {missing} did not start within 15 s" in text
    assert "help: run the same command again to get other machines" in text
    assert [job["state"] for job in jobs(bench)] == ["JOB_STATE_FAILED"]
    assert_nothing_costs(bench)


@pytest.mark.long
def test_a_machine_that_never_starts_ends_the_verification_in_time(bench: Bench) -> None:
    fault = ("--fault", "replica-missing:workerpool1-0")
    expect_timeout(bench, (*APPLY, *fault), "workerpool1-0", 1)


@pytest.mark.long
def test_a_primary_machine_that_never_starts_ends_the_program_in_time(bench: Bench) -> None:
    fault = ("--fault", "replica-missing:workerpool0-0")
    words = (*RUN, *fault, "--", "python", "train.py", "0", "0")
    expect_timeout(bench, words, "workerpool0-0", 2)
