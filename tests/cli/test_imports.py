"""The modules that a command loads, listed in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.rig import Bench, small_spec

LIST = """
import contextlib, io, json, sys
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    from provision.cli import run_cli
    run_cli(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""
# What a virtual environment may load by itself, at every start of its interpreter: the hooks of its
# .pth files.
STARTUP = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def modules(code: str, folder: Path, *arguments: str, **variables: str) -> set[str]:
    """Return the modules that a program has imported."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env=variables or None,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def packages(code: str, folder: Path, *arguments: str, **variables: str) -> set[str]:
    """Return the top-level names of the modules that a program has imported."""
    return {name.split(".")[0] for name in modules(code, folder, *arguments, **variables)}


def third_party(folder: Path, *arguments: str, **variables: str) -> set[str]:
    found = packages(LIST, folder, *arguments, **variables) - packages(STARTUP, folder, **variables)
    # A compiled module may register a module of its compiler's runtime under a name of its own;
    # that loads no file.
    compiled = {name for name in found if name.startswith(("_cython_", "cython_runtime"))}
    return (
        found
        - set(sys.stdlib_module_names)
        - compiled
        - {"provision"}
        - {name for name in found if name.startswith("_sysconfigdata")}
    )


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("lint", "--help"), ("apply", "--help")]
)
def test_help_loads_click_alone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert third_party(tmp_path, *arguments) == {"click"}


def test_lint_loads_no_more_than_a_spec_needs(tmp_path: Path) -> None:
    shutil.copy(ROOT / "specs/quickstart.yaml", tmp_path / "spec.yaml")
    found = third_party(tmp_path, "lint", "spec.yaml")
    assert {"yaml", "pydantic", "packaging"} <= found
    assert not found & {"rich", "jinja2", "uv", "google"}


def test_fit_loads_no_rules_and_no_drivers(tmp_path: Path) -> None:
    text = (ROOT / "specs/quickstart.yaml").read_text()
    (tmp_path / "spec.yaml").write_text(f"{text}\nrequires: {{ram: 1GiB}}\n")
    loaded = modules(LIST, tmp_path, "fit", "spec.yaml")
    assert "provision.verification.fit" in loaded
    areas = {name.split(".")[2] for name in loaded if name.startswith("provision.rules.")}
    assert not areas & {"cuda", "gpu", "memory", "packages", "python", "training"}
    assert not [name for name in loaded if name.startswith("provision.targets")]
    assert not loaded & {"rich", "jinja2", "uv"}


def test_lint_of_a_spec_without_findings_draws_no_frames(tmp_path: Path) -> None:
    shutil.copy(ROOT / "specs/quickstart.yaml", tmp_path / "spec.yaml")
    done = subprocess.run(
        [sys.executable, "-c", LIST, "lint", "spec.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "provision.views.diagnostics.text" in loaded
    assert "provision.views.diagnostics.full_finding" not in loaded


def test_a_lock_that_holds_is_checked_without_the_rules(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    assert not third_party(bench.folder, "lock", "--check", "spec.yaml", **bench.environment()) & {
        "rich",
        "jinja2",
        "uv",
        "google",
        "rattler",
    }


def test_lock_loads_nothing_of_what_makes_and_verifies(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = subprocess.run(
        [sys.executable, "-c", LIST, "lock", "spec.yaml"],
        cwd=bench.folder,
        env=bench.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "provision.commands.lock" in loaded
    assert not loaded & {
        "provision.commands.apply",
        "provision.commands.verify",
        "provision.targets",
        "provision.state",
        "provision.views.report.html",
    }


def test_a_plan_loads_nothing_that_judges(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", LIST, "plan", "spec.yaml"],
        cwd=bench.folder,
        env=bench.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "provision.targets.local.preflight" in loaded
    assert not loaded & {
        "provision.agent.probe.judging",
        "provision.agent.probe.expectations",
        "provision.adapters.code_folder",
    }


def test_frames_know_nothing_of_the_view_that_draws_them() -> None:
    program = (
        "import sys, provision.views.diagnostics.full_finding; "
        "print('provision.views.diagnostics.text' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True
        ).stdout.strip()
        == "False"
    )


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "arguments",
    [
        ("lint",),
        ("schema",),
        ("lock", "--check"),
        ("lock",),
        ("plan",),
        ("status",),
        ("destroy", "--yes"),
    ],
)
def test_pages_are_loaded_by_what_verifies_only(bench: Bench, arguments: tuple[str, ...]) -> None:
    bench.spec(small_spec("alpha"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    path = ("spec.yaml",) if arguments != ("schema",) else ()
    found = third_party(bench.folder, *arguments, *path, **bench.environment())
    assert "click" in found
    assert not found & {"jinja2", "markupsafe"}


def test_a_page_loads_jinja2(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    assert "jinja2" in third_party(
        bench.folder, "apply", "spec.yaml", "--yes", **bench.environment()
    )
