"""What a run took: the lines at its end, and `report run`."""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.shared.load import load_spec
from provision.commands.shared.run_records import latest_run_record, read_run_record
from provision.commands.shared.target_plans import select_targets
from provision.errors import ProvisionError


def print_run_summary(record: Path, spec: Path, target: str, world: RealSystem) -> None:
    """Say on standard error what a run took, as far as anyone reads that."""
    from provision.views import run_record_text

    with suppress(OSError):
        if not world.exists(record):
            console.print_note(
                "provision: this run was not recorded "
                f"({_missing_record_reason(record, world)}; --no-monitor asks for none)"
            )
            return
        try:
            lines = run_record_text.render_ending(read_run_record(record, world))
        except ProvisionError as error:
            lines = [error.what]
        words = f"provision report run {shlex.quote(str(spec))} --target {shlex.quote(target)}"
        for line in (*lines, f"record: {os.path.relpath(record)} (drawn by: {words})"):
            console.print_note(f"provision: {line}")


def _missing_record_reason(record: Path, world: RealSystem) -> str:
    if not world.platform().startswith("linux"):
        return "only Linux tells what a program takes"
    if not world.is_writable(record.parent):
        return f"the folder {os.path.relpath(record.parent)} cannot be written to"
    return "what looks at it ended without a record: the disk may be full"


def show_run_record(path: Path, target: str | None, *, page: Path | None, form: str) -> int:
    """Show a record as text, JSON, or a page."""
    from provision.effects.local import WriteFile
    from provision.views import run_record_html, run_record_text

    world = RealSystem()
    where = path
    if path.suffix != ".json":
        loaded = load_spec(path, world)
        (name,) = select_targets(loaded, (target,) if target else (), everything=False)
        where = latest_run_record(loaded, name, world)
    record = read_run_record(where, world)
    if page is not None:
        world.perform(
            WriteFile(page, run_record_html.render_page(record), 0o600), console.print_note
        )
        console.print_note(f"wrote {page}")
    elif form == "json":
        console.print_result(json.dumps(record, indent=1, sort_keys=True))
    else:
        console.print_text(
            "\n".join(
                [
                    *run_record_text.render_lines(record, console.width()),
                    f"record     {os.path.relpath(where)}",
                ]
            )
        )
    return 0
