"""What a run took: the lines at its end, and `report run`."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path

from provision.cli import terminal
from provision.commands.loading import load
from provision.commands.planning import choose
from provision.commands.recounting import newest_record, read_record
from provision.errors import ProvisionError
from provision.world import Machine


def told(record: Path, spec: Path, target: str, world: Machine) -> None:
    """Say on standard error what a run took, as far as anyone reads that."""
    from provision.views import runs

    with suppress(OSError):
        if not world.exists(record):
            terminal.note(f"provision: this run was not recorded ({_because(record, world)}; --no-monitor asks for none)")
            return
        try:
            lines = runs.ending(read_record(record, world))
        except ProvisionError as error:
            lines = [error.what]
        words = f"provision report run {shlex.quote(str(spec))} --target {shlex.quote(target)}"
        for line in (*lines, f"record: {os.path.relpath(record)} (drawn by: {words})"):
            terminal.note(f"provision: {line}")


def _because(record: Path, world: Machine) -> str:
    if not world.platform().startswith("linux"):
        return "only Linux tells what a program takes"
    if not world.writable(record.parent):
        return f"the folder {os.path.relpath(record.parent)} cannot be written to"
    return "what looks at it ended without a record: the disk may be full"


def run(path: Path, target: str | None, *, page: Path | None, form: str) -> int:
    """Show a record as text, JSON, or a page."""
    from provision.effects import WriteFile
    from provision.views import run_page, runs

    world = Machine()
    where = path
    if path.suffix != ".json":
        loaded = load(path, world)
        (name,) = choose(loaded, (target,) if target else (), everything=False)
        where = newest_record(loaded, name, world)
    record = read_record(where, world)
    if page is not None:
        world.perform(WriteFile(page, run_page.page(record), 0o600), terminal.note)
        terminal.note(f"wrote {page}")
    elif form == "json":
        terminal.show(json.dumps(record, indent=1, sort_keys=True))
    else:
        terminal.say("\n".join([*runs.text(record, terminal.width()), f"record     {os.path.relpath(where)}"]))
    return 0
