"""`provision report add`: files a report that a person brings from another machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from provision.cli.app import DEFAULT_SPEC, FILE, LOCK_TIMEOUT, OUTPUT_FORMAT, TARGET, VERBOSE

if TYPE_CHECKING:
    from provision.commands.shared.probe_report_import import ImportedProbeReport
    from provision.commands.shared.report_import import ImportedReport


@click.command(
    help="File the report.json that a notebook offered, or a probe that was carried by hand wrote "
    "(- reads it from standard input)."
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--spec",
    type=FILE,
    metavar="SPEC",
    help="Spec that it is of; default: the one here whose notebook waits for it.",
)
@TARGET
@LOCK_TIMEOUT
@VERBOSE
@OUTPUT_FORMAT
def add(
    file: Path,
    *,
    spec: Path | None,
    target: str | None,
    lock_timeout: float,
    verbose: bool,
    output_format: str,
) -> int:
    """File a report and show it; the exit code is that of its verdict."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.shared.probe_report_import import import_probe_report
    from provision.commands.shared.report_import import import_report
    from provision.verification.report import MAX_REPORT_BYTES, read_report_bytes

    system, as_json = RealSystem(), output_format == "json"
    if str(file) == "-":
        hint = "pipe the report into it, or name a file"
        name, content = "standard input", console.read_standard_input(MAX_REPORT_BYTES, hint=hint)
    else:
        name, content = str(file), read_report_bytes(file, system)
    default = Path(DEFAULT_SPEC) if Path(DEFAULT_SPEC).exists() else None
    with console.progress() as progress:
        probe_report = import_probe_report(
            content, name, spec, target, system, progress, default=default, lock_wait_s=lock_timeout
        )
        if probe_report is not None:
            return _print_probe_report(probe_report, as_json=as_json, verbose=verbose)
        imported = import_report(
            content, name, spec, target, system, progress, lock_wait_s=lock_timeout
        )
    return _print_notebook_report(imported, as_json=as_json, verbose=verbose)


def _print_probe_report(imported: ImportedProbeReport, *, as_json: bool, verbose: bool) -> int:
    """Show the report of a probe that a person started: it is not the verdict of a target."""
    from provision.cli import console, report_output

    if as_json:
        _print_document(imported, {"carried": True})
        return imported.report.exit_code
    report_output.print_report(imported.report, imported.json_path, verbose=verbose)
    console.print_text("")
    console.print_row("page", os.path.relpath(imported.html_path))
    console.print_row(
        "kept as",
        f"the report of a machine like {imported.context.address}, which `provision parity` "
        "counts; its own verdict is what it was",
    )
    return imported.report.exit_code


def _print_notebook_report(imported: ImportedReport, *, as_json: bool, verbose: bool) -> int:
    from provision.cli import console, notebook_output, report_output

    comparison = imported.facts_comparison
    if as_json:
        facts = notebook_output.facts_comparison_document(comparison, imported.loaded)
        _print_document(imported, {"filed": imported.fresh, **facts})
        return imported.report.exit_code
    report_output.print_report(imported.report, imported.json_path, verbose=verbose)
    if not imported.fresh:
        console.print_text("No changes: this report was filed before.")
    notebook_output.print_facts_comparison(comparison, imported.loaded)
    console.print_text("")
    console.print_row("page", os.path.relpath(imported.html_path))
    console.print_row("filed under", imported.context.address)
    return imported.report.exit_code


def _print_document(imported: ImportedReport | ImportedProbeReport, more: dict[str, Any]) -> None:
    from provision.cli import console
    from provision.cli.report_output import report_summary

    summary = report_summary(imported.report, imported.json_path)
    console.print_document(**summary, target=imported.context.target, **more)
