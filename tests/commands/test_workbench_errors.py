"""What a person sees when Google Cloud refuses: the real command line against the sandbox's faults,
and what is left behind.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.rig import MINOR, Bench

pytest.importorskip("google.cloud.notebooks_v2")

ZONES = "[us-central1-a, us-central1-b]"
SPEC = f"""\
gpu: none
python: "{MINOR}"
packages: [alpha]
training: {{{{framework: none}}}}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: {ZONES}
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    max_lifetime: 8h
    {{more}}
"""


def apply(bench: Bench, *faults: str, more: str = "nat: true") -> subprocess.CompletedProcess[str]:
    bench.spec(SPEC.format(more=more))
    return bench.run(
        "apply", "spec.yaml", "--sandbox", "--yes", *(f"--fault={fault}" for fault in faults)
    )


STOCKOUT = ("stockout:us-central1-a", "stockout:us-central1-b")
CASES = {
    "quota of a region": (
        ("quota:us-central1",),
        "error: quota CPUS is used up in us-central1: the limit is 0",
        "gcloud compute regions describe us-central1",
    ),
    "quota of the project": (
        ("quota-global",),
        "error: quota GPUS_ALL_REGIONS is used up globally",
        "gcloud compute project-info describe",
    ),
    "no machine anywhere": (
        STOCKOUT,
        "error: none of 2 zones had the machine",
        "run the command again later, list more zones",
    ),
    "act as": (
        ("act-as",),
        "error: you are not allowed to use the instance's service account",
        "gcloud iam service-accounts add-iam-policy-binding trainer@my-project",
    ),
}


@pytest.mark.long(after=2)
@pytest.mark.parametrize(("faults", "what", "following"), CASES.values(), ids=CASES)
def test_a_refused_creation_is_told_with_the_next_command_and_leaves_nothing(
    bench: Bench, faults: tuple[str, ...], what: str, following: str
) -> None:
    done = apply(bench, *faults)
    assert done.returncode == 2
    assert what in done.stderr
    assert following in done.stderr.partition("help:")[2]
    assert "nothing was left running" in done.stderr
    assert "Traceback" not in done.stderr
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0


def test_a_policy_against_public_addresses_is_told_with_what_to_write(bench: Bench) -> None:
    done = apply(bench, "external-ip", more="public_ip: true")
    assert done.returncode == 2
    assert "error: an organization policy forbids this: compute.vmExternalIpAccess" in done.stderr
    assert "set `public_ip: false` for the target" in done.stderr.partition("help:")[2]
    assert "nothing was left running" in done.stderr
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0


BEFORE = {
    "permission": (
        "error: a permission is missing: notebooks.instances.list",
        "gcloud projects add-iam-policy-binding my-project --role=roles/notebooks.admin",
    ),
    "api-disabled": (
        "error: an API is not enabled in project my-project",
        "gcloud services enable notebooks.googleapis.com --project=my-project",
    ),
}


@pytest.mark.parametrize(
    ("fault", "what", "following"), [(fault, *words) for fault, words in BEFORE.items()], ids=BEFORE
)
def test_what_is_refused_before_anything_is_asked_for_is_told_with_the_next_command(
    bench: Bench, fault: str, what: str, following: str
) -> None:
    done = apply(bench, fault)
    assert done.returncode == 2
    assert what in done.stderr
    assert following in done.stderr.partition("help:")[2]
    assert "request:" not in done.stderr
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
