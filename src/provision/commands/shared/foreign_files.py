"""Recognizes files that are not specs: what each one is, and the command that reads it."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from provision.errors import ExternalError, SourceError
from provision.spec import Spec
from provision.spelling import format_command

if TYPE_CHECKING:
    from provision.effects.system import Reader
    from provision.source import Source

MAX_FILE_BYTES = 8 << 20
"""Bytes; a report or the lock of a large project has 2 MB (our choice)."""
_HEAD_BYTES = 8192
_YAML = (".yaml", ".yml")
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SCHEMA = re.compile(r"provision\.([a-z.-]+)/\d+")
_SCHEMA_IN_HEAD = re.compile(r'\s*\{\s*"schema"\s*:\s*"provision\.([a-z.-]+)/\d+"')
_NOTEBOOK_KEYS = {"cells", "nbformat"}
_TRACEBACK = "Traceback (most recent call last)"
_SPEC_HINT = "use the path of a spec, such as provision.yaml"
_SPEC_KEYS = frozenset(Spec.model_fields) - {"name", "env"}
"""Keys that only specs have: other tools have files with names and variables too."""
_SPEC_LINE = re.compile(
    rf"^(?:{'|'.join(sorted(_SPEC_KEYS - {'apiVersion'}))})[ \t]*:", re.MULTILINE
)
_COMMON_KEY = re.compile(r"^(gpu|python|packages|targets|extends)[ \t]*:", re.MULTILINE)
_API_VERSION = re.compile(r"""^[\s{]*["']?apiVersion["']?\s*:\s*["']?provision/""", re.MULTILINE)
_SPEC_FILE_NAME = re.compile(r"provision([.-].*)?\.ya?ml")
_OTHER_TOOLS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"lockfileVersion"}), "an npm lock file"),
    (frozenset({"dependencies", "version"}), "a package.json for Node.js"),
    (frozenset({"devDependencies"}), "a package.json for Node.js"),
    (frozenset({"scripts", "version"}), "a package.json for Node.js"),
    (frozenset({"services"}), "a Docker Compose file"),
    (frozenset({"jobs", "on"}), "a GitHub Actions workflow"),
    (frozenset({"repos"}), "a pre-commit configuration"),
    (frozenset({"apiVersion", "kind"}), "a Kubernetes manifest"),
)
"""Keys at the top of files of other tools that no command reads."""


class ForeignFile(NamedTuple):
    """What a file is, such as "an environment capture", and what to do with it."""

    description: str
    hint: str


class NotASpec(SourceError):
    """A file can be read, and is something else than a spec."""


def has_spec_name(path: Path) -> bool:
    """Return whether a file is named provision.yaml, or provision-NAME.yaml."""
    return _SPEC_FILE_NAME.fullmatch(path.name) is not None


def has_spec_keys(text: str) -> bool:
    """Return whether a text has at least two of the keys that most specs have."""
    return len(set(_COMMON_KEY.findall(text))) > 1


def declares_api_version(text: str) -> bool:
    """Return whether a text names our apiVersion."""
    return _API_VERSION.search(text) is not None


def foreign_file_error(path: Path, file: ForeignFile) -> NotASpec:
    """Return the error of a command that needs a spec."""
    return NotASpec(f"{path} is not a spec", why=f"it is {file.description}", hint=file.hint)


def find_import_hint(path: Path) -> str:
    """Return what to do with a file whose name belongs to another tool; "" if it does not."""
    if path.suffix in _YAML:
        return ""
    from provision.imports.formats import OTHER_FILES, find_importable_names

    if hint := OTHER_FILES.get(path.name.lower()):
        return hint
    return _import_hint(path) if find_importable_names((path.name,)) else ""


def identify_file(path: Path, reader: Reader) -> ForeignFile | None:
    """Return what a file is whose name is not that of a spec; None if it may be a spec."""
    from provision.source import read_spec_file

    try:
        documents = read_spec_file(path, reader)
    except SourceError:
        documents = ()
    return identify_documents(path, documents, reader)


def identify_documents(
    path: Path, documents: Sequence[Source], reader: Reader
) -> ForeignFile | None:
    """Return what a file is that has no valid spec; None if it may be a spec with errors.

    Args:
        path: The file.
        documents: Its documents; () if they could not be read.
        reader: Reads the file.
    """
    is_yaml = path.suffix in _YAML
    from provision.source.project_root import find_project_root, refuse_link

    try:
        refuse_link(path, find_project_root(path, reader), reader)
        raw = reader.read(path, MAX_FILE_BYTES)
    except (SourceError, ExternalError):
        return None
    if b"\0" in raw[:_HEAD_BYTES] and not raw.startswith(_MARKS):
        named = is_yaml or path.suffix == ".json"
        return None if named else ForeignFile("a binary file", _SPEC_HINT)
    text = raw.decode("utf-8", errors="replace").removeprefix("\ufeff")
    if file := _identify_our_document(path, text):
        return file
    data = [document.data for document in documents if isinstance(document.data, Mapping)]
    if any(_SPEC_KEYS & set(map(str, part)) for part in data if not _is_of_other_tool(part)):
        return None
    if not text.strip() or (not data and _SPEC_LINE.search(text)):
        return None
    return _identify_yaml(path, text, data) if is_yaml else _identify_other(path, text, data)


def _identify_our_document(path: Path, text: str) -> ForeignFile | None:
    """Return the kind of a document of provision, by its schema."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        document = json.loads(text)
        name = str(document.get("schema", "")) if isinstance(document, dict) else ""
        schema = _SCHEMA.fullmatch(name)
    except (ValueError, RecursionError):
        # Damaged, such as a lock with conflict markers.
        schema = _SCHEMA_IN_HEAD.match(text[:_HEAD_BYTES])
    if schema is None:
        return None
    diff = f"compare it with another capture: `{format_command('diff', path)} OTHER.json`"
    spec = path.with_suffix(".yaml")
    match schema[1]:
        case "capture":
            spec_of = f"or print a spec with its content: `{format_command('import', path)}`"
            return ForeignFile("an environment capture", f"{diff}, {spec_of}")
        case "env":
            return ForeignFile("an environment description from `provision env`", diff)
        case "report":
            show = f"show it with `{format_command('report', path)}`, or "
            return ForeignFile("a verification report", show + diff)
        case "lock":
            check = f"check it against its spec with `{format_command('lock --check', spec)}`"
            return ForeignFile("the lock file of a spec", check)
        case "run":
            show = f"show it with `{format_command('report run', path)}`"
            return ForeignFile("the record of a run", show)
    return ForeignFile(f"a file that provision wrote ({schema[1]})", _SPEC_HINT)


def _identify_yaml(
    path: Path, text: str, data: Sequence[Mapping[str, object]]
) -> ForeignFile | None:
    from provision.imports.formats import detect_format

    file_format = detect_format(path, text) if data else None
    if file_format is not None:
        return ForeignFile(f"a file for another tool ({file_format.name})", _import_hint(path))
    if data:
        return _identify_by_keys(path, data[0])
    first = next(filter(None, map(str.strip, text.splitlines())), "")
    if _is_requirement(text) and not first.startswith(("-", "%")) and "=" in first:
        return _requirements(path)
    return None


def _identify_other(
    path: Path, text: str, data: Sequence[Mapping[str, object]]
) -> ForeignFile | None:
    from provision.imports.formats import REQUIREMENTS, detect_format

    if _TRACEBACK in text:
        hint = f"explain the error with `{format_command('why', path)}`"
        return ForeignFile("a text that contains a Python error", hint)
    file_format = detect_format(path, text)
    if file_format is REQUIREMENTS or (file_format is None and _is_requirement(text)):
        return _requirements(path)
    if file_format is not None:
        return ForeignFile(f"a file for another tool ({file_format.name})", _import_hint(path))
    if path.suffix == ".py":
        return ForeignFile("a Python script", _SPEC_HINT)
    if text.lstrip()[:1] in ("{", "["):
        return _identify_json(path, text)
    if data and (file := _identify_by_keys(path, data[0])):
        return file
    return ForeignFile("a file that has none of a spec's fields", _SPEC_HINT)


def _identify_json(path: Path, text: str) -> ForeignFile | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(document, dict) and (file := _identify_by_keys(path, document)):
        return file
    return ForeignFile("a JSON file that has none of a spec's fields", _SPEC_HINT)


def _identify_by_keys(path: Path, document: Mapping[str, object]) -> ForeignFile | None:
    if document.keys() >= _NOTEBOOK_KEYS:
        notebook = path.with_suffix(".ipynb")
        hint = f"rename it to {notebook}, and check it with `{format_command('lint', notebook)}`"
        return ForeignFile("a notebook", hint)
    if str(document.get("apiVersion", "")).startswith("provision/"):
        return None
    for keys, description in _OTHER_TOOLS:
        if document.keys() >= keys:
            return ForeignFile(description, _SPEC_HINT)
    return None


def _is_of_other_tool(document: Mapping[str, object]) -> bool:
    """Return whether a document has keys of another tool next to those that specs have too."""
    version = str(document.get("apiVersion", "provision/"))
    is_manifest = "kind" in document and not version.startswith("provision/")
    return is_manifest or "lockfileVersion" in document


def _is_requirement(text: str) -> bool:
    from provision.imports.formats import REQUIREMENTS

    return re.match(REQUIREMENTS.sign, text) is not None


def _requirements(path: Path) -> ForeignFile:
    from provision.imports.formats import REQUIREMENTS, detect_format

    hint = _import_hint(path)
    if detect_format(path, "a==1\n") is not REQUIREMENTS:
        renamed = path.with_name(f"{path.stem}-requirements.txt")
        hint = f"rename it to {renamed}, and check it: `{format_command('check', renamed)}`"
    return ForeignFile("a list of requirements", hint)


def _import_hint(path: PurePath) -> str:
    return (
        f"check it as it is with `{format_command('check', path)}`, or print a spec with its "
        f"content: `{format_command('import', path)}`"
    )
