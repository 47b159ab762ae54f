"""A Python that is not on this machine: what the real uv says of why it cannot install it comes to
the person, with what to do.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.adapters.uv.toolchain import install_python, why_not_downloadable
from provision.commands.shared.load import load_spec
from provision.commands.shared.sandbox_spec import build_sandbox_spec
from provision.effects.local import InstallPython
from provision.errors import ExternalError, NetworkError, ProvisionError
from tests.rig import Bench, small_spec

MIRROR = {"UV_PYTHON_INSTALL_MIRROR": "http://127.0.0.1:9/nowhere", "UV_HTTP_RETRIES": "0"}


def refused(tmp_path: Path, minor: str = "3.14", **variables: str) -> ProvisionError:
    environment = {
        **os.environ,
        "UV_PYTHON_INSTALL_DIR": str(tmp_path / "pythons"),
        **MIRROR,
        **variables,
    }
    with pytest.raises(ProvisionError) as caught:
        install_python(InstallPython(minor), environment, lambda _: None)
    assert f"uv could not install Python {minor}" in caught.value.what
    assert f"install Python {minor} yourself, or change `python`" in caught.value.hint
    return caught.value


def test_without_network_the_hint_names_a_mirror(tmp_path: Path) -> None:
    error = refused(tmp_path)
    assert isinstance(error, NetworkError)
    assert "127.0.0.1:9" in error.why
    assert "UV_PYTHON_INSTALL_MIRROR" in error.hint


def test_a_folder_that_cannot_be_made_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = refused(tmp_path, UV_PYTHON_INSTALL_DIR=str(tmp_path / "file/pythons"))
    assert isinstance(error, ExternalError)
    assert "failed to create directory" in error.why
    assert "UV_PYTHON_INSTALL_DIR" in error.hint


def test_pythons_of_pyenv_are_found_although_uv_does_not_search_them(tmp_path: Path) -> None:
    for version in ("3.99.9", "3.99.10", "3.98.1", "3.99-dev", "2.7.18"):
        (tmp_path / f"home/.pyenv/versions/{version}/bin").mkdir(parents=True)
        (tmp_path / f"home/.pyenv/versions/{version}/bin/python3").touch()
    (tmp_path / "home/.pyenv/versions/3.97.1").mkdir()
    kept = {name: value for name, value in os.environ.items() if name != "PYENV_ROOT"}
    environment = {**kept, "HOME": str(tmp_path / "home")}
    found = RealSystem(environment).find_pythons("3.99").selected
    assert found is not None
    assert found.version == "3.99.10"
    assert found.path == tmp_path / "home/.pyenv/versions/3.99.10/bin/python3"
    again = RealSystem(environment).find_pythons("3.99").selected
    assert again is found, "a system with the same variables does not search again"
    shutil.rmtree(tmp_path / "home/.pyenv/versions/3.99.10")
    other = RealSystem(environment).find_pythons("3.99").selected
    assert other is not None
    assert other.version == "3.99.9"
    versions = tmp_path / "home/.pyenv"
    missing = RealSystem({**kept, "PYENV_ROOT": str(versions)}).find_pythons("3.97")
    assert missing.selected is None
    assert [python.version for python in missing.installed][-2:] == ["3.99.9", "3.98.1"]


def test_the_device_of_a_sandbox_has_a_python_that_its_uv_finds(tmp_path: Path) -> None:
    spec = tmp_path / "workbench-l4.yaml"
    shutil.copy(Path(__file__).parents[2] / "specs/workbench-l4.yaml", spec)
    python = tmp_path / "home/.pyenv/versions/3.12.99/bin/python3"
    python.parent.mkdir(parents=True)
    python.touch()
    kept = {name: value for name, value in os.environ.items() if name != "PYENV_ROOT"}
    system = RealSystem(
        {
            **kept,
            "HOME": str(tmp_path / "home"),
            "PATH": str(tmp_path / "empty"),
            "UV_PYTHON_INSTALL_DIR": str(tmp_path / "managed"),
        }
    )
    found = system.find_pythons("3.12").selected
    assert found is not None
    assert found.path == python
    loaded = load_spec(spec, system)
    assert loaded.spec.python == "3.12"
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert build_sandbox_spec(loaded, system).spec.python == running


def test_a_version_that_uv_does_not_know(tmp_path: Path) -> None:
    assert "No download found" in refused(tmp_path, "3.99").why


def test_a_home_that_cannot_be_used_is_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "UV_"))
    }
    found = why_not_downloadable("3.14", {**kept, "HOME": str(tmp_path / "file")})
    assert found.startswith("uv cannot list its downloads: error: ")
    assert str(tmp_path / "file") in found


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("option", "variables"), [("--offline", {}), ("", {"UV_PYTHON_DOWNLOADS": "never"})]
)
def test_plan_names_what_keeps_uv_from_fetching_it(
    bench: Bench, option: str, variables: dict[str, str]
) -> None:
    missing = next(
        (
            minor
            for minor in ("3.14", "3.13", "3.12")
            if RealSystem(bench.environment()).find_pythons(minor).selected is None
        ),
        None,
    )
    if missing is None:
        pytest.skip("every Python is on this machine")
    spec = bench.spec(small_spec("alpha"))
    spec.write_text(
        "\n".join(
            f'python: "{missing}"' if line.startswith("python:") else line
            for line in spec.read_text().splitlines()
        )
    )
    environment = {"UV_PYTHON_DOWNLOADS": "manual", **variables}
    assert bench.run("lock", "spec.yaml", **environment).returncode == 0
    done = bench.run("plan", "spec.yaml", *([option] if option else []), **environment)
    assert done.returncode == 2, done.stdout + done.stderr
    assert (
        f"{option or 'UV_PYTHON_DOWNLOADS=never'} prevents uv from downloading one" in done.stderr
    )
