"""`provision apply` with `via: colab-cli`, end to end: the real command, Google's own program, the real cell in a real kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.colab_cli.rig import Account
from tests.rig import Bench

SPEC = """\
gpu: none
python: "3.12"
packages: []
training: {framework: none}
targets:
  colab: {kind: colab, via: colab-cli, runtime: latest, isolation: venv}
"""
NOTHING = "https://nothing.invalid/simple"


@pytest.fixture
def place(account: Account, tmp_path: Path) -> Bench:
    """A folder with a spec, and an account."""
    folder = tmp_path / "project"
    (folder / "home").mkdir(parents=True)
    made = Bench(folder, NOTHING, account.variables())
    made.spec(SPEC)
    return made


def resources(place: Bench) -> dict[str, dict[str, object]]:
    return dict(json.loads((place.own / "state.json").read_text())["resources"])


def test_verified_and_nothing_left(place: Bench, account: Account) -> None:
    done = place.run("apply", "spec.yaml", "--yes", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout, done.stderr)
    print(place.run("plan", "spec.yaml").stdout, place.run("status", "spec.yaml"))
    print(place.run("apply", "spec.yaml", "--yes", timeout=300))
    print(place.run("apply", "spec.yaml", "--yes", "--verify","--keep", timeout=300))
    print(place.run("destroy", "spec.yaml", "--yes", timeout=300), account.plane)
    print(list(place.folder.iterdir()))
