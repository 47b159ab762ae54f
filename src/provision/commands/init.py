"""Write a first spec that a person can read, change and apply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from provision.assets import find_asset
from provision.commands.import_files import ImportResult, check_output_path, import_files
from provision.commands.schema import schema_text
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import Refused
from provision.imports.formats import find_importable_names

SCHEMA_NAME = "provision.schema.json"
"""The schema for editors: next to the spec and under version control, so that clones have it."""
_SCHEMA_LINE = f"# yaml-language-server: $schema={SCHEMA_NAME}\n"
"""The first line of templates/spec.yaml, by which editors find the schema."""
_SCHEMA_MARK = b'"title": "Spec"'
_MAX_SCHEMA_BYTES = 1 << 20


def init(path: Path, system: System, progress: ProgressCallback, *, force: bool = False) -> Path:
    """Write the commented starter spec and its schema for editors, and return its path.

    Raises:
        UsageError: the name is not that of a spec.
        Refused: a file exists and `force` is not given.
    """
    _check_paths(path, system, force=force)
    text = find_asset("templates/spec.yaml").read_text(encoding="utf-8")
    _write(path, text, system, progress)
    return path


def init_from(
    path: Path,
    files: Sequence[Path],
    system: System,
    progress: ProgressCallback,
    *,
    force: bool = False,
) -> ImportResult:
    """Write the spec that follows from files of other tools, and its schema for editors.

    Raises:
        SourceError: a file cannot be read, or its format is not known.
        UsageError: the name is not that of a spec.
        Refused: a file exists and `force` is not given.
    """
    _check_paths(path, system, force=force)
    result = import_files(files, system, out=path, first_line=_SCHEMA_LINE)
    _write(path, result.spec.text, system, progress)
    return result


def find_importable_files(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return the files in the folder of a spec that `provision import` recognizes by name."""
    folder = path.parent
    names = find_importable_names(sorted(reader.list_folder(folder)))
    return tuple(str(folder / name) for name in names)


def _check_paths(path: Path, reader: Reader, *, force: bool) -> None:
    """Check that the spec and the schema can be written; an earlier schema is replaced."""
    check_output_path(path, reader, force=force)
    schema = path.parent / SCHEMA_NAME
    if reader.exists(schema) and not force:
        text = reader.read(schema, _MAX_SCHEMA_BYTES)
        if _SCHEMA_MARK not in text:
            raise Refused(
                f"{schema} already exists",
                why="it is not a schema that provision wrote",
                hint="rename that file, or replace it with --force",
            )


def _write(path: Path, text: str, system: System, progress: ProgressCallback) -> None:
    system.perform(MakeFolder(path.parent), progress)
    system.perform(WriteFile(path.parent / SCHEMA_NAME, schema_text()), progress)
    system.perform(WriteFile(path, text), progress)
