"""Files of conda, containers, tasks and notebooks: one folder per case with what is read.

`UPDATE_GOLDEN=1` rewrites expected.json; read the diff.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from provision.adapters.system import RealSystem
from provision.diagnostics import Span
from provision.errors import SourceError
from provision.imports import conda_files, container_files, dockerfile, notebook, task_files
from provision.imports.formats import detect_format, load_reader
from provision.imports.model import FormatReader, ImportContext, ImportedFile, ImportedPackage

CASES = Path(__file__).parent / "cases"
READERS: Mapping[str, FormatReader] = {
    "environment.yml": conda_files.read_environment,
    "environment.yaml": conda_files.read_environment,
    "packages.txt": conda_files.read_package_list,
    "cog.yaml": container_files.read_cog,
    "devcontainer.json": container_files.read_devcontainer,
    "Dockerfile": dockerfile.read,
    "Containerfile": dockerfile.read,
    "train.Dockerfile": dockerfile.read,
    "task.yaml": task_files.read_skypilot,
    ".dstack.yml": task_files.read_dstack,
    "train.ipynb": notebook.read,
}
GROUPS = ("conda", "cog", "devcontainer", "dockerfile", "dstack", "notebook", "skypilot")
NAMES = sorted(path.name for path in CASES.iterdir() if path.name.startswith(GROUPS))


def read_case(name: str, line_break: str = "\n") -> ImportedFile:
    path = find_main_file(name)
    text = path.read_text(encoding="utf-8").replace("\n", line_break)
    return READERS[path.name](path, text, ImportContext(path.parent, RealSystem()))


def find_main_file(name: str) -> Path:
    """Return the file of a case that is imported; it may name the others."""
    (path,) = (path for path in (CASES / name / "input").iterdir() if path.name in READERS)
    return path


def at(span: Span) -> str:
    return f"{span.file}:{span.start.line}:{span.start.column}"


def describe_package(package: ImportedPackage) -> dict[str, Any]:
    described = {"requirement": package.requirement, "at": at(package.span)}
    usual = {"manager": "pip", "index": None, "is_exact": False, "is_constraint": False}
    for key, value in usual.items():
        if getattr(package, key) != value:
            described[key] = getattr(package, key)
    return described


def describe(content: ImportedFile) -> dict[str, Any]:
    """Return the content as JSON, with positions in place of spans."""
    return {
        "format": content.format,
        "is_resolved": content.is_resolved,
        "packages": [describe_package(package) for package in content.packages],
        "settings": [
            {"route": list(part.route), "value": part.value, "at": at(part.span)}
            for part in content.settings
        ],
        "indexes": dict(content.indexes),
        "leftovers": [
            {"at": at(part.span), "message": part.message, "why": part.why, "help": part.help}
            for part in content.leftovers
        ],
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_read_as_expected(name: str) -> None:
    actual: Any
    try:
        actual = describe(read_case(name))
    except SourceError as error:
        actual = {"error": error.what, "why": error.why, "hint": error.hint}
    folder = str(find_main_file(name).parent)
    actual = json.loads(json.dumps(actual).replace(f"{folder}/", "").replace(folder, "FOLDER"))
    expected = CASES / name / "expected.json"
    if os.environ.get("UPDATE_GOLDEN"):
        text = json.dumps(actual, indent=2, ensure_ascii=False)
        expected.write_text(f"{text}\n", encoding="utf-8")
    assert actual == json.loads(expected.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_every_span_is_in_a_text_of_the_file(name: str) -> None:
    try:
        content = read_case(name)
    except SourceError:
        return
    spans = [part.span for part in (*content.packages, *content.settings, *content.leftovers)]
    for span in spans:
        text = content.texts[span.file].content
        assert 0 <= span.start.offset <= span.end.offset <= len(text)
        assert text.count("\n", 0, span.start.offset) + 1 == span.start.line


@pytest.mark.parametrize("name", NAMES)
def test_line_breaks_of_windows_change_nothing(name: str) -> None:
    try:
        expected = describe(read_case(name))
    except SourceError:
        return
    assert describe(read_case(name, "\r\n")) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_ends_anywhere_is_read_or_refused(name: str) -> None:
    path = find_main_file(name)
    text = path.read_text(encoding="utf-8")
    context = ImportContext(path.parent, RealSystem())
    refusals = []
    for part in range(20):
        try:
            describe(READERS[path.name](path, text[: len(text) * part // 20], context))
        except SourceError as error:
            refusals.append(error.what)
    assert all(path.name in refusal for refusal in refusals)


@pytest.mark.parametrize("name", NAMES)
def test_the_format_of_a_file_is_recognized(name: str) -> None:
    path = find_main_file(name)
    file_format = detect_format(path, path.read_text(encoding="utf-8"))
    assert file_format is not None
    assert load_reader(file_format) is READERS[path.name]


def test_no_secret_of_a_case_is_in_what_was_read() -> None:
    for name in NAMES:
        try:
            shown = json.dumps(describe(read_case(name)))
        except SourceError:
            continue
        for secret in ("hunter2", "hf_abcdefghijkl", "abc123", "user:secret"):
            assert secret not in shown, name
