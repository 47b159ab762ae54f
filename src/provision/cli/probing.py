"""probe: the probe itself, to be carried by hand."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import click

from provision.cli.options import FORM, examples, spec_or_default


@click.group(epilog=examples("provision probe export carry/", "provision probe export carry/ --spec specs/hf-trainer.yaml --target workbench"))
def probe() -> None:
    """Take the verification to a machine that provision cannot reach."""


@probe.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--spec", type=click.Path(path_type=Path), metavar="SPEC", help="The spec that the machine is held against; default: provision.yaml.")
@click.option("--target", "-t", metavar="NAME", help="Target of the spec: a probe is for one.")
@FORM
def export_(folder: Path, spec: Path | None, target: str | None, form: str) -> int:
    """Write the probe, what it is asked and how to run it into FOLDER."""
    from provision.cli import terminal
    from provision.commands.loading import load
    from provision.commands.probe import PARTS, export, refuse_foreign, the_one
    from provision.world import Machine

    world, path = Machine(), spec_or_default(spec)
    refuse_foreign(folder, world)
    loaded = load(path, world)
    name = the_one(loaded, target)
    exported = export(folder, loaded, name, world, terminal.note)
    if form == "json":
        files = [str(folder / part) for part in PARTS]
        terminal.show(json.dumps({"version": 1, "target": name, "files": files, "run": exported.run, "then": exported.home}, indent=1))
        return 0
    terminal.say(f"wrote        {', '.join(PARTS)} in {os.path.relpath(folder)}, for {exported.place.address}")
    terminal.say(f"there        cd {shlex.quote(folder.name)} && {exported.run}")
    terminal.say("             (PYTHON: the environment's own, 3.10 or newer)")
    terminal.say(f"here         {exported.home}")
    return 0
