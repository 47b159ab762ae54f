"""Fields of kind vertex-job that the service would refuse: `lint` says so from the text alone."""

from __future__ import annotations

import pytest

from provision.rules.examples import example_job
from tests.rules.conftest import Ask

REFUSED: list[tuple[str, str]] = [
    (example_job("system_packages: [ffmpeg]\n"), "installing system packages on the machines"),
    (example_job('cuda_toolkit: "12.8"\n'), "installing a CUDA toolkit on the machines of a job"),
    (
        example_job("", bucket="{europe-west4: gs://b01/x}"),
        "no folder for the region us-central1",
    ),
    (
        example_job("", bucket="{europe-west4: gs://b01/x}"),
        "europe-west4 is not one of the target",
    ),
    (example_job("", gpu="T4", capacity="{flex_start: 1h}"), "flex start requires one of the GPUs"),
    (
        example_job("", capacity="{flex_start: 1h}", max_duration="200h"),
        "a job with flex start can last at most 7 days",
    ),
    (
        example_job("", capacity="{strategy: spot, flex_start: 1h}"),
        "`capacity` has more than one of spot",
    ),
    (example_job("", gpu="RTX-4090"), "jobs of Vertex AI do not offer RTX-4090"),
    (
        example_job("training: {strategy: ddp}\n", gpu="GB200:4", capacity="spot"),
        "GB200 on machines with linux-aarch64 is not supported yet",
    ),
    (
        example_job("", image=f"quay.io/a/b@sha256:{64 * '0'}"),
        "jobs cannot use images of quay.io: Vertex AI pulls from Artifact Registry and Docker Hub",
    ),
    (example_job("", network="default"), "is not the full name of a network"),
    (
        example_job(
            "training: {strategy: ddp}\n",
            gpu="H200-141GB:8",
            network="projects/1/global/networks/n",
            capacity="spot",
        ),
        "VPC Network Peering is not possible for jobs with",
    ),
    (
        example_job("training: {strategy: ddp}\n", gpu="B200:8", capacity="spot"),
        "the boot disk of a4-highgpu-8g must be of type hyperdisk-balanced",
    ),
    (example_job("", boot_disk="{size: 50GiB}"), "must be between 100 and 64000 GiB"),
]


def test_what_a_job_cannot_have_is_refused(ask: Ask, subtests: pytest.Subtests) -> None:
    for spec, words in REFUSED:
        with subtests.test(words):
            messages = [finding.message for finding in ask(spec).findings]
            assert any(words in message for message in messages), messages


PULLED = ("python", "a/b", "docker.io/a/b", "eu.gcr.io/a/b", "us-docker.pkg.dev/p/r/image")


def test_images_of_docker_hub_and_artifact_registry_are_not_refused(ask: Ask) -> None:
    for name in PULLED:
        assert ask(example_job("", image=f"{name}@sha256:{64 * '0'}")).findings == (), name
