"""Hints in a sandbox: provision's commands in place of gcloud's."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.adapters.google.instance_commands import (
    Verb,
    instance_command,
    render_commands_with,
)
from provision.cli.session import render_for_sandbox

NAME = "projects/p/locations/us-central1-a/instances/provision-one"


def sandbox_command(verb: Verb, path: Path) -> str:
    with render_commands_with(lambda command: render_for_sandbox(command, path)):
        return instance_command(verb, NAME)


@pytest.mark.parametrize(
    ("verb", "own"), [("delete", "destroy"), ("describe", "status"), ("list", "orphans")]
)
def test_what_gcloud_does_to_an_instance_our_own_commands_do(verb: Verb, own: str) -> None:
    assert (
        sandbox_command(verb, Path("my spec.yaml")) == f"provision {own} 'my spec.yaml' --sandbox"
    )


@pytest.mark.parametrize(("verb", "folder"), [("read-console", "serial"), ("diagnose", "machines")])
def test_files_of_an_instance(verb: Verb, folder: str) -> None:
    assert f".provision/sandbox/{folder}/" in sandbox_command(verb, Path("spec.yaml"))


def test_outside_a_sandbox_gcloud_is_named() -> None:
    sandbox_command("delete", Path("spec.yaml"))
    assert instance_command("delete", NAME) == (
        "gcloud workbench instances delete provision-one --project=p --location=us-central1-a"
    )
