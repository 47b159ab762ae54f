"""`provision report repro`: a failed check as a standalone program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import FILE, OUT, OUTPUT_FORMAT, TARGETS, completed_by, examples

if TYPE_CHECKING:
    from provision.adapters import RealSystem


@click.command(
    epilog=examples(
        "provision report repro report.json P02 > repro.py",
        "provision report repro specs/quickstart.yaml H07 --out repro.py",
    )
)
@click.argument("report", type=FILE)
@click.argument("check", shell_complete=completed_by("checks"))
@TARGETS
@click.option(
    "--spec",
    type=FILE,
    metavar="SPEC",
    help="Use this spec for the values that are missing from report.json.",
)
@OUT
@OUTPUT_FORMAT
def repro(
    report: Path,
    check: str,
    *,
    targets: tuple[str, ...],
    spec: Path | None,
    out: Path | None,
    output_format: str,
) -> int:
    """Write a standalone program that reproduces a failed check.

    REPORT is a report.json, or a spec. The program exits with 1 if the fault is present, 0 if it
    is fixed, and 2 if that is unknown.
    """
    from provision.adapters import RealSystem
    from provision.cli import console

    system = RealSystem()
    program = _build_program(report, check, targets, spec, system)
    if out is not None:
        console.write_output_file(out, program, system, 0o644)
    if output_format == "json":
        file = str(out) if out else None
        console.print_document(check=check, file=file, program=program)
    elif out is None:
        console.print_result(program)
    return 0


def _build_program(
    path: Path, check: str, targets: tuple[str, ...], spec: Path | None, system: RealSystem
) -> str:
    """Return the program for a check of the report.json or of the spec at `path`."""
    from provision.commands.repro import build_check_program, build_stored_check_program
    from provision.commands.shared.load import load_spec
    from provision.commands.shared.stored_reports import read_stored_reports, single_report
    from provision.commands.shared.target_selection import select_target
    from provision.errors import UsageError

    is_report = path.suffix == ".json"
    if spec is not None and not is_report:
        raise UsageError(
            "--spec cannot be used when REPORT is itself a spec",
            hint="pass a report.json as REPORT, or omit --spec",
        )
    reports = read_stored_reports(path, targets if spec is None else (), system)
    report, report_path = single_report(reports, "a program reproduces only one report")
    if spec is not None:
        loaded = load_spec(spec, system)
        target = select_target(loaded, targets[0] if targets else None)
        return build_check_program(report, report_path, check, (loaded, target), system)
    if is_report:
        return build_check_program(report, report_path, check, None, system)
    return build_stored_check_program(report, report_path, check, load_spec(path, system), system)
