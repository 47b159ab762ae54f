"""Findings in the formats of `provision lint`, the edits of its fixes, and the unread files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from provision.cli import console
from provision.commands.lint import LintResult
from provision.commands.shared.load import CheckedDocument
from provision.diagnostics import Diagnostic, RouteLocation, SuppressedFinding
from provision.errors import ProvisionError
from provision.sanitize import escape_line, redact
from provision.views.diagnostics.secret_filter import may_contain_secret

if TYPE_CHECKING:
    from provision.views.diagnostics.source_location import SpecSource

    _Findings = tuple[tuple[Diagnostic, ...], SpecSource]
    """The findings of one document, and its text."""


def print_findings(
    result: LintResult, output_format: str, environment: Mapping[str, str], exit_code: int
) -> None:
    """Write the findings; `environment` names the summary file of a step of a GitHub workflow."""
    in_files = output_format in ("sarif", "github")
    documents = _findings_by_document(result, in_files=in_files)
    unread = [(str(path), error) for path, error in result.failed_files]
    if output_format == "json":
        from provision.views.diagnostics import json as data

        parts = (
            data.findings_to_json(*document, checked.suppressed)
            for document, checked in zip(documents, result.documents, strict=True)
        )
        merged = data.merge_documents(parts)
        if result.fixed is not None:
            merged["fixed"] = [
                finding
                for item in result.fixed
                for finding in data.findings_to_json([item.finding], item.source)["diagnostics"]
            ]
        if unread:
            merged["errors"] = [console.error_to_json(error) for _, error in unread]
        console.print_json(merged)
    elif output_format == "sarif":
        suppressed = [
            (checked.suppressed, checked.source)
            for checked in result.documents
            if isinstance(checked, CheckedDocument)
        ]
        is_compared = result.fixed is not None
        print_sarif(documents, unread, environment, exit_code, suppressed, is_compared=is_compared)
    elif output_format == "github":
        print_annotations(documents, unread, environment)
    elif output_format == "concise":
        from provision.views.diagnostics import text

        console.print_view("".join(text.render_concise(*document) for document in documents))
    elif documents or not unread:
        _print_frames(documents, result)


def print_statistics(result: LintResult) -> None:
    """Write the number of findings of each rule, and the totals."""
    from provision.views.diagnostics import text

    diagnostics = [finding for document in result.documents for finding in document.diagnostics]
    fixable = sum(text.count_fixable(item.diagnostics, item.source) for item in result.documents)
    footer = _render_footer(result, diagnostics, fixable)
    console.print_view(text.render_statistics(diagnostics) + footer)


def _render_footer(result: LintResult, diagnostics: Sequence[Diagnostic], fixable: int) -> str:
    from provision.views.diagnostics import text

    fixed = None if result.fixed is None else len(result.fixed)
    return text.render_footer(diagnostics, fixable, result.suppressed, fixed)


def print_changes_and_errors(result: LintResult, output_format: str, *, dry: bool) -> None:
    """Write the fixes (with `dry` as a diff) and the unread files to standard error."""
    for name, diff in result.changed.items():
        console.print_note(redact(diff, _secrets(result)) if dry else f"fixed {escape_line(name)}")
    if output_format != "github":
        for _, error in result.failed_files:
            console.print_error(error)


def _findings_by_document(result: LintResult, *, in_files: bool) -> list[_Findings]:
    """Return the findings of each document; of a notebook in its cells, or in its file."""
    documents: list[_Findings] = []
    for document in result.documents:
        if in_files and not isinstance(document, CheckedDocument):
            documents.append(document.source.findings_in_file(document.diagnostics))
        else:
            documents.append((document.diagnostics, document.source))
    return documents


def _print_frames(documents: list[_Findings], result: LintResult) -> None:
    from provision.views.diagnostics import text

    color, width = console.supports_color(), console.width()
    parts = [
        text.render_findings(*document, color, width, with_footer=False) for document in documents
    ]
    diagnostics = [diagnostic for findings, _ in documents for diagnostic in findings]
    fixable = sum(text.count_fixable(*document) for document in documents)
    footer = _render_footer(result, diagnostics, fixable)
    console.print_view("\n".join([*filter(None, parts), footer]))


def print_sarif(
    documents: Sequence[_Findings],
    unread: list[tuple[str, ProvisionError]],
    environment: Mapping[str, str],
    exit_code: int,
    suppressed: Sequence[tuple[Sequence[SuppressedFinding], SpecSource]] = (),
    *,
    is_compared: bool = False,
) -> None:
    """Write findings, accepted ones too, and the files that could not be read as SARIF."""
    from provision.commands.explain import all_pages
    from provision.views.diagnostics import sarif
    from provision.views.diagnostics.repository_paths import Repository

    repository = Repository.from_environment(Path.cwd(), environment)
    document = sarif.to_sarif_log(
        documents,
        unread,
        all_pages(),
        repository,
        exit_code,
        suppressed,
        is_compared=is_compared,
    )
    console.print_json(document)


def print_annotations(
    documents: Sequence[_Findings],
    unread: list[tuple[str, ProvisionError]],
    environment: Mapping[str, str],
) -> None:
    """Write findings and the files that could not be read as commands of a GitHub workflow."""
    from provision.views.diagnostics.github import annotate
    from provision.views.diagnostics.repository_paths import Repository

    summary = environment.get("GITHUB_STEP_SUMMARY", "")
    repository = Repository.from_environment(Path.cwd(), environment)
    annotations = annotate(documents, unread, repository, summarized=bool(summary))
    if annotations.commands:
        console.print_result(annotations.commands)
    if annotations.summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(annotations.summary)


def _secrets(result: LintResult) -> tuple[str, ...]:
    """Return the texts that findings about secrets point at, and literals where secrets belong."""
    secrets: list[str] = []
    for document in result.documents:
        if not isinstance(document, CheckedDocument):
            continue  # `redact` hides what the rule about secrets in cells recognizes
        secrets += document.source.literal_secrets()
        for diagnostic in document.diagnostics:
            where = diagnostic.where
            if may_contain_secret(diagnostic) and isinstance(where, RouteLocation):
                secrets.append(document.source.text(where.route) or "")
    return tuple(filter(None, secrets))
