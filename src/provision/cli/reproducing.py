"""report repro: a failed check as a program of its own."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import terminal
from provision.cli.looking import reports_of
from provision.errors import UsageError
from provision.world import Machine


def repro(path: Path, targets: tuple[str, ...], check: str, out: Path | None, form: str) -> int:
    """Write the program for a failed check to `out`, or to standard output."""
    from provision.commands.repro import program
    from provision.effects import WriteFile

    world = Machine()
    found = reports_of(path, targets, world)
    if len(found) > 1:
        raise UsageError("a program is for one report", why=", ".join(place.parent.name for _, place in found), hint="name one target with --target")
    ((report, place),) = found
    text = program(report, place, check, world)
    if out is not None:
        world.perform(WriteFile(out, text, 0o644), terminal.note)
        terminal.note(f"wrote {out}")
    if form == "json":
        terminal.show(json.dumps({"version": 1, "check": check, "file": str(out) if out else None, "program": text}, indent=1))
    elif out is None:
        terminal.show(text)
    return 0
