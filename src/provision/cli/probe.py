"""probe: the probe itself, to be carried by hand."""

from __future__ import annotations

import json
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


@probe.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="SPEC",
    help="The spec that the machine is held against; default: provision.yaml.",
)
@click.option("--target", "-t", metavar="NAME", help="Target of the spec: a probe is for one.")
@OUTPUT_FORMAT
def export_(folder: Path, spec: Path | None, target: str | None, form: str) -> int:
    """Write the probe, what it is asked and how to run it into FOLDER."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.probe import (
        EXPORTED_FILES,
        check_output_folder,
        export,
        select_single_target,
    )
    from provision.commands.shared.load import load_spec

    world, path = RealSystem(), spec_or_default(spec)
    check_output_folder(folder, world)
    loaded = load_spec(path, world)
    name = select_single_target(loaded, target)
    exported = export(folder, loaded, name, world, console.print_note)
    if form == "json":
        files = [str(folder / part) for part in EXPORTED_FILES]
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    "target": name,
                    "files": files,
                    "run": exported.run,
                    "then": exported.import_command,
                },
                indent=1,
            )
        )
        return 0
    console.print_text(
        f"wrote        {', '.join(EXPORTED_FILES)} in {os.path.relpath(folder)}, for "
        f"{exported.context.address}"
    )
    console.print_text(f"there        cd {shlex.quote(folder.name)} && {exported.run}")
    console.print_text("             (PYTHON: the environment's own, 3.10 or newer)")
    console.print_text(f"here         {exported.import_command}")
    return 0
