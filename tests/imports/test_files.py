"""Files of pip, uv, Poetry and pixi: one folder per case with what is read from its files.

`UPDATE_GOLDEN=1` rewrites expected.json; read the diff.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.adapters.system import RealSystem
from provision.diagnostics import Span
from provision.errors import SourceError
from provision.imports import requirements
from provision.imports.formats import (
    FORMATS,
    detect_format,
    find_importable_names,
    load_reader,
)
from provision.imports.model import ImportContext, ImportedFile
from provision.imports.read import MAX_FILE_BYTES, read_files
from provision.lock import LockedFile, LockedPackage
from provision.lock.target_view import TargetView, ViewedPackage
from provision.views.exports.requirements import render_requirements

CASES = Path(__file__).parent / "cases"
GROUPS = (
    "constraints",
    "freeze",
    "pip-list",
    "pixi",
    "pylock",
    "pyproject",
    "requirements",
    "unknown",
    "uv-lock",
)
NAMES = sorted(path.name for path in CASES.iterdir() if path.name.startswith(GROUPS))
SECRET = "s3cr3t"


def describe(file: ImportedFile) -> dict[str, Any]:
    """Return the content as JSON; each part with its line and the text that its span covers."""

    def at(span: Span) -> dict[str, str]:
        text = file.texts[span.file].content[span.start.offset : span.end.offset]
        return {
            "at": f"{span.file}:{span.start.line}:{span.start.column}",
            "text": text.replace(SECRET, "..."),
        }

    return {
        "format": file.format,
        "is_resolved": file.is_resolved,
        "indexes": dict(file.indexes),
        "packages": [
            at(package.span)
            | {
                key: value
                for key, value in package._asdict().items()
                if value and key not in ("name", "span")
            }
            for package in file.packages
        ],
        "settings": [
            at(setting.span) | {"route": list(setting.route), "value": setting.value}
            for setting in file.settings
        ],
        "leftovers": [
            at(part.span) | {"message": part.message, "why": part.why, "help": part.help}
            for part in file.leftovers
        ],
    }


def main_file(folder: Path) -> Path:
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    first = [name for name in names if name in ("requirements.txt", "pyproject.toml")]
    return folder / (first or [name for name in names if name != "provision.toml"])[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_read_as_expected(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(CASES / name / "input", folder)
    (folder / "provision.toml").touch()  # the root that references must not leave
    (tmp_path / "secret.txt").write_text("psutil\n")
    try:
        (file,) = read_files([main_file(folder)], RealSystem())
        actual = describe(file)
    except SourceError as error:
        actual = {"error": error.what, "why": error.why, "hint": error.hint}
    text = json.dumps(actual, indent=2, ensure_ascii=False)
    text = text.replace(f"{folder}/", "").replace(str(folder), "ROOT") + "\n"
    assert SECRET not in text
    expected = CASES / name / "expected.json"
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


def read_text_as(name: str, content: str | bytes, folder: Path) -> ImportedFile:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (file,) = read_files([path], RealSystem())
    return file


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(SourceError) as error:
        read_files([path], RealSystem())
    assert error.value.why == "it is larger than 8 MiB"


def test_a_file_with_too_many_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="more than 50000 lines"):
        read_text_as("requirements.txt", "\n" * 50_001, tmp_path)


@pytest.mark.parametrize(
    "text",
    [f"x = {'[' * 5000}", "x = " + "{a = " * 5000, "a" + ".a" * 30_000 + " = 1"],
    ids=["arrays", "tables", "keys"],
)
def test_toml_that_would_take_long_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        read_text_as("pyproject.toml", text, tmp_path)


def test_a_deep_marker_and_a_long_requirement_are_leftovers(tmp_path: Path) -> None:
    deep = "a ; " + "(" * 900 + "os_name == 'posix'" + ")" * 900
    file = read_text_as("requirements.txt", f"{deep}\n{'b' * 5000}\npsutil\n", tmp_path)
    assert [package.name for package in file.packages] == ["psutil"]
    assert [part.span.start.line for part in file.leftovers] == [1, 2]


@pytest.mark.parametrize("line", ["-e " * 200_000, " " * 200_000 + "x", "x -" + '"a' * 100_000])
def test_a_line_that_would_take_long_is_a_leftover(line: str, tmp_path: Path) -> None:
    file = read_text_as("requirements.txt", f"{line}\npsutil\n", tmp_path)
    assert [package.name for package in file.packages] == ["psutil"]
    assert [part.message for part in file.leftovers] == [f"the line has {len(line)} characters"]


def test_a_folder_is_refused_with_the_names_of_its_files(tmp_path: Path) -> None:
    for name in ("my train.ipynb", "notes.txt", "pyproject.toml", "requirements-dev.txt"):
        (tmp_path / name).touch()
    with chdir(tmp_path), pytest.raises(SourceError) as error:
        read_files([Path()], RealSystem())
    assert error.value.hint == (
        "name the files to read: 'my train.ipynb' pyproject.toml requirements-dev.txt"
    )


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(SourceError, match="cannot read"):
            read_files([path], RealSystem())


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("requirements-dev.txt", "", "requirements file"),
        ("REQUIREMENTS.TXT", "", "requirements file"),
        ("deps.in", "# all\n\ntorch>=2 # x\n", "requirements file"),
        ("63", "torch==2.11.0\n", "requirements file"),
        ("list.txt", "Package Version\n------- -------\n", "requirements file"),
        (
            "requirements.txt",
            "# x\n@EXPLICIT\nhttps://example.org/a.conda\n",
            "conda package list",
        ),
        ("pylock.cuda.toml", "", "pylock.toml"),
        ("train.ipynb", "{}", "notebook"),
        ("gpu.Dockerfile", "FROM x", "Dockerfile"),
        ("conda.yml", "name: x\ndependencies: []\n", "conda environment"),
        ("task.yaml", "resources:\n  accelerators: L4\n", "SkyPilot task"),
        ("dev.yml", "type: dev-environment\n", "dstack configuration"),
        ("spec.yaml", "gpu: L4\npackages: []\n", None),
        ("notes.txt", "Dear all,\n", None),
        ("train.py", "import torch\n", None),
    ],
)
def test_a_format_is_recognized_by_name_and_content(
    name: str, text: str, expected: str | None
) -> None:
    detected = detect_format(Path(name), text)
    assert (detected and detected.name) == expected


def test_files_to_import_are_recognized_by_name() -> None:
    names = ["spec.yaml", "requirements.txt", "notes.txt", "Dockerfile", "uv.lock", "train.py"]
    assert find_importable_names(names) == ("requirements.txt", "Dockerfile", "uv.lock")


def test_every_reader_is_a_function_of_its_module() -> None:
    for file_format in FORMATS:
        assert callable(load_reader(file_format))


RELEASES = st.builds("{}.{}.{}".format, *[st.integers(0, 99)] * 3)
LOCKED = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,5})?", fullmatch=True),
    st.tuples(RELEASES, st.sampled_from(["", "sys_platform == 'linux'"])),
    min_size=1,
)


@given(packages=LOCKED)
def test_an_exported_requirements_file_gives_the_same_packages(
    packages: dict[str, tuple[str, str]],
) -> None:
    viewed = tuple(
        ViewedPackage(
            LockedPackage(name, version, "pypi", (), (), (LockedFile("x.whl", "00" * 32),)), marker
        )
        for name, (version, marker) in packages.items()
    )
    text = render_requirements(TargetView("sha256:0", "3.11", (), viewed, {"pypi": ""}))
    context = ImportContext(Path("/"), RealSystem())
    file = requirements.read_requirements(Path("requirements.txt"), text, context)
    assert [package.requirement for package in file.packages] == [
        f"{name}=={version}" + (' ; sys_platform == "linux"' if marker else "")
        for name, (version, marker) in packages.items()
    ]
    assert {part.message for part in file.leftovers} == {
        "the hashes of requirements are not imported"
    }


@given(text=st.text(alphabet="ab1=<>~!.,;[]()@# -\\\"'\n\r\t$/:{}*+é\u2028", max_size=120))
def test_no_text_makes_a_reader_fail(text: str) -> None:
    context = ImportContext(Path("/nowhere"), RealSystem())
    file = requirements.read_requirements(Path("requirements.txt"), text, context)
    for part in (*file.packages, *file.leftovers):
        assert 0 <= part.span.start.offset <= part.span.end.offset <= len(text)


# These two are not files of the repository: other tools read every pyproject.toml in it.
WRONG_TYPES = """
[project]
name = 1
requires-python = "three"
dependencies = "torch"
[project.optional-dependencies]
dev = [1, "pytest", []]
[tool.uv]
sources = []
index = {url = 1}
[tool.poetry]
dependencies = [1]
source = "x"
[tool.pixi]
feature = 1
"""


def test_values_of_wrong_types_are_ignored(tmp_path: Path) -> None:
    file = read_text_as("pyproject.toml", WRONG_TYPES, tmp_path)
    assert [package.requirement for package in file.packages] == ["pytest"]
    messages = [part.message for part in file.leftovers]
    assert messages == ["the Python version three is not imported"]


def test_versions_of_thousands_of_digits_are_leftovers(tmp_path: Path) -> None:
    digits = "9" * 5000
    text = f"""
[project]
requires-python = ">={digits}"
dependencies = ["a=={digits}"]
[tool.poetry.dependencies]
b = "^{digits}"
"""
    file = read_text_as("pyproject.toml", text, tmp_path)
    assert [package.requirement for package in file.packages] == ["b"]
    assert [part.span.start.line for part in file.leftovers] == [3, 4, 6]


def test_broken_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not valid TOML") as error:
        read_text_as("pyproject.toml", "[project\n", tmp_path)
    assert "line 1" in error.value.why
