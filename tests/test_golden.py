"""Specs with exactly what `provision lint` says about them; UPDATE_GOLDEN=1 writes it anew, for a
person to read in the diff.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from provision.rules import RULES
from tests import fork_server
from tests.pytorch_rig import PyTorch
from tests.rig import Bench

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.parent for path in GOLDEN.glob("*/spec.yaml"))
ROOT = GOLDEN.parent.parent
EXAMPLES = sorted(
    {*ROOT.glob("specs/*.yaml"), *ROOT.glob("examples/**/*.yaml")}
    - {ROOT / "examples/demo/four-pins.yaml"}
)
"""All but the one by which the tour shows findings; `specs/builtin/` holds parts of specs."""
LOCKED = [case for case in CASES if case.name.startswith("lock-")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lint_says_exactly_this(case: Path) -> None:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")},
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    line = [*fork_server.ARGV, "lint", "spec.yaml"]
    done = fork_server.run(
        line,
        cwd=case,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    path = case / "lint.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == path.read_text(encoding="utf-8")
    assert done.stderr == ""
    assert done.returncode == (1 if "error[" in done.stdout else 0)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("case", LOCKED, ids=lambda case: case.name)
def test_lock_makes_exactly_this(case: Path, bench: Bench, pytorch: PyTorch) -> None:
    """From the rig of PyTorch's indexes and nothing else, without an old lock: the same bytes on
    any machine.
    """
    shutil.copy(case / "spec.yaml", bench.folder / "spec.yaml")
    done = bench.run("lock", "spec.yaml", **pytorch.offline())
    assert done.returncode == 0, done.stderr
    made = {
        "spec.lock": (bench.folder / "spec.lock").read_text(encoding="utf-8"),
        "lock.txt": done.stdout,
    }
    for name, text in made.items():
        if os.environ.get("UPDATE_GOLDEN") == "1":
            (case / name).write_text(text, encoding="utf-8")
        assert text == (case / name).read_text(encoding="utf-8")
    rows = json.loads(made["spec.lock"])["packages"]
    assert all(row["origin"] == "unconfirmed" for row in rows)


@pytest.mark.parametrize("spec", EXAMPLES, ids=lambda spec: spec.stem)
def test_the_examples_have_nothing_wrong_with_them(spec: Path) -> None:
    line = [*fork_server.ARGV, "lint", str(spec), "--output-format", "json"]
    done = fork_server.run(
        line, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["diagnostics"] == []


def test_a_spec_for_a_runtime_that_has_ended_would_be_seen() -> None:
    line = [
        *fork_server.ARGV,
        "lint",
        str(ROOT / "tests/colab/trained.yaml"),
        "--output-format",
        "json",
    ]
    done = fork_server.run(
        line, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
    )
    assert "IMG024" in [one["id"] for one in json.loads(done.stdout)["diagnostics"]]


def test_every_family_of_rules_has_a_case() -> None:
    said = "".join((case / "lint.txt").read_text(encoding="utf-8") for case in CASES)
    families = {rule.id[:3] for rule in RULES} | {"YML", "SPC"}
    assert {family for family in families if f"[{family}" not in said} == set()


def test_the_pins_of_the_first_document() -> None:
    """The build's tag is found, and the three packages that have moved on beneath these pins since;
    the fix says the CUDA version once.
    """
    said = (GOLDEN / "seed-pins" / "lint.txt").read_text(encoding="utf-8")
    assert said.startswith(
        "error[CUD001] local-version-tag: torch==2.0.1+cu118 hard-codes the cu118 build\n --> "
        "spec.yaml:8:5\n"
    )
    assert '11 + cuda: "11.8"' in said
    assert re.findall(r"^\w+\[(\w+)\]", said, re.MULTILINE) == [
        "CUD001",
        "PKG011",
        "PKG010",
        "PKG010",
    ]
    assert "needs numpy<2" in said
    assert "needs pyarrow<21" in said
    assert "needs fsspec<2023.10.0" in said
    assert said.endswith("\nFound 1 error and 3 warnings. [*] 1 fixable with --fix.\n")
