"""The exit code of `status`: 0 only if the lock matches and every target is verified."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provision.commands.status import SpecStatus, TargetStatus
from provision.errors import LockError, ProvisionError

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
