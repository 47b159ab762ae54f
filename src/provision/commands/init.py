"""Write a first spec that a person can read, change and apply."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from provision.assets import find_asset
from provision.commands.import_files import ImportResult, check_output_path, import_files
from provision.commands.schema import schema_text
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, Reader, System
from provision.imports.formats import find_importable_names

_SCHEMA_LINE = "# yaml-language-server: $schema=.provision/spec.schema.json\n"
"""The first line of templates/spec.yaml, by which editors find the schema."""


def init(path: Path, system: System, progress: ProgressCallback, *, force: bool = False) -> Path:
    """Write the commented starter spec and its schema for editors, and return its path.

    Raises:
        UsageError: the name is not that of a spec.
        Refused: a file exists and `force` is not given.
    """
    check_output_path(path, system, force=force)
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
    check_output_path(path, system, force=force)
    result = import_files(files, system, out=path, first_line=_SCHEMA_LINE)
    _write(path, result.spec.text, system, progress)
    return result


def find_importable_files(path: Path, reader: Reader) -> tuple[str, ...]:
    """Return the files in the folder of a spec that `provision import` recognizes by name."""
    folder = path.parent
    names = find_importable_names(sorted(reader.list_folder(folder)))
    return tuple(str(folder / name) for name in names)


def _write(path: Path, text: str, system: System, progress: ProgressCallback) -> None:
    editor = path.parent / ".provision"
    system.perform(MakeFolder(editor, 0o700), progress)
    system.perform(WriteFile(editor / ".gitignore", "*\n", 0o600), progress)
    system.perform(WriteFile(editor / "spec.schema.json", schema_text()), progress)
    system.perform(WriteFile(path, text), progress)
