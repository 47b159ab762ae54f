"""Write a first spec that a person can read, change and apply."""

from __future__ import annotations

from pathlib import Path

from provision.assets import find_asset
from provision.commands.schema import schema_text
from provision.effects.local import MakeFolder, WriteFile
from provision.effects.system import ProgressCallback, System
from provision.errors import Refused, UsageError


def init(path: Path, system: System, progress: ProgressCallback, *, force: bool = False) -> Path:
    """Write the commented starter spec and its schema for editors, and return its path.

    Raises:
        UsageError: the name is not that of a spec.
        Refused: a file exists and `force` is not given.
    """
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(
            f"{path} is no name for a spec",
            why="a spec's name ends in .yaml or .yml",
            hint="try `provision init provision.yaml`",
        )
    if system.exists(path) and not force:
        raise Refused(
            f"{path} exists already", hint="name another file, or use --force to replace it"
        )
    editor = path.parent / ".provision"
    system.perform(MakeFolder(editor, 0o700), progress)
    system.perform(WriteFile(editor / ".gitignore", "*\n", 0o600), progress)
    system.perform(WriteFile(editor / "spec.schema.json", schema_text()), progress)
    system.perform(
        WriteFile(path, find_asset("templates/spec.yaml").read_text(encoding="utf-8")), progress
    )
    return path
