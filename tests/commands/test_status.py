"""The exit code of `status`: 0 only if the lock matches and every target is verified. Verdicts that
no longer hold.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from provision.commands.status import SpecStatus, TargetStatus
from provision.errors import LockError, ProvisionError
from provision.state import dumps, loads
from tests.rig import Bench

FINE = TargetStatus("local", "local", "current", "", "verified", "", "")


def overall(
    *targets: TargetStatus, differences: tuple[str, ...] | None = (), failed: bool = False
) -> int:
    errors: dict[str, ProvisionError] = {"other": LockError("damaged")} if failed else {}
    return SpecStatus(differences, targets, ("verified",), "", errors).exit_code


def test_all_is_well() -> None:
    assert overall(FINE) == 0
    assert overall(FINE, replace(FINE, condition="current, stopped")) == 0


@pytest.mark.parametrize("differences", [None, ("python: 3.11, locked 3.12",)])
def test_a_lock_that_is_missing_or_stale_is_enough(differences: tuple[str, ...] | None) -> None:
    assert overall(FINE, differences=differences) == 1
    assert overall(differences=differences) == 1


@pytest.mark.parametrize(
    "target",
    [
        replace(FINE, condition="outdated"),
        replace(FINE, verdict="unverified"),
        replace(FINE, outdated="the lock has changed"),
    ],
)
def test_one_target_is_enough(target: TargetStatus) -> None:
    assert overall(FINE, target) == 1


def test_the_error_of_a_target_comes_first() -> None:
    assert overall(FINE, failed=True) == LockError("damaged").exit_code


def test_the_verdict_of_an_environment_that_was_deleted_does_not_hold(applied: Bench) -> None:
    for path in (applied.own / "envs").iterdir():
        path.unlink() if path.is_symlink() else shutil.rmtree(path)
    status = applied.run("status", "spec.yaml")
    assert status.returncode == 1
    assert "local, gone, .provision/envs/spec.local" in status.stdout
    words = " ".join(status.stdout.split())
    assert "verified at" in words
    assert ", but the environment no longer exists" in words


def test_a_verdict_that_new_packages_voided_is_none(applied: Bench) -> None:
    """As Ctrl-C leaves it between the installation and the verification that follows."""
    path = applied.own / "state.json"
    state = loads(path.read_text(), "state.json")
    record = {**state.parts("spec/local")["verification"], "verdict": ""}
    path.write_text(dumps(state.with_record("spec/local", "verification", record)))
    status = applied.run("status", "spec.yaml")
    assert status.returncode == 1
    assert status.stdout.splitlines()[-1].strip() == "not verified"
