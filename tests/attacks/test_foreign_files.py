"""A checkout of somebody else cannot make lint show or change files that are none of the project's
specs.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import Bench

SECRET = "s3cret-of-somebody"
SPEC = 'gpu: none\npython: "3.11"\npackages: []\n'
FORMS = ("text", "json", "sarif", "github")


@pytest.fixture
def checkout(bench: Bench) -> Bench:
    """A repository beside which, and in whose hidden folders, secrets lie."""
    (bench.folder / ".git").mkdir()
    for path in (
        bench.folder / ".git/config",
        bench.folder / ".env",
        bench.folder.parent / "netrc",
        bench.folder / "account.json",
    ):
        path.write_text(f"{SECRET}: {SECRET}\nmachine: [{SECRET}\n")
    return bench


def lint_in_all_forms(checkout: Bench, name: str) -> str:
    """Return all that lint says of a file, which has to end without success and within its time."""
    said = ""
    for form in FORMS:
        done = checkout.run("lint", name, "--output-format", form, timeout=60)
        assert done.returncode in {1, 2}, done.stdout + done.stderr
        said += done.stdout + done.stderr
    return said


@pytest.mark.parametrize(
    "target", ["../netrc", "/proc/self/environ", "/etc/passwd", ".git/config", ".env"]
)
def test_a_spec_that_is_a_link_shows_nothing_of_what_it_leads_to(
    checkout: Bench, target: str
) -> None:
    (checkout.folder / "provision.yaml").symlink_to(target)
    said = lint_in_all_forms(checkout, "provision.yaml")
    assert SECRET not in said
    assert "root:" not in said
    assert "HOME=" not in said
    assert "outside the project" in said or "a link to a hidden file" in said


def test_a_file_that_never_ends_is_not_opened(checkout: Bench) -> None:
    (checkout.folder / "provision.yaml").symlink_to("/proc/kmsg")
    assert "outside the project" in lint_in_all_forms(checkout, "provision.yaml")


@pytest.mark.parametrize("command", ["lint", "plan"])
def test_links_that_lead_to_each_other_are_said(checkout: Bench, command: str) -> None:
    (checkout.folder / "provision.yaml").symlink_to("other.yaml")
    (checkout.folder / "other.yaml").symlink_to("provision.yaml")
    (checkout.folder / "loop").symlink_to("loop")
    for name in ("provision.yaml", "loop/provision.yaml"):
        done = checkout.run(command, name)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "symbolic links" in done.stderr


@pytest.mark.parametrize("command", ["lint", "plan", "status"])
def test_a_working_folder_that_was_removed_is_said(checkout: Bench, command: str) -> None:
    start = (
        "mkdir gone && cd gone && rmdir ../gone && exec "
        f"{shlex.join([sys.executable, '-m', 'provision', command, 'provision.yaml'])}"
    )
    done = subprocess.run(
        ["bash", "-c", start],
        cwd=checkout.folder,
        env=checkout.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the current folder was removed" in done.stderr


def test_a_folder_that_is_a_link_leads_nowhere(checkout: Bench) -> None:
    (checkout.folder / "specs").symlink_to("..")
    said = lint_in_all_forms(checkout, "specs/netrc")
    assert SECRET not in said
    assert "outside the project" in said


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    "name", [".git/config", ".env", "../netrc", "account.json", "link.yaml", "specs/netrc"]
)
def test_what_is_extended_is_a_spec_of_the_project(checkout: Bench, name: str) -> None:
    (checkout.folder / "link.yaml").symlink_to(".git/config")
    (checkout.folder / "specs").symlink_to("..")
    checkout.spec(f"extends: {name}\n{SPEC}", "provision.yaml")
    assert SECRET not in lint_in_all_forms(checkout, "provision.yaml")


def test_links_within_the_project_are_followed(checkout: Bench) -> None:
    (checkout.folder / "shared").mkdir()
    (checkout.folder / "shared/base.yaml").write_text(SPEC)
    (checkout.folder / "provision.yaml").symlink_to("shared/base.yaml")
    checkout.spec("extends: provision.yaml\n", "other.yaml")
    for name in ("provision.yaml", "other.yaml"):
        done = checkout.run("lint", name, "--output-format", "json")
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_fix_changes_the_file_and_leaves_the_link(checkout: Bench) -> None:
    (checkout.folder / "shared").mkdir()
    path = checkout.folder / "shared/base.yaml"
    path.write_text('gpu: none\npython: "3.11"\npackages: [torch, transformers==5.13.1]\n')
    (checkout.folder / "provision.yaml").symlink_to("shared/base.yaml")
    done = checkout.run("lint", "--fix", "provision.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (checkout.folder / "provision.yaml").readlink() == Path("shared/base.yaml")
    assert "accelerate" in path.read_text()


def test_secrets_are_hidden_in_a_spec_that_has_other_errors_too(checkout: Bench) -> None:
    token = "hf_" + "Ab1" * 8
    checkout.spec(
        f"gpu: none\npython: 3\nnonsense: [\nenv: {{HF_TOKEN: {token}}}\n", "provision.yaml"
    )
    assert token not in lint_in_all_forms(checkout, "provision.yaml")


def test_a_secret_is_reported_although_the_spec_has_errors_of_shape(checkout: Bench) -> None:
    token = "hf_" + "Ab1" * 8
    checkout.spec(
        f'gpu: none\npython: "3.11"\npackages: {{}}\nnonsense: 1\nenv: {{HF_TOKEN: {token}}}\n',
        "provision.yaml",
    )
    found = json.loads(checkout.run("lint", "provision.yaml", "--output-format", "json").stdout)
    assert "SEC001" in {one["id"] for one in found["diagnostics"]}
