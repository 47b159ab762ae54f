"""Sandboxes side by side: each run keeps its services when another one ends or is killed, and
nothing of a run stays behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.sandbox.namespace_booter import NamespaceBooter
from tests.commands.test_workbench_waiting import SPEC, TARGET
from tests.rig import Bench
from tests.support import require

pytest.importorskip("google.cloud.notebooks_v2")
LIMIT_S = 300
TEXT = SPEC + TARGET.format(name="wb")


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def says(process: subprocess.Popen[str], words: str) -> None:
    """Wait until a command has written these words to standard error."""
    assert process.stderr is not None
    seen = []
    while not (seen and words in seen[-1]):
        seen.append(process.stderr.readline())
        assert seen[-1], "".join(seen)


def beside(bench: Bench, name: str) -> Bench:
    """Another project folder, with the same index."""
    folder = bench.folder.with_name(name)
    (folder / "home").mkdir(parents=True)
    return Bench(folder, bench.index)


def processes(folder: Path) -> list[str]:
    """Processes, zombies too, that boot or are machines of a sandbox below a folder, or were."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if str(folder) in words or (state == "Z" and parent == str(os.getpid())):
            found.append(f"{entry.name} {state} {words[:200]}")
    return found


def mounts() -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if "machines" in line]


def needs_machines(tmp_path: Path) -> None:
    why = NamespaceBooter(tmp_path / "nowhere").unavailable_reason()
    require(
        "root",
        os.geteuid() == 0 and not why,
        f"a machine in an isolated root needs root here: {why or 'not root'}",
    )


@pytest.mark.long
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_who_comes_later_keeps_its_services(bench: Bench, ending: signal.Signals) -> None:
    """The first process runs the services; the second one, in the same folder, is in the midst of
    an apply when the first one ends.
    """
    bench.spec(TEXT)
    first = bench.start("sandbox", "up", "--delay", "0.5", "--output-format", "json")
    assert first.stdout is not None
    assert first.stdout.readline()
    second = bench.start("apply", "spec.yaml", "--sandbox", "--yes", "--detach")
    says(second, "request: provision-spec-wb-")
    first.send_signal(ending)
    first.communicate(timeout=LIMIT_S)
    stdout, stderr = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 3, stderr
    assert "is creating its environment" in stdout
    assert not (bench.own / "sandbox/endpoints.json").exists()
    assert bench.run("status", "spec.yaml", "--sandbox").returncode == 1
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("folders", ["one", "four"])
def test_four_runs_at_once(bench: Bench, folders: str) -> None:
    """Four specs, in one folder or in four: one after the other ends, and each has made its
    instance.
    """
    projects = [
        bench if folders == "one" else beside(bench, f"project-{number}") for number in range(4)
    ]
    running = []
    for number, project in enumerate(projects):
        project.spec(TEXT, f"spec{number}.yaml")
        running.append(
            project.start(
                "apply",
                f"spec{number}.yaml",
                "--sandbox",
                "--yes",
                "--detach",
                "--lock-timeout",
                str(LIMIT_S),
            )
        )
    for number, process in enumerate(running):
        stdout, stderr = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 3, stderr
        assert f"provision-spec{number}-wb-" in stdout
    for number, project in enumerate(projects):
        assert project.run("destroy", f"spec{number}.yaml", "--sandbox", "--yes").returncode == 0


@pytest.mark.root
@pytest.mark.long(after=1)
@pytest.mark.parametrize("ending", [None, signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_detached_run_stays(
    bench: Bench, tmp_path: Path, ending: signal.Signals | None
) -> None:
    needs_machines(tmp_path)
    bench.spec(TEXT)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = ["--detach"] if ending is None else []
    process = bench.start(
        "apply",
        "spec.yaml",
        "--sandbox",
        "--yes",
        *words,
        TMPDIR=str(temporary),
        PROVISION_TEST_FORK="0",
    )
    if ending is not None:
        says(process, "is ACTIVE")
        until(
            lambda: processes(bench.folder / ".provision/sandbox/machines"), "no machine was booted"
        )
        process.send_signal(ending)
    process.communicate(timeout=LIMIT_S)
    if ending is signal.SIGKILL:  # its machine notices that nobody holds its channel any more
        until(lambda: not processes(bench.folder / ".provision"), "a machine stays")
    assert processes(bench.folder / ".provision") == []
    assert mounts() == []
    assert ending is signal.SIGKILL or list(temporary.iterdir()) == []
    assert bench.run("destroy", "spec.yaml", "--sandbox", "--yes").returncode == 0
    assert not list((bench.own / "sandbox").glob("machines/*"))


def test_what_a_hanging_operation_is_seen_by(bench: Bench) -> None:
    bench.spec(TEXT)
    process = bench.start("apply", "spec.yaml", "--sandbox", "--yes", "--fault", "hang")
    says(process, "capacity: waiting")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    assert bench.run("orphans", "spec.yaml", "--sandbox").returncode == 0
    assert "incomplete, provision-spec-wb-" in bench.run("status", "spec.yaml", "--sandbox").stdout
