"""`provision probe`: the probe as files for a machine that provision cannot reach."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from provision.cli.options import OUTPUT_FORMAT, examples, spec_or_default


@click.group(
    epilog=examples(
        "provision probe export carry/",
        "provision probe export carry/ --spec specs/hf-trainer.yaml --target workbench",
    )
)
def probe() -> None:
    """Take the verification to a machine that provision cannot reach."""


@probe.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="SPEC",
    help="The spec that the machine is held against; default: provision.yaml.",
)
@click.option("--target", "-t", metavar="NAME", help="Target of the spec: a probe is for one.")
@OUTPUT_FORMAT
def export(folder: Path, *, spec: Path | None, target: str | None, output_format: str) -> int:
    """Write the probe, what it is asked and how to run it into FOLDER."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import probe as command
    from provision.commands.shared.load import load_spec

    system, path = RealSystem(), spec_or_default(spec)
    command.check_output_folder(folder, system)
    loaded = load_spec(path, system)
    name = command.select_single_target(loaded, target)
    exported = command.export(folder, loaded, name, system, console.print_note)
    if output_format == "json":
        console.print_json(
            {
                "version": 1,
                "target": name,
                "files": [str(folder / file) for file in command.EXPORTED_FILES],
                "run": exported.run,
                "then": exported.import_command,
            }
        )
        return 0
    files, address = ", ".join(command.EXPORTED_FILES), exported.context.address
    console.print_row("wrote", f"{files} in {os.path.relpath(folder)}, for {address}")
    console.print_row("there", f"cd {shlex.quote(folder.name)} && {exported.run}")
    console.print_row("", "(PYTHON: the environment's own, 3.10 or newer)")
    console.print_row("here", exported.import_command)
    return 0
