"""`provision report add`: imports a report from another machine."""

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
    help="Import a report.json written by a notebook or an exported probe.\n"
    "\n"
    "The exit code depends on the verdict. Use - as FILE for standard input."
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--spec",
    type=FILE,
    metavar="SPEC",
    help="Import the report for this spec; default: the spec in this folder that has a notebook "
    "whose report has not been imported yet.",
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
    """Import a report and show it; the exit code depends on its verdict."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands.shared.probe_report_import import import_probe_report
    from provision.commands.shared.report_import import import_report
    from provision.verification.report import MAX_REPORT_BYTES, read_report_bytes

    system = RealSystem()
    if str(file) == "-":
        hint = "pipe the report into the command, or name a file"
        name, content = "standard input", console.read_standard_input(MAX_REPORT_BYTES, hint=hint)
    else:
        name, content = str(file), read_report_bytes(file, system)
    default = Path(DEFAULT_SPEC) if Path(DEFAULT_SPEC).exists() else None
    with show_progress() as progress:
        imported = import_probe_report(
            content, name, spec, target, system, progress, default=default, lock_wait_s=lock_timeout
        ) or import_report(content, name, spec, target, system, progress, lock_wait_s=lock_timeout)
    if output_format == "json":
        _print_document(imported)
    else:
        _print_text(imported, verbose=verbose)
    return imported.report.exit_code


def _print_text(imported: ImportedReport | ImportedProbeReport, *, verbose: bool) -> None:
    from provision.cli import console, notebook_output, report_output
    from provision.commands.shared.report_import import ImportedReport

    address, is_of_notebook = imported.context.address, isinstance(imported, ImportedReport)
    report_output.print_report(imported.report, imported.json_path, verbose=verbose)
    if isinstance(imported, ImportedReport):
        if not imported.fresh:
            console.print_text("No changes: this report was imported before.")
        notebook_output.print_facts_comparison(imported.facts_comparison, imported.loaded)
    console.print_text("")
    console.print_row("page", os.path.relpath(imported.html_path))
    if is_of_notebook:
        console.print_row("imported as", address)
        return
    console.print_prose_row(
        "kept as",
        f"the report of a machine like {address}: `provision parity` includes it, but the "
        "verdict for the target itself does not change",
    )


def _print_document(imported: ImportedReport | ImportedProbeReport) -> None:
    from provision.cli import console, notebook_output
    from provision.cli.report_output import report_summary
    from provision.commands.shared.report_import import ImportedReport

    more: dict[str, Any] = {"carried": True}
    if isinstance(imported, ImportedReport):
        comparison = imported.facts_comparison
        facts = notebook_output.facts_comparison_document(comparison, imported.loaded)
        more = {"filed": imported.fresh, **facts}
    summary = report_summary(imported.report, imported.json_path)
    console.print_document(**summary, target=imported.context.target, **more)
