"""report repro: a failed check as a program of its own."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import terminal
from provision.cli.looking import reports_of
from provision.errors import UsageError
from provision.verification import Report
from provision.world import Machine


def repro(path: Path, spec: Path | None, targets: tuple[str, ...], check: str, out: Path | None, form: str) -> int:
    """Write the program for a failed check to `out`, or to standard output. `path` is a report.json, which answers `spec` where that is given, or a spec."""
    from provision.effects import WriteFile

    world = Machine()
    if spec is not None and path.suffix != ".json":
        raise UsageError("REPORT is a spec already", hint="name a report.json with --spec, or the spec alone")
    found = reports_of(path, () if spec else targets, world)
    if len(found) > 1:
        raise UsageError("a program is for one report", why=", ".join(place.parent.name for _, place in found), hint="name one target with --target")
    ((report, place),) = found
    text = _program(report, place, check, spec or (None if path.suffix == ".json" else path), targets if spec else None, world)
    if out is not None:
        world.perform(WriteFile(out, text, 0o644), terminal.note)
        terminal.note(f"wrote {out}")
    if form == "json":
        terminal.show(json.dumps({"version": 1, "check": check, "file": str(out) if out else None, "program": text}, indent=1))
    elif out is None:
        terminal.show(text)
    return 0


def _program(report: Report, place: Path, check: str, spec: Path | None, targets: tuple[str, ...] | None, world: Machine) -> str:
    """Return the program; `targets` are None where the spec is the one whose own report was asked for."""
    from provision.commands.loading import load
    from provision.commands.probe import the_one
    from provision.commands.repro import program, stored_program

    if spec is None:
        return program(report, place, check, None, world)
    loaded = load(spec, world)
    if targets is None:
        return stored_program(report, place, check, loaded, world)
    return program(report, place, check, (loaded, the_one(loaded, targets[0] if targets else None)), world)
