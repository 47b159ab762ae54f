"""`provision lint` of many files, which several processes check."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.commands.lint import lint
from provision.commands.lint_options import LintOptions
from provision.commands.lint_processes import from_sent, to_sent
from provision.commands.shared.configuration import NO_CONFIGURATION
from provision.diagnostics import Applicability
from tests import fork_server
from tests.commands.test_lint_forms import BAD, GOOD
from tests.conftest import ROOT

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")
COUNT = 100
OUTPUTS = """
import os, sys
from pathlib import Path
from provision.adapters import RealSystem
from provision.cli.lint_output import FORMATS, print_findings, print_changes_and_errors
from provision.commands.lint import lint
from provision.commands.lint_options import LintOptions

counted = []
def count():
    counted.append(1)
    return int(sys.argv[1])

words = (Path("specs"), Path("gone.yaml"))
note = lambda text: print("note:", text)
result = lint(words, RealSystem(), note, LintOptions(count_processes=count))
for name in (*FORMATS, "github"):
    print(f"=#= {name}")
    print_findings(result, name, os.environ, result.exit_code)
    sys.stdout.flush()
print("=#= errors", result.exit_code, len(counted))
sys.stdout.flush()
os.dup2(1, 2)
print_changes_and_errors(result, "text", dry=False)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    texts = [path.read_text() for path in sorted(ROOT.glob("tests/golden/*/spec.yaml"))[:8]]
    texts += [path.read_text() for path in sorted(ROOT.glob("specs/*.yaml"))]
    texts += [GOOD, BAD, "a: [1\n", f"{GOOD}---\n{BAD}", BAD + "# provision: ignore PKG001 old\n"]
    for number in range(COUNT):
        name = f"provision-{number:03}.yaml"
        (folder / name).write_text(texts[number % len(texts)])
    for number in range(15):
        (folder / f"pod-{number}.yaml").write_text("apiVersion: v1\nkind: Pod\n")
    (folder / "provision-link.yaml").symlink_to("/etc/hostname")
    other = folder / "team"
    other.mkdir()
    (other / "provision.toml").write_text('[lint]\nfail-on = "warning"\n')
    (other / "provision-a.yaml").write_text(BAD)
    (other / "provision-base.yaml").write_text(GOOD)
    (other / "provision-b.yaml").write_text("extends: provision-base.yaml\ngpu: T4\n")
    return tmp_path


def outputs(project: Path, processes: int) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", OUTPUTS, str(processes)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("=#= ")
    return {part.split(maxsplit=1)[0]: part for part in parts}


@linux
def test_output_is_the_same_as_that_of_one_process(
    project: Path, subtests: pytest.Subtests
) -> None:
    alone, shared = outputs(project, 1), outputs(project, 3)
    assert len(alone) == 11
    for name, text in alone.items():
        with subtests.test(name):
            assert shared[name] == text
    assert alone["note:"].count("note: skipped specs/pod-") == 10
    assert "skipped 5 more files" in alone["note:"]
    assert alone["errors"].startswith("errors 2 1\n")
    for name in ("provision-link.yaml", "gone.yaml"):
        assert name in alone["errors"]


@linux
def test_an_invalid_configuration_is_reported_when_its_turn_comes(project: Path) -> None:
    (project / "specs/team/provision.toml").write_text("[lint]\nfail-on = 1\n")
    ends = []
    for processes in ("1", "3"):
        line = [sys.executable, "-c", OUTPUTS, processes]
        done = subprocess.run(line, cwd=project, capture_output=True, text=True, timeout=600)
        assert done.returncode == 1
        assert "UsageError" in done.stderr
        ends.append(done.stdout)
    assert ends[0] == ends[1]
    assert "note: skipped specs/pod-0.yaml" in ends[0]


def test_a_file_that_has_changed_is_not_restored(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(BAD)
    documents = lint((path,), RealSystem(), print).documents
    sent = to_sent(documents)
    assert sent is not None
    restored = from_sent(path, sent, tmp_path, NO_CONFIGURATION, RealSystem())
    assert restored is not None
    assert restored[0].diagnostics == documents[0].diagnostics
    assert restored[0].source.files == documents[0].source.files
    path.write_text(BAD + "# more\n")
    assert from_sent(path, sent, tmp_path, NO_CONFIGURATION, RealSystem()) is None
    path.unlink()
    assert from_sent(path, sent, tmp_path, NO_CONFIGURATION, RealSystem()) is None


@pytest.mark.parametrize("changes", [{"applied": frozenset({Applicability.SAFE}), "dry": True}, {}])
def test_few_files_and_fixes_use_one_process(
    project: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    def count() -> int:
        raise AssertionError

    monkeypatch.chdir(project)
    word = Path("specs" if changes else "specs/team")
    lint((word,), RealSystem(), print, LintOptions(**changes, count_processes=count))


def start_lint(project: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """Start the command on many files, and return it with its children."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one usable core")
    for number in range(800):
        shutil.copy(ROOT / "specs/hf-trainer.yaml", project / f"specs/many-{number}.yaml")
    process = subprocess.Popen(
        [*fork_server.ARGV, "lint", "specs"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    children: list[int] = []
    while not children:
        assert process.poll() is None
        time.sleep(0.01)
        text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        children = list(map(int, text.split()))
    return process, children


@linux
def test_ctrl_c_ends_every_process(project: Path) -> None:
    process, children = start_lint(project)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == "interrupted"
    assert "Traceback" not in stderr
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


@linux
def test_a_process_that_is_killed_is_an_error(project: Path) -> None:
    process, children = start_lint(project)
    os.kill(children[0], signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (2, "")
    assert "error: a process of this command ended before it had finished" in stderr
    assert "it was killed by SIGKILL" in stderr
