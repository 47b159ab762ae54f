"""Reports of verifications: for a terminal, and the summary for programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.cli import console
from provision.verification import Report

if TYPE_CHECKING:
    from provision.commands.shared.report_store import VerificationResult
    from provision.commands.shared.target_plans import ErrorsByTarget


def print_report(report: Report, path: Path, *, verbose: bool) -> None:
    """Write a report for people."""
    from provision.views.report.text import render_report

    console.print_result(
        render_report(
            report.displayed,
            console.supports_color(),
            console.width(),
            verbose,
            os.path.relpath(path),
        )
    )


def report_summary(report: Report, path: Path) -> dict[str, Any]:
    """Return the main values of a report as data."""
    return {
        "verdict": report.verdict,
        "sentence": report.sentence,
        "identity": report.identity,
        "report": str(path),
        "counts": report.document["verdict"].get("counts"),
        "packages": report.provenance,
    }


def print_verifications(
    results: tuple[VerificationResult, ...],
    failed: ErrorsByTarget,
    output_format: str,
    *,
    verbose: bool,
) -> int:
    """Write the results of several targets; return the exit code of the worst."""
    from provision.commands.shared.target_plans import worst_exit_code

    console.print_errors(failed)
    if output_format == "json":
        summaries = [_result_summary(result) for result in results]
        console.print_document(results=summaries, **console.failures_to_json(failed))
    elif output_format == "junit":
        from provision.views.report.junit import render_junit

        console.print_result(render_junit(result.report.displayed for result in results))
    else:
        for result in results:
            print_report(result.report, result.json_path, verbose=verbose)
            if result.on_failure_note:
                console.print_prose_row("left", result.on_failure_note)
            if result.not_shown:
                console.print_prose_row("evidence", _describe_limits(result.not_shown))
    codes = [result.exit_code for result in results]
    return worst_exit_code([*codes, *(error.exit_code for error in failed.values())])


def _result_summary(result: VerificationResult) -> dict[str, Any]:
    summary = report_summary(result.report, result.json_path)
    return {**summary, "not_shown": result.not_shown} if result.not_shown else summary


def _describe_limits(not_shown: str) -> str:
    return f"verified on the same image, by an execution job; not shown: {not_shown}"
