"""`provision init`: a first spec, and the schema of the language for editors."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from provision.cli.app import DEFAULT_SPEC, FILE, OUTPUT_FORMAT, examples


@click.command(epilog=examples("provision init", "provision init specs/mine.yaml"))
@click.argument("path", type=FILE, default=Path(DEFAULT_SPEC))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@OUTPUT_FORMAT
def init(path: Path, *, force: bool, output_format: str) -> int:
    """Write a commented first spec."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import init as command

    command.init(path, RealSystem(), console.print_note, force=force)
    if output_format == "json":
        console.print_json({"version": 1, "wrote": str(path)}, indent=None)
        return 0
    quoted = shlex.quote(str(path))
    console.print_text(
        f"wrote {path}\nnext: provision lint {quoted}, then provision apply {quoted}"
    )
    return 0
