"""What is in the wheel and the sdist: all that is needed, and nothing that only lay about."""

from __future__ import annotations

import email
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from provision import __version__
from tests.packaging.conftest import ROOT, Built

INFO = f"provision_ml-{__version__}.dist-info"


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def text(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


def below(folder: Path) -> set[str]:
    """The files below a folder, without what is hidden or made by running."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        path.as_posix()
        for path in files
        if not any(
            part.startswith((".", "__pycache__")) or part.endswith(".egg-info")
            for part in path.parts
        )
    }


def test_the_wheel_holds_the_package_its_assets_and_its_licence_and_nothing_else(
    built: Built,
) -> None:
    package = {
        f"provision/{name}"
        for name in below(ROOT / "src/provision")
        if not name.startswith("facts/tables/")
    }
    assets = {
        f"provision/_assets/{folder}/{name}"
        for folder in ("templates", "specs")
        for name in below(ROOT / folder)
    }
    info = {
        f"{INFO}/{name}"
        for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }
    assert names(built.wheel) == package | assets | info
    assert {
        "provision/py.typed",
        "provision/facts/compiled.json",
        "provision/facts/on_demand/symptoms.json",
    } <= names(built.wheel)
    profiles = {
        f"provision/_assets/specs/builtin/{name}.yaml"
        for name in ("deepspeed", "huggingface-cuda", "huggingface-trainer", "peft-qlora")
    }
    assert {"provision/_assets/templates/report.html.j2", *profiles} <= names(built.wheel)


@pytest.mark.long
def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(
    built: Built, wheel_of_sdist: Path
) -> None:
    assert names(wheel_of_sdist) == names(built.wheel)
    for name in names(built.wheel) - {f"{INFO}/RECORD"}:
        with zipfile.ZipFile(built.wheel) as ours, zipfile.ZipFile(wheel_of_sdist) as theirs:
            assert ours.read(name) == theirs.read(name), name


def test_the_sdist_holds_what_development_needs_and_no_litter(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers()}
        assert not any(member.issym() or member.islnk() for member in archive.getmembers())
    wanted = {
        "pyproject.toml",
        "Makefile",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "templates/spec.yaml",
        "specs/quickstart.lock",
    }
    assert wanted <= held
    assert {f"tests/{name}" for name in below(ROOT / "tests")} <= held
    for name in held:
        assert not any(
            part in (".provision", ".venv", ".cache", "__pycache__", "dist", ".git")
            for part in name.split("/")
        ), name
        assert not name.endswith(("huge.py", "junk", ".pyc", ".egg-info/PKG-INFO")), name


def test_the_metadata_says_who_we_are(built: Built) -> None:
    metadata = email.message_from_string(text(built.wheel, f"{INFO}/METADATA"))
    assert metadata["Name"] == "provision-ml"
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Apache License" in text(built.wheel, f"{INFO}/licenses/LICENSE")
    assert text(built.wheel, f"{INFO}/entry_points.txt").split() == [
        "[console_scripts]",
        "provision",
        "=",
        "provision.cli:run_cli",
    ]
    assert "Root-Is-Purelib: true" in text(built.wheel, f"{INFO}/WHEEL")
    assert "Tag: py3-none-any" in text(built.wheel, f"{INFO}/WHEEL")


def test_the_base_install_brings_neither_torch_nor_google(built: Built) -> None:
    metadata = email.message_from_string(text(built.wheel, f"{INFO}/METADATA"))
    required = [Requirement(line) for line in metadata.get_all("Requires-Dist") or []]
    base = {
        requirement.name
        for requirement in required
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    }
    assert base == {"click", "jinja2", "packaging", "pydantic", "pyyaml", "rich", "uv"}


def test_the_wheel_is_small(built: Built) -> None:
    # More than the text of this project compresses to; an environment or a cache would be far above
    # it.
    assert built.wheel.stat().st_size < 3_000_000
