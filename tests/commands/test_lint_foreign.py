"""Files that are not specs: one error that says what the file is and which command reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import fork_server
from tests.rules.notebooks import to_notebook

REPORT = Path(__file__).parent / "earlier_version/notebook/provision/reports/spec.colab/report.json"
RUN = '{"schema": "provision.run/1", "samples": []}\n'
LOCK = '{\n  "schema": "provision.lock/2",\n<<<<<<< ours\n  "digest": "a",\n=======\n'
BROKEN_SPEC = "gpu: none\npackages: [\n"


def provision(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        [*fork_server.ARGV, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("name", "text", "description", "command"),
    [
        ("deps.txt", "torch==2.4.0\nnumpy>=2\n", "list of requirements", "check deps.txt"),
        ("deps", "# ours\n\ntorch==2.4.0\n", "list of requirements", "check deps"),
        ("deps.yaml", "torch==2.4.0\nnumpy\n", "requirements", "check deps-requirements.txt"),
        ("environment.yml", "dependencies:\n- numpy\n", "conda", "import environment.yml"),
        ("poetry.lock", "[[package]]\n", "", "poetry export"),
        ("nb.json", to_notebook("1"), "a notebook", "lint nb.ipynb"),
        ("package.json", '{"name": "x", "version": "1", "dependencies": {}}', "Node.js", ""),
        ("package-lock.json", '{"lockfileVersion": 3, "packages": {}}', "npm lock file", ""),
        ("compose.yaml", "services:\n  web:\n    image: x\n", "Docker Compose", ""),
        ("ci.yml", "on: [push]\njobs: {}\n", "GitHub Actions", ""),
        ("pod.yaml", "apiVersion: v1\nkind: Pod\n", "Kubernetes", ""),
        ("train.py", "import torch\nprint(torch)\n", "a Python script", ""),
        (
            "trace.txt",
            "Traceback (most recent call last):\nImportError: no\n",
            "error",
            "why trace.txt",
        ),
        ("data.csv", "a,b\n1,2\n", "none of a spec's fields", ""),
        ("list.json", "[1, 2]\n", "none of a spec's fields", ""),
        ("spec.lock", LOCK, "the lock file of a spec", "lock --check spec.yaml"),
        ("record.json", RUN, "the record of a run", "report run record.json"),
        ("state.json", '{"schema": "provision.state/1"}', "provision wrote (state)", ""),
        ("report.json", REPORT.read_text(), "verification report", "report report.json"),
    ],
)
def test_a_file_of_another_kind_is_one_error(
    tmp_path: Path, name: str, text: str, description: str, command: str
) -> None:
    (tmp_path / name).write_text(text)
    done = provision(tmp_path, "lint", name)
    assert (done.returncode, done.stdout) == (1, "")
    what, *rest = done.stderr.splitlines()
    assert what == f"error: {name} is not a spec"
    assert [line.split(":")[0].strip() for line in rest] == ["why", "help"]
    assert description in rest[0]
    assert f"provision {command}`" in rest[1] or command in rest[1]
    document = json.loads(provision(tmp_path, "lint", name, "--output-format", "json").stdout)
    assert (document["diagnostics"], len(document["errors"])) == ([], 1)


def test_captures_and_descriptions_are_compared(tmp_path: Path) -> None:
    assert provision(tmp_path, "capture", "-o", "capture.json").returncode == 0
    described = provision(tmp_path, "env", "--output-format", "json").stdout
    (tmp_path / "env.json").write_text(described)
    for name in ("capture.json", "env.json"):
        done = provision(tmp_path, "lint", name)
        assert done.returncode == 1
        assert f"`provision diff {name} OTHER.json`" in done.stderr
    assert "provision import capture.json" in provision(tmp_path, "lint", "capture.json").stderr


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\0\0", b"PK\x03\x04\x14\0\x08\0"])
def test_a_binary_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    done = provision(tmp_path, "lint", "model.bin")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1] == "  why: it is a binary file"
    # What has the name of a spec is read as one, and the error has a position.
    (tmp_path / "spec.yaml").write_bytes(content)
    done = provision(tmp_path, "lint", "spec.yaml")
    assert done.returncode == 1
    assert "spec.yaml:1:" in done.stdout


def test_a_lock_that_is_larger_than_a_spec_may_be(tmp_path: Path) -> None:
    document = {"schema": "provision.lock/2", "packages": ["x" * 100] * 20_000}
    (tmp_path / "big.lock").write_text(json.dumps(document))
    assert "the lock file of a spec" in provision(tmp_path, "lint", "big.lock").stderr
    (tmp_path / "big.yaml").write_text("# " + "x" * (1 << 20))
    assert "larger than 1 MiB" in provision(tmp_path, "lint", "big.yaml").stderr


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("spec.yaml", "dependencies: [torch]\ngpu: none\n", "SPC001"),
        ("spec.txt", BROKEN_SPEC, "YML001"),
        ("spec.json", '{"gpu": "none", "package": []}', "SPC001"),
        ("spec.yaml", "gpus: none\npackges: [torch]\n", "SPC001"),
        ("spec.yaml", "just words\n", "YML008"),
        ("spec.yaml", "- torch==2.4.0\n", "YML008"),
        ("spec.yaml", "apiVersion: provision/v1\nkind: local\ndependencies: []\n", "SPC001"),
    ],
)
def test_a_spec_with_errors_has_findings(
    tmp_path: Path, name: str, text: str, finding: str
) -> None:
    (tmp_path / name).write_text(text)
    done = provision(tmp_path, "lint", name)
    assert done.returncode == 1
    assert f"[{finding}]" in done.stdout


@pytest.mark.parametrize("verb", ["lock", "plan", "apply"])
def test_commands_that_need_a_spec_say_the_same(tmp_path: Path, verb: str) -> None:
    (tmp_path / "capture.json").write_text('{"schema": "provision.capture/1"}')
    (tmp_path / "environment.yml").write_text("dependencies:\n- numpy\n")
    for name, command in (("capture.json", "diff"), ("environment.yml", "check")):
        done = provision(tmp_path, verb, name)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {name} is not a spec\n")
        assert f"`provision {command} {name}" in done.stderr


def test_skipped_files_stay_skipped(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text('{"schema": "provision.capture/1"}')
    done = provision(tmp_path, "lint", "--skip-foreign", "capture.json")
    assert done.returncode == 0
    assert "skipped capture.json: it is not a spec" in done.stderr
