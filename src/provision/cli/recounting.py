"""What a run took: the lines at its end, and `report run`."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path

from provision.cli import terminal
from provision.commands.loading import load_spec
from provision.commands.planning import select_targets
from provision.commands.recounting import latest_run_record, read_run_record
from provision.errors import ProvisionError
from provision.world import RealSystem


def print_run_summary(record: Path, spec: Path, target: str, world: RealSystem) -> None:
    """Say on standard error what a run took, as far as anyone reads that."""
    from provision.views import runs

    with suppress(OSError):
        if not world.exists(record):
            terminal.print_note(f"provision: this run was not recorded ({_missing_record_reason(record, world)}; --no-monitor asks for none)")
            return
        try:
            lines = runs.render_ending(read_run_record(record, world))
        except ProvisionError as error:
            lines = [error.what]
        words = f"provision report run {shlex.quote(str(spec))} --target {shlex.quote(target)}"
        for line in (*lines, f"record: {os.path.relpath(record)} (drawn by: {words})"):
            terminal.print_note(f"provision: {line}")


def _missing_record_reason(record: Path, world: RealSystem) -> str:
    if not world.platform().startswith("linux"):
        return "only Linux tells what a program takes"
    if not world.is_writable(record.parent):
        return f"the folder {os.path.relpath(record.parent)} cannot be written to"
    return "what looks at it ended without a record: the disk may be full"


def show_run_record(path: Path, target: str | None, *, page: Path | None, form: str) -> int:
    """Show a record as text, JSON, or a page."""
    from provision.effects import WriteFile
    from provision.views import run_page, runs

    world = RealSystem()
    where = path
    if path.suffix != ".json":
        loaded = load_spec(path, world)
        (name,) = select_targets(loaded, (target,) if target else (), everything=False)
        where = latest_run_record(loaded, name, world)
    record = read_run_record(where, world)
    if page is not None:
        world.perform(WriteFile(page, run_page.render_page(record), 0o600), terminal.print_note)
        terminal.print_note(f"wrote {page}")
    elif form == "json":
        terminal.print_result(json.dumps(record, indent=1, sort_keys=True))
    else:
        terminal.print_text("\n".join([*runs.render_lines(record, terminal.width()), f"record     {os.path.relpath(where)}"]))
    return 0
