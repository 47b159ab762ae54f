"""Output about rendered notebooks, and comparisons of their reports with the facts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.cli.console import print_row, print_text, print_view, supports_color, width

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec
    from provision.targets import TargetContext
    from provision.targets.capabilities import FactsComparison


def notebook_path(loaded: LoadedSpec, file: str) -> Path:
    """Return the path of a notebook: next to its spec."""
    return loaded.folder.parent / file


def print_pending_notebook(
    loaded: LoadedSpec,
    context: TargetContext,
    file: str,
    reason: str,
    link: str | None,
    report_places: tuple[str, str] = ("", ""),
) -> None:
    """Write what a person does next with a notebook that has no verdict yet."""
    target = loaded.spec.targets[context.target]
    version, gpu = getattr(target, "runtime", "latest"), target.gpu or loaded.spec.gpu
    path = os.path.relpath(notebook_path(loaded, file))
    accelerator = "CPU" if gpu.is_none else str(gpu)
    print_text(f"\n{context.address}: rendered, not verified: {reason}")
    print_row("open", link or f"{path} in Colab (File > Upload notebook)")
    print_row("choose", f"Runtime > Change runtime type: version {version}, {accelerator}")
    _print_report_arrival(context, *report_places)
    if link:
        print_row("", "(push the notebook first: the link opens the pushed version)")


def _print_report_arrival(context: TargetContext, uri: str, path: str) -> None:
    """Write what runs the notebook, and how its report arrives."""
    if uri:
        print_row("run", f"Runtime > Run all; the cell copies the report to {uri}")
        print_row("then", f"{context.command('apply')}, which fetches the report")
        return
    if path:
        print_row("run", f"Runtime > Run all; the cell copies the report to Google Drive: {path}")
        print_row("then", context.command("report add FILE --spec"))
        print_row("", "(FILE is the report in Google Drive for desktop, or downloaded from Drive)")
        return
    print_row("run", "Runtime > Run all; the last cell offers report.json for download")
    print_row("then", context.command("report add report.json --spec"))


def print_facts_comparison(comparison: FactsComparison, loaded: LoadedSpec) -> None:
    """Write what changed since the day of the facts, and the findings of the rules about it."""
    from provision.views.diagnostics import text

    if comparison.differences:
        print_text(f"\nchanged since the facts were recorded on {comparison.as_of}:")
    for difference in comparison.differences:
        print_text(f"  {difference.line}")
    if comparison.findings:
        print_text("\nFindings for the observed values:")
        print_view(
            text.render_findings(comparison.findings, loaded.source, supports_color(), width())
        )


def facts_comparison_document(comparison: FactsComparison, loaded: LoadedSpec) -> dict[str, Any]:
    """Return the comparison with the facts as data."""
    from provision.views.diagnostics import json as view

    return {
        "facts_as_of": comparison.as_of,
        "moved": [difference._asdict() for difference in comparison.differences],
        "findings": view.findings_to_json(comparison.findings, loaded.source)["diagnostics"],
    }
