"""Installed from the wheel, outside the checkout, the command does its main job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import uv

from provision.assets import list_builtin_profiles
from tests.packaging.conftest import ROOT, outside
from tests.rig import MINOR, Bench, small_spec

pytestmark = pytest.mark.network


def run(
    bare: Path, folder: Path, *words: str, timeout: float = 600, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed `provision` in a folder."""
    environment = {**outside(PATH=f"{bare}:{os.environ['PATH']}"), **variables}
    return subprocess.run(
        ["provision", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )


def test_the_installed_package_is_the_wheel_and_finds_its_assets(
    bare: Path, tmp_path: Path
) -> None:
    code = (
        "import provision, provision.assets as a; print(provision.__file__); "
        "print(a.find_asset('templates/spec.yaml')); print(a.list_builtin_profiles())"
    )
    told = subprocess.run(
        [str(bare / "python"), "-c", code],
        cwd=tmp_path,
        env=outside(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert all(Path(line).is_relative_to(bare.parent) for line in told[:2])
    assert "huggingface-trainer" in told[2]


def test_the_command_and_the_module(bare: Path, tmp_path: Path) -> None:
    from provision import __version__

    assert run(bare, tmp_path, "--version").stdout == f"provision, version {__version__}\n"
    done = subprocess.run(
        [str(bare / "python"), "-m", "provision", "--version"],
        cwd=tmp_path,
        env=outside(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout == f"provision, version {__version__}\n"


def test_init_lint_apply(bare: Path, bench: Bench) -> None:
    variables = {key: value for key, value in bench.environment().items() if key != "PATH"}
    assert run(bare, bench.folder, "init", **variables).returncode == 0
    assert run(bare, bench.folder, "lint", **variables).returncode == 0
    starter = (bench.folder / "provision.yaml").read_text()
    assert starter.startswith("# yaml-language-server: $schema=")
    assert (bench.folder / starter.partition("$schema=")[2].splitlines()[0]).is_file()
    (bench.folder / "provision.yaml").write_text(small_spec("beta"))
    done = run(bare, bench.folder, "apply", "--yes", **variables)
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stdout
    assert (bench.own / "reports/provision.local/report.html").is_file()
    assert (
        run(bare, bench.folder, "run", "--", "python", "-c", "import beta", **variables).returncode
        == 0
    )
    assert run(bare, bench.folder, "destroy", "--yes", **variables).returncode == 0
    assert not bench.own.exists()
    assert (bench.folder / "provision.schema.json").is_file(), "init wrote it, not apply"


@pytest.mark.parametrize("profile", list_builtin_profiles())
def test_a_packaged_profile_can_be_extended(profile: str, bare: Path, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(f'extends: builtin:{profile}\ngpu: L4\npython: "{MINOR}"\n')
    done = run(bare, tmp_path, "lint", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_types_are_seen_by_a_type_checker(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "asks.py").write_text(
        "from provision.spec import Spec\n\ndef name(spec: Spec) -> int:\n    return spec.python\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--python-executable",
            str(bare / "python"),
            "--no-incremental",
            "--cache-dir",
            os.devnull,
            "asks.py",
        ],
        cwd=tmp_path,
        env=outside(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert 'Incompatible return value type (got "str", expected "int")' in done.stdout, (
        done.stdout + done.stderr
    )


@pytest.mark.long
def test_uvx_runs_it_from_the_checkout(tmp_path: Path) -> None:
    command = [
        uv.find_uv_bin(),
        "tool",
        "run",
        "--python",
        sys.executable,
        "--from",
        str(ROOT),
        "provision",
        "--version",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=outside(UV_CACHE_DIR=str(tmp_path / "cache")),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("provision, version ")


@pytest.mark.long
@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64",
    reason="the starter spec names the platform linux-x86_64",
)
def test_the_starter_spec_itself_is_made_and_proven(bare: Path, tmp_path: Path) -> None:
    assert run(bare, tmp_path, "init").returncode == 0
    done = run(bare, tmp_path, "apply", "--yes", timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / ".provision/reports/provision.local/report.json").read_text())
    assert report["verdict"]["result"] == "verified"
    assert report["subject"]["proof"] == "hf-trainer"
