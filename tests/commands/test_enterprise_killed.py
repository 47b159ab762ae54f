"""SIGKILL at every call and every file that is put in place, then the same command again: one
template, one job, the right verdict.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from provision.sandbox.serve import serve
from provision.sandbox.store import Store
from tests.commands.test_enterprise_failures import SPEC
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")

PROGRAM = """
import os, signal, sys

number, log = int(sys.argv.pop(1)), open(sys.argv.pop(1), "a")
sys.modules["google.cloud.aiplatform_v1"] = None  # over REST, whose calls Python reports
seen = 0

def count(what):
    global seen
    seen += 1
    print(what, file=log, flush=True)
    if seen == number:
        os.kill(os.getpid(), signal.SIGKILL)

def hook(event, arguments):
    if event == "http.client.send" and bytes(arguments[1][:5]) in (b"POST ", b"PATCH", b"DELET"):
        count(bytes(arguments[1]).partition(b" HTTP/")[0].decode())
    elif event == "os.rename" and ".provision" in str(arguments[1]):
        count(f"file {os.path.basename(str(arguments[1]))}")

sys.addaudithook(hook)
from provision.cli import run_cli
sys.exit(run_cli())
"""
APPLY = ("apply", "spec.yaml", "--sandbox", "--yes")
LIMIT_S = 300


@contextmanager
def services(bench: Bench) -> Iterator[Store]:
    """Run the services in this process, so that jobs outlive a killed command."""
    bench.spec(SPEC)
    with serve(bench.folder / ".provision/sandbox", boot=False) as sandbox:
        assert sandbox.store is not None
        yield sandbox.store


def run(bench: Bench, log: Path, number: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that is killed at its call with a number; 0 never kills it."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(number), str(log), *words],
        cwd=bench.folder,
        env=bench.environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def names(store: Store) -> tuple[dict[str, Any], dict[str, Any]]:
    found = store.snapshot()
    return found["templates"], found["executions"]


@pytest.mark.long(minutes=True)
def test_a_run_that_is_killed_at_any_call(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "calls.txt"
    with services(bench) as store:
        # What is written once, such as the lock, is there before the calls are counted.
        assert bench.run(*APPLY).returncode == 0
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        assert run(bench, log, 0, *APPLY).returncode == 0
        calls = log.read_text().splitlines()
        assert sum("notebookRuntimeTemplates" in call for call in calls) == 1, calls
        assert sum("notebookExecutionJobs" in call for call in calls) == 1, calls
        assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
        for number in range(1, len(calls) + 1):
            about = f"killed at {number}: {calls[number - 1]}"
            killed = run(bench, log, number, *APPLY)
            assert killed.returncode == -9, (about, killed.stderr)
            orphans = bench.run("orphans", "spec.yaml", "--sandbox")
            assert orphans.returncode == 0, (about, orphans.stdout)
            again = run(bench, log, 0, *APPLY)
            assert again.returncode == 0, (about, again.stderr)
            assert again.stdout.startswith("SIMULATED"), about
            templates, jobs = names(store)
            assert (len(templates), len(jobs)) == (1, 1), about
            shown = bench.run("plan", "spec.yaml", "--sandbox", "--output-format", "json")
            assert json.loads(shown.stdout)["verification"]["team"]["needed"] is False, about
            assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0, about
            assert names(store) == ({}, {}), about
            assert store.objects("my-bucket") == (), about
