"""A run that is killed right after it asked for an instance: the next one goes on with that
instance, and there is never a second.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from tests.commands.test_workbench_texts import SPEC, known
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

_LIMIT_S = 300


def instances(bench: Bench) -> dict[str, Any]:
    """The instances in the sandbox's store by their full name, as another process sees them."""
    path = bench.folder / ".provision/sandbox/store.json"
    return (
        {name: one["body"] for name, one in json.loads(path.read_text())["instances"].items()}
        if path.exists()
        else {}
    )


def shown(bench: Bench, running: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait until the store shows an instance, and return what it shows."""
    end = time.monotonic() + _LIMIT_S
    while time.monotonic() < end and running.poll() is None:
        if found := instances(bench):
            return found
        time.sleep(0.005)
    raise AssertionError(running.communicate()[1])


@pytest.fixture
def killed(bench: Bench) -> dict[str, Any]:
    """The one instance that a killed run has left; nobody has seen it ready."""
    bench.spec(SPEC.format(more="nat: true"))
    # The run is still looking for what it has made when it is killed.
    running = bench.start("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "hidden:1000")
    found = shown(bench, running)
    running.kill()
    running.communicate(timeout=_LIMIT_S)
    assert running.returncode == -9
    return found


def test_apply_adopts_the_instance_of_a_run_that_was_killed(
    bench: Bench, killed: dict[str, Any]
) -> None:
    assert set(killed) <= known(bench), "the intent was on disk before the call"
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
    again = bench.run("apply", "spec.yaml", "--sandbox", "--yes", "--detach")
    assert again.returncode == 3, again.stderr
    assert {name: one["id"] for name, one in instances(bench).items()} == {
        name: one["id"] for name, one in killed.items()
    }
    assert set(instances(bench)) == known(bench)
    assert [one["state"] for one in instances(bench).values()] == ["ACTIVE"]
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0


def test_destroy_removes_the_instance_of_a_run_that_was_killed(
    bench: Bench, killed: dict[str, Any]
) -> None:
    assert killed
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    assert instances(bench) == {}
    assert known(bench) == set()
