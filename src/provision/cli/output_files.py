"""Files that the command line names for a result."""

from __future__ import annotations

from pathlib import Path

from provision.cli import console
from provision.effects.local import WriteFile
from provision.effects.system import System


def write_output_file(path: Path, text: str, system: System, mode: int = 0o600) -> None:
    """Write a result to a file, and name the file on standard error."""
    system.perform(WriteFile(path, text, mode), console.print_note)
    console.print_note(f"wrote {path}")
