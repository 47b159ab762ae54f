"""provision capture: one file that describes an environment, for diff and for notebooks."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from provision import __version__
from provision.agent import capture as program
from provision.agent import capture_paths
from provision.agent.probe.machine_info import collect_machine_info
from provision.commands.capture import cell_text
from provision.verification.diff.snapshot import CAPTURE_SCHEMA, read_snapshot
from tests import fork_server

SECRET = "s3cr3t-v4lue"


def provision(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), **variables}
    command = [*fork_server.ARGV, *words]
    return fork_server.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=120
    )


def test_schema_and_version_are_those_of_provision() -> None:
    assert program.SCHEMA == CAPTURE_SCHEMA
    assert {"name": "provision", "version": __version__} == program.TOOL


def test_readings_equal_those_of_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    captured = program.capture_environment()
    described: dict[str, Any] = collect_machine_info(dict(os.environ))["readings"]
    common = {key for key in captured["readings"] if key in described}
    exact = sorted(key for key in common if "free_bytes" not in key)
    assert captured["unread"] == []
    assert len(exact) >= 10
    assert {key: captured["readings"][key] for key in exact} == {
        key: described[key] for key in exact
    }


@pytest.mark.long
def test_diff_reads_two_captures_and_names_the_variable(tmp_path: Path) -> None:
    python = ("--python", sys.executable)
    first = provision("capture", *python, "-o", "a.json", cwd=tmp_path, MY_API_KEY=SECRET)
    second = provision("capture", *python, "-o", "b.json", cwd=tmp_path, PYTHONOPTIMIZE="1")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "provision diff A.json B.json" in first.stderr
    text = (tmp_path / "a.json").read_text()
    assert "MY_API_KEY" in text
    assert SECRET not in text
    found = provision("diff", "a.json", "b.json", cwd=tmp_path)
    assert found.returncode == 1
    assert "PYTHONOPTIMIZE" in found.stdout.splitlines()[0]


def test_the_cell_runs_alone_and_writes_the_same_schema(tmp_path: Path) -> None:
    cell = tmp_path / "cell.py"
    cell.write_text(cell_text())
    done = subprocess.run(
        [sys.executable, "-I", str(cell)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    content = (tmp_path / "capture.json").read_bytes()
    assert json.loads(done.stdout) == json.loads(content)
    assert json.loads(content)["schema"] == CAPTURE_SCHEMA
    assert read_snapshot(content, "capture.json", "cell").packages


def test_the_cell_prints_the_capture_if_the_working_folder_is_gone(tmp_path: Path) -> None:
    (tmp_path / "cell.py").write_text(cell_text())
    (tmp_path / "gone").mkdir()
    code = (
        "import os, pathlib, runpy\n"
        f"os.chdir({str(tmp_path / 'gone')!r})\n"
        f"os.rmdir({str(tmp_path / 'gone')!r})\n"
        f"exec(compile(pathlib.Path({str(tmp_path / 'cell.py')!r}).read_text(), 'cell', 'exec'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    document = json.loads(done.stdout)
    assert document["unread"] == ["folders", "shadowed"]
    assert "shadowed" not in document
    assert document["packages"]
    assert done.stderr == "capture.json was not written: No such file or directory\n"


def captured(cwd: Path, **variables: str) -> dict[str, Any]:
    done = provision("capture", "--python", sys.executable, cwd=cwd, **variables)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_files_of_the_working_folder_that_hide_modules_are_named(tmp_path: Path) -> None:
    names = ("webcolors.py", "turtle.py", "mine.py", "tests.py")  # provision imports none of these
    for name in (*names, "hypothesis/__init__.py", "rich/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    where = {"folder": "the working folder"}
    found = captured(tmp_path)

    assert found["shadowed"] == [
        {"module": "hypothesis", "file": "hypothesis/", **where},
        {"module": "turtle", "file": "turtle.py", **where},
        {"module": "webcolors", "file": "webcolors.py", **where},
    ]
    assert found["unread"] == []
    assert captured(tmp_path / "rich")["shadowed"] == []


def test_a_folder_of_pythonpath_that_hides_a_module_is_named_without_its_path(
    tmp_path: Path,
) -> None:
    (tmp_path / "shared-s3cr3t").mkdir()
    (tmp_path / "shared-s3cr3t/webcolors.py").write_text("")
    done = provision(
        *("capture", "--python", sys.executable),
        cwd=tmp_path,
        PYTHONPATH=str(tmp_path / "shared-s3cr3t"),
    )
    shadowed = json.loads(done.stdout)["shadowed"]
    assert shadowed == [{"module": "webcolors", "file": "webcolors.py", "folder": "PYTHONPATH"}]
    assert "s3cr3t" not in done.stdout


def test_diff_names_the_file_that_hides_a_module(tmp_path: Path) -> None:
    clean, hidden = tmp_path / "clean", tmp_path / "hidden"
    for folder in (clean, hidden):
        folder.mkdir()
    (hidden / "webcolors.py").write_text("")
    (tmp_path / "trace.txt").write_text(
        "AttributeError: partially initialized module 'webcolors' has no attribute 'name_to_hex' "
        "(most likely due to a circular import)\n"
    )
    for folder in (clean, hidden):
        out = str(tmp_path / f"{folder.name}.json")
        done = provision("capture", "--python", sys.executable, "-o", out, cwd=folder)
        assert done.returncode == 0, done.stderr
    done = provision("diff", "clean.json", "hidden.json", "--error", "trace.txt", cwd=tmp_path)

    assert done.returncode == 1
    first = " ".join(done.stdout.split("differs")[0].split())
    assert "the likeliest cause of the error: on hidden, webcolors.py in the working" in first
    assert "is imported instead of the module webcolors" in first


def test_folders_are_described_without_their_paths(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    readings = captured(tmp_path, HF_HOME=str(tmp_path / "file/x"), TMPDIR="/proc")["readings"]

    assert readings["folder.working"] == "writable"
    assert readings["folder.home"] == "writable"
    assert readings["folder.hf_cache"] == "not a folder"
    assert readings["folder.tmp"].startswith("not writable: ")
    assert readings["folder.torch_home"] in ("writable", "not a folder", "can be made")
    assert not any(str(tmp_path) in str(value) for value in readings.values())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ext4", "local disk"),
        ("overlay", "local disk"),
        ("fuse.fuse-overlayfs", "local disk"),
        ("tmpfs", "memory"),
        ("nfs4", "network file system (nfs4)"),
        ("fuse.sshfs", "network file system (fuse.sshfs)"),
        ("fuse.drive", "drive mount (fuse.drive)"),
        ("fuse.gcsfuse", "drive mount (fuse.gcsfuse)"),
    ],
)
def test_the_kind_of_file_system_is_that_of_the_nearest_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, expected: str
) -> None:
    working = tmp_path / "my drive/run"
    working.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    point = str(tmp_path / "my drive").replace(" ", "\\040")
    mounts = f"/dev/sda1 / ext4 rw 0 0\nmine {point} {kind} rw 0 0\ndamaged\n"
    (tmp_path / "proc/self/mounts").write_text(mounts.replace("damaged\n", ""))
    monkeypatch.chdir(working)
    readings = capture_paths.read_folders(str(tmp_path))

    assert readings["folder.working_on"] == expected
    assert readings["folder.working"] == "writable"
    assert readings["folder.home_on"] == "local disk"
    (tmp_path / "proc/self/mounts").write_text(mounts)
    assert capture_paths.read_folders(str(tmp_path))["folder.content_on"] is None


def test_a_capture_imports_no_package_and_takes_less_than_two_seconds(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "torch").mkdir(parents=True)
    (site / "torch/__init__.py").write_text("raise SystemExit('torch was imported')")
    (site / "torch/version.py").write_text("__version__ = '2.6.0+cu124'\ncuda: str = '12.4'\n")
    (site / "torch-2.6.0.dist-info").mkdir()
    (site / "torch-2.6.0.dist-info/METADATA").write_text("Name: torch\nVersion: 2.6.0\n\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cell = tmp_path / "cell.py"
    cell.write_text(cell_text())
    environ = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, str(cell)], cwd=tmp_path, env=environ, capture_output=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert json.loads(done.stdout)["readings"]["torch.cuda"] == "12.4"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


@pytest.mark.parametrize(
    ("marker", "applies"),
    [
        ("", True),
        (' extra == "torch"', False),
        (' platform_system == "Nothing"', False),
        (' sys_platform != "nothing"', True),
        (" python_version < '3.8'", False),
        (' python_version >= "3.8" and sys_platform == "nothing"', False),
        (' python_version>="4"', False),
        (' python_version != "3.9"', True),
        (f' sys_platform != "{sys.platform}"', False),
        (f' python_version<="{sys.version_info[0]}.{sys.version_info[1]}"', True),
        (f' python_version == "{sys.version_info[0]}.{sys.version_info[1]}.*"', True),
        (f' python_version > "{sys.version_info[0]}.{sys.version_info[1]}"', False),
        (' python_version >= "3.8" or sys_platform == "nothing"', True),
        (' unknown_name == "x"', True),
        (" ((((", True),
    ],
)
def test_a_requirement_counts_if_its_marker_can_be_true(marker: str, applies: bool) -> None:
    assert program._applies(marker) is applies


def test_the_cell_is_small() -> None:
    assert len(cell_text().encode()) < 20 * 1024


def test_print_cell_prints_the_cell(tmp_path: Path) -> None:
    done = provision("capture", "--print-cell", cwd=tmp_path)
    assert done.stdout.strip() == cell_text().strip()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--python", "nowhere/python"), "cannot start"),
        (("-o", "there.json"), "already exists"),
        (("-o", "nowhere/a.json"), "there is no folder nowhere"),
        (("-o", "/proc/a.json"), "/proc/a.json"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    (tmp_path / "there.json").write_text("kept")
    done = provision("capture", *words, cwd=tmp_path)
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "there.json").read_text() == "kept"


@pytest.mark.long(after=4)
@pytest.mark.parametrize("command", ["capture", "env"])
@pytest.mark.parametrize(
    ("program", "name", "words"),
    [
        (
            "exit 3",
            "tool",
            "tool is not a Python interpreter\n  why: it did not print a Python version",
        ),
        ('cat "$1"', "tool", "tool is not a Python interpreter\n"),
        ("kill -SEGV $$", "tool", "tool is not a Python interpreter\n"),
        # A Python that is too old or broken is called one.
        ("echo python 3.4", "tool", "tool cannot "),
        ("echo no python here >&2; exit 127", "python3.9", "exit code 127: no python here\n"),
        ("kill -SEGV $$", "python3", "ended by signal 11"),
    ],
)
def test_a_program_that_is_not_a_python_is_called_so(
    tmp_path: Path, command: str, program: str, name: str, words: str
) -> None:
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    done = provision(command, "--python", str(path), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "select one with --python" in done.stderr or "select a Python with" in done.stderr


def test_a_program_of_the_system_is_not_a_python(tmp_path: Path) -> None:
    done = provision("capture", "--python", "/bin/ls", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: /bin/ls is not a Python interpreter\n")
    assert "exit code" not in done.stderr


def test_a_folder_is_no_output_file(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    done = provision("capture", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "out is a folder" in done.stderr
    assert "out/capture.json" in done.stderr
