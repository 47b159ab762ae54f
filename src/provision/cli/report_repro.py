"""report repro: a failed check as a program of its own."""

from __future__ import annotations

import json
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.cli.looking import read_reports
from provision.errors import UsageError
from provision.verification import Report


def repro(
    path: Path, spec: Path | None, targets: tuple[str, ...], check: str, out: Path | None, form: str
) -> int:
    """Write the program for a failed check to `out`, or to standard output. `path` is a
    report.json, which answers `spec` where that is given, or a spec.
    """
    from provision.effects.local import WriteFile

    world = RealSystem()
    if spec is not None and path.suffix != ".json":
        raise UsageError(
            "REPORT is a spec already", hint="name a report.json with --spec, or the spec alone"
        )
    found = read_reports(path, () if spec else targets, world)
    if len(found) > 1:
        raise UsageError(
            "a program is for one report",
            why=", ".join(place.parent.name for _, place in found),
            hint="name one target with --target",
        )
    ((report, place),) = found
    text = _program(
        report,
        place,
        check,
        spec or (None if path.suffix == ".json" else path),
        targets if spec else None,
        world,
    )
    if out is not None:
        world.perform(WriteFile(out, text, 0o644), console.print_note)
        console.print_note(f"wrote {out}")
    if form == "json":
        console.print_result(
            json.dumps(
                {"version": 1, "check": check, "file": str(out) if out else None, "program": text},
                indent=1,
            )
        )
    elif out is None:
        console.print_result(text)
    return 0


def _program(
    report: Report,
    place: Path,
    check: str,
    spec: Path | None,
    targets: tuple[str, ...] | None,
    world: RealSystem,
) -> str:
    """Return the program; `targets` are None where the spec is the one whose own report was asked
    for.
    """
    from provision.commands.probe import select_single_target
    from provision.commands.repro import build_check_program, build_stored_check_program
    from provision.commands.shared.load import load_spec

    if spec is None:
        return build_check_program(report, place, check, None, world)
    loaded = load_spec(spec, world)
    if targets is None:
        return build_stored_check_program(report, place, check, loaded, world)
    return build_check_program(
        report,
        place,
        check,
        (loaded, select_single_target(loaded, targets[0] if targets else None)),
        world,
    )
