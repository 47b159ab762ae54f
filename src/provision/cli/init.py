"""`provision init`: writes a starter spec, and the schema of specs for editors."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from provision.cli.app import DEFAULT_SPEC, FILE, OUTPUT_FORMAT, examples


@click.command(
    epilog=examples(
        "provision init",
        "provision init specs/mine.yaml",
        "provision init --from requirements.txt",
    )
)
@click.argument("path", type=FILE, default=Path(DEFAULT_SPEC))
@click.option(
    "--from",
    "files",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="Take packages and settings from this file (see provision import); repeatable.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@OUTPUT_FORMAT
def init(path: Path, *, files: tuple[Path, ...], force: bool, output_format: str) -> int:
    """Write a starter spec with comments."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import init as command

    system = RealSystem()
    if files:
        from provision.cli.import_files import print_import

        result = command.init_from(path, files, system, console.print_note, force=force)
        return print_import(result, path, output_format)
    others = command.find_importable_files(path, system)
    command.init(path, system, console.print_note, force=force)
    if output_format == "json":
        console.print_json({"version": 1, "wrote": str(path)}, indent=None)
        return 0
    quoted = shlex.quote(str(path))
    console.print_text(
        f"wrote {path}, and {command.SCHEMA_NAME} for editors\n"
        f"next: provision lint {quoted}, then provision apply {quoted}"
    )
    if others:
        named = " ".join(f"--from {shlex.quote(name)}" for name in others)
        console.print_note(
            f"to take packages from the files here: provision init {quoted} --force {named}"
        )
    return 0
