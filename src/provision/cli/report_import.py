"""report add, and what was dropped into the folder of a target: reports that come home, and what
they say of the facts.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.cli import console
from provision.cli.options import DEFAULT_SPEC
from provision.errors import ExternalError, StateError
from provision.verification.report import MAX_REPORT_BYTES, read_report_bytes

if TYPE_CHECKING:
    from provision.commands.facts_comparison import FactsComparison
    from provision.commands.shared.load import LoadedSpec
    from provision.commands.shared.probe_report_import import ImportedProbeReport
    from provision.commands.shared.report_inbox import InboxResult
    from provision.effects import System


def add(
    file: Path, spec: Path | None, target: str | None, *, wait: float, verbose: bool, form: str
) -> int:
    """File a report and show it; the exit code is that of its verdict."""
    from provision.adapters import RealSystem
    from provision.cli.looking import report_summary, show_report
    from provision.commands.report_import import import_report
    from provision.commands.shared.probe_report_import import import_probe_report

    world = RealSystem()
    content, name = (
        (_read_stdin(), "standard input")
        if str(file) == "-"
        else (read_report_bytes(file, world), str(file))
    )
    with console.progress() as (tell, _):
        if carried := import_probe_report(
            content, name, spec, target, world, tell, default=_default_spec(), lock_wait_s=wait
        ):
            return _show_probe_report(carried, verbose=verbose, form=form)
        received = import_report(content, name, spec, target, world, tell, lock_wait_s=wait)
    if form == "json":
        told = {
            **report_summary(received.report, received.json_path),
            "target": received.context.target,
            "filed": received.fresh,
        }
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    **told,
                    **facts_comparison_document(received.facts_comparison, received.loaded),
                },
                indent=1,
            )
        )
        return received.exit_code
    show_report(received.report.displayed_document, received.json_path, verbose=verbose)
    if not received.fresh:
        console.print_text("No changes: this report was filed before.")
    show_facts_comparison(received.facts_comparison, received.loaded)
    console.print_text(f"\npage         {os.path.relpath(received.html_path)}")
    console.print_text(f"filed under  {received.context.address}")
    return received.exit_code


def _default_spec() -> Path | None:
    return Path(DEFAULT_SPEC) if Path(DEFAULT_SPEC).exists() else None


def _show_probe_report(carried: ImportedProbeReport, *, verbose: bool, form: str) -> int:
    """Show a report of a probe that was carried by hand; it is the verdict of that machine, and no
    target's.
    """
    from provision.cli.looking import report_summary, show_report

    if form == "json":
        told = {
            **report_summary(carried.report, carried.json_path),
            "target": carried.context.target,
            "carried": True,
        }
        console.print_result(json.dumps({"version": 1, **told}, indent=1))
        return carried.report.exit_code
    show_report(carried.report.displayed_document, carried.json_path, verbose=verbose)
    console.print_text(f"\npage         {os.path.relpath(carried.html_path)}")
    console.print_text(
        f"kept as      the report of a machine like {carried.context.address}, which "
        "`provision parity` counts; its own verdict is what it was"
    )
    return carried.report.exit_code


def import_dropped_reports(loaded: LoadedSpec, world: System, *, wait: float = 0) -> InboxResult:
    """File what was dropped into the folders of a spec's targets, and say of each file what became
    of it. Another provision at work is left alone.
    """
    from provision.commands.shared.report_inbox import InboxResult, process_inbox

    if not any(target.kind == "colab" for target in loaded.spec.targets.values()):
        return InboxResult()
    try:
        found = process_inbox(loaded, world, console.print_note, lock_wait_s=wait)
    except StateError as error:
        console.print_note(
            f"what was dropped into the folder of reports is not looked at now: {error.what}"
        )
        return InboxResult()
    for received in found.imported:
        console.print_note(f"filed the report that was dropped for {received.context.address}")
    for path, why in found.rejected:
        console.print_error(why)
        console.print_note(f"  it lies in {os.path.relpath(path)} now, and is not looked at again")
    return found


def show_facts_comparison(found: FactsComparison, loaded: LoadedSpec) -> None:
    """Show what moved since the day of the facts, and what the rules find in what was observed."""
    from provision.views.diagnostics import text

    if found.differences:
        console.print_text(f"\nmoved since the catalogue of {found.as_of}:")
    for moved in found.differences:
        console.print_text(f"  {moved.line}")
    if found.findings:
        console.print_text("\nThe rules, asked again of what was observed:")
        console.print_result(
            console.escape_for_log(
                text.render_findings(
                    found.findings, loaded.source, console.supports_color(), console.width()
                )
            )
        )


def facts_comparison_document(found: FactsComparison, loaded: LoadedSpec) -> dict[str, Any]:
    """Return the same as data."""
    from provision.views.diagnostics import json as data

    moved = [moved._asdict() for moved in found.differences]
    return {
        "facts_as_of": found.as_of,
        "moved": moved,
        "findings": data.findings_to_json(found.findings, loaded.source)["diagnostics"],
    }


def notebook_name(record: Mapping[str, Any]) -> str:
    """Return the name of a recorded notebook."""
    return next((str(name) for name in record.get("files", {}) if str(name).endswith(".ipynb")), "")


def show_pending_notebook(
    loaded: LoadedSpec, target: str, record: Mapping[str, Any], because: str, link: str | None
) -> None:
    """Show what a person does next with a notebook that has no verdict yet."""
    place = loaded.spec.targets[target]
    version, gpu = getattr(place, "runtime", "latest"), place.gpu or loaded.spec.gpu
    words = shlex.quote(str(loaded.path))
    console.print_text(f"\n{loaded.stem}/{target}: rendered, not verified: {because}")
    console.print_text(
        f"open         {link}"
        if link
        else f"open         {os.path.relpath(loaded.folder.parent / notebook_name(record))} in "
        "Colab (File > Upload notebook)"
    )
    console.print_text(
        f"choose       Runtime > Change runtime type: version {version}, "
        f"{'CPU' if gpu.is_none else gpu}"
    )
    console.print_text("run          Runtime > Run all; its last cell offers report.json")
    console.print_text(
        f"then         provision report add report.json --spec {words}"
        + (f" --target {target}" if len(loaded.spec.targets) > 1 else "")
    )
    if link:
        console.print_text("             (the link opens what is pushed: push the notebook first)")


def _read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read(MAX_REPORT_BYTES + 1)
    except OSError as error:
        raise ExternalError(
            "cannot read standard input",
            why=error.strerror or str(error),
            hint="pipe the report into it, or name a file",
        ) from error
