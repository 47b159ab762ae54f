"""Bad questions get one line and exit code 2; single stages run on every promised Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_bad_questions_are_one_line_and_exit_2(
    probe: Path, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    good = tmp_path / "good.json"
    good.write_text(json.dumps(document()), encoding="utf-8")
    files = {
        "absent.json": None,
        "garbled.json": b"{\xff\xfe",
        "list.json": b"[]",
        "schema.json": json.dumps(document(schema="other/9")).encode(),
        "missing.json": json.dumps({"schema": "provision.expectations/1"}).encode(),
        "type.json": json.dumps(document(timeout_s="long")).encode(),
        "precision.json": json.dumps(document(training__precision="fp7")).encode(),
        "package.json": json.dumps(document(packages=["torch"])).encode(),
        "nan.json": json.dumps(document(timeout_s=float("nan"))).encode(),
        "deep.json": b"[" * 100_000,
    }
    questions = []
    for name, content in files.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        questions.append((str(path), str(tmp_path / "report.json"), ()))
    questions += [
        (str(good), "/proc/report.json", ()),
        (str(good), "/no/such/report.json", ()),
        (str(good), str(tmp_path), ()),
        (str(good), str(tmp_path / "r"), ("--only", "Z99")),
    ]
    for expectations, out, more in questions:
        command = [
            sys.executable,
            str(probe),
            "verify",
            "--expectations",
            expectations,
            "--out",
            out,
            *more,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, expectations
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith("probe: ")
        assert not done.stdout
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize("stage", ["host", "packages"])
def test_stdlib_stages_run_alone_on_every_promised_python(
    pythons: list[str],
    probe: Path,
    tmp_path: Path,
    write_expectations: Callable[..., Path],
    stage: str,
) -> None:
    expectations = write_expectations(paths={"data": str(tmp_path)}, env={"A": "1"}, secrets=["T"])
    for python in pythons:
        fragment = tmp_path / "fragment.json"
        command = [
            python,
            "-I",
            "-S",
            str(probe),
            "stage",
            stage,
            "--expectations",
            str(expectations),
            "--out",
            str(fragment),
            "--scratch",
            str(tmp_path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{python}: {done.stderr}"
        found = json.loads(fragment.read_text(encoding="utf-8"))
        assert found["raised"] == {}, python
        assert found["ended"] is True
