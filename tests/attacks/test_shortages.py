"""What a machine has too little of is said, and is no bug."""

from __future__ import annotations

import errno
import json
import shlex
import subprocess
import sys

import pytest

from provision.cli.main import _resource_shortage
from provision.targets.colab.notebook import dumps
from tests.rig import Bench, small_spec


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("limit", ["-n 6", "-n 8"])
def test_too_few_descriptors_are_said(bench: Bench, limit: str) -> None:
    bench.spec(small_spec("alpha"))
    assert "cannot open enough files" in limited(bench, limit)


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError(errno.ENOMEM, "x"), caused(ValueError("x"), MemoryError())]
)
def test_too_little_memory_is_said(error: Exception) -> None:
    what, hint = _resource_shortage(error) or ("", "")
    assert "memory" in what
    assert hint


def test_other_errors_are_no_shortage() -> None:
    assert _resource_shortage(OSError(errno.EACCES, "x")) is None
    assert _resource_shortage(caused(ValueError("x"), KeyError("y"))) is None


def limited(bench: Bench, limit: str) -> str:
    """Return what a plan says with too little of something."""
    command = (
        f"ulimit {limit}; exec "
        f"{shlex.join([sys.executable, '-m', 'provision', 'plan', 'spec.yaml', '--output-format', 'json'])}"  # noqa: E501
    )
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=bench.folder,
        env=bench.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["error"]["help"]
    return done.stderr


def test_half_a_surrogate_pair_in_a_notebook_stays_as_it_is() -> None:
    notebook = {"cells": [{"source": ["print('\ud83d', 'é', '😀')"]}]}
    written = dumps(notebook).encode()
    assert json.loads(written) == notebook
    assert "é" in written.decode()
