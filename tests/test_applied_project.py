"""A copied project is one that was applied where it is."""

from __future__ import annotations

import pytest

from tests.rig import Bench


def test_a_copy_is_current_and_verified_and_can_be_destroyed(applied: Bench) -> None:
    planned = applied.run("plan", "spec.yaml", "--detailed-exitcode")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "then quick verification" not in planned.stdout
    status = applied.run("status", "spec.yaml")
    assert status.returncode == 0, status.stdout + status.stderr
    verified = applied.run("verify", "spec.yaml")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert applied.run("destroy", "spec.yaml", "--yes").returncode == 0
    assert not applied.own.exists()


@pytest.mark.parametrize("number", [1, 2])
def test_what_a_test_does_to_its_copy_is_in_no_other(applied: Bench, number: int) -> None:
    (module,) = (applied.own / "envs/spec.local/lib").glob(
        "python*/site-packages/alpha/__init__.py"
    )
    assert "broken" not in module.read_text()
    with module.open("a") as file:  # in place: a hard link would carry it into every other copy
        file.write(f"# broken by {number}\n")
