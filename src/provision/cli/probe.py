"""`provision probe`: exports the probe for a machine that provision cannot reach."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from provision.cli.app import (
    FILE,
    OUTPUT_FORMAT,
    CommandGroup,
    examples,
    spec_or_default,
    target_option,
)


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "provision probe export carry/",
        "provision probe export carry/ --spec specs/hf-trainer.yaml --target workbench",
    ),
)
def probe() -> None:
    """Export the probe to verify a machine that provision cannot reach."""


@probe.command()
@click.argument("folder", type=FILE)
@click.option(
    "--spec",
    type=FILE,
    metavar="SPEC",
    help="Check the machine against this spec; default: provision.yaml.",
)
@target_option("Check the machine against this target.")
@OUTPUT_FORMAT
def export(folder: Path, *, spec: Path | None, target: str | None, output_format: str) -> int:
    """Write the probe, its expectations, and instructions for running it to FOLDER."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import probe as command
    from provision.commands.shared.load import load_spec
    from provision.commands.shared.target_selection import select_target

    system = RealSystem()
    command.check_output_folder(folder, system)
    loaded = load_spec(spec_or_default(spec), system)
    name = select_target(loaded, target)
    exported = command.export(folder, loaded, name, system, console.print_note)
    if output_format == "json":
        console.print_document(
            target=name,
            files=[str(folder / file) for file in command.EXPORTED_FILES],
            run=exported.run,
            then=exported.import_command,
        )
        return 0
    files, address = ", ".join(command.EXPORTED_FILES), exported.context.address
    console.print_row("wrote", f"{files} in {os.path.relpath(folder)}, for {address}")
    console.print_row("run there", f"cd {shlex.quote(folder.name)} && {exported.run}")
    console.print_row("", "(PYTHON: the interpreter of the environment, 3.10 or newer)")
    console.print_row("import here", exported.import_command)
    return 0
