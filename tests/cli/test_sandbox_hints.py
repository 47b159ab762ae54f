"""Hints in a sandbox: provision's commands in place of gcloud's."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.adapters.google.instances import gcloud_command
from provision.cli.sandbox_hints import adapt_hint_to_sandbox

NAME = "projects/p/locations/us-central1-a/instances/provision-one"


@pytest.mark.parametrize(
    ("verb", "own"), [("delete", "destroy"), ("describe", "status"), ("list", "orphans")]
)
def test_what_gcloud_does_to_an_instance_our_own_commands_do(verb: str, own: str) -> None:
    assert (
        adapt_hint_to_sandbox(f"first\ndo it: {gcloud_command(verb, NAME)}", Path("my spec.yaml"))
        == f"first\ndo it: provision {own} 'my spec.yaml' --sandbox"
    )


@pytest.mark.parametrize(
    "line",
    [
        "gcloud compute instances get-serial-port-output x --project=p",
        "gcloud workbench instances diagnose x --gcs-path=gs://B",
        "gcloud compute ssh x",
    ],
)
def test_files_and_shells_of_an_instance(line: str) -> None:
    assert "gcloud" not in adapt_hint_to_sandbox(f"see: {line}", Path("spec.yaml"))


def test_other_commands_stay_and_are_told_to_be_for_google_cloud() -> None:
    hint = adapt_hint_to_sandbox("gcloud services enable x --project=p", Path("spec.yaml"))
    assert hint.splitlines()[0] == "gcloud services enable x --project=p"
    assert hint.splitlines()[1].startswith("SANDBOX: on Google Cloud")


def test_words_without_commands_stay_as_they_are() -> None:
    assert (
        adapt_hint_to_sandbox("nothing was left running", Path("spec.yaml"))
        == "nothing was left running"
    )
