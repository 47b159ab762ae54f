"""Findings in the formats of `provision lint`, the edits of its fixes, and the unread files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.cli import console
from provision.commands.lint import LintResult
from provision.commands.shared.load import CheckedDocument
from provision.diagnostics import Diagnostic, RouteLocation
from provision.errors import ProvisionError
from provision.sanitize import escape_line, redact
from provision.views.diagnostics.secret_filter import may_contain_secret

if TYPE_CHECKING:
    from provision.views.diagnostics.findings_in_files import CheckedFiles
    from provision.views.diagnostics.source_location import SpecSource

    _Findings = tuple[tuple[Diagnostic, ...], SpecSource]
    """The findings of one document, and its text."""


FORMATS = ("text", "concise", "json", "sarif", "gitlab", "junit", "markdown", "rdjson")
"""The formats that can be written to a file; annotations of GitHub are for the log of a step."""
_FILE_WIDTH = 100
"""Columns of the text in a file. Our choice."""


def print_findings(
    result: LintResult, output_format: str, environment: Mapping[str, str], exit_code: int
) -> None:
    """Write the findings; `environment` names the summary file of a step of a GitHub workflow."""
    if output_format == "github":
        documents = _findings_by_document(result, in_files=True)
        print_annotations(documents, _unread(result), environment)
    elif output_format in ("text", "concise"):
        if output_format == "concise" or result.documents or not result.failed_files:
            color, width = console.supports_color(), console.width()
            console.print_view(_render_text(result, output_format, color, width))
    else:
        console.print_result(render_findings(result, output_format, environment, exit_code))


def render_findings(
    result: LintResult, output_format: str, environment: Mapping[str, str], exit_code: int
) -> str:
    """Return the findings in one of `FORMATS`, as a file has them."""
    if output_format in ("text", "concise"):
        return _render_text(result, output_format, False, _FILE_WIDTH)
    if output_format == "json":
        return json.dumps(_to_json(result), indent=1) + "\n"
    documents = _findings_by_document(result, in_files=True)
    if output_format == "sarif":
        document = _to_sarif(result, documents, environment, exit_code)
        return json.dumps(document, indent=1) + "\n"
    from provision.views.diagnostics.findings_in_files import CheckedFiles
    from provision.views.diagnostics.repository_paths import Repository

    files = CheckedFiles(
        documents,
        _unread(result),
        Repository.from_environment(Path.cwd(), environment),
        [document.configuration.fail_on for document in result.documents],
        len(result.suppressed),
        len(result.fixed or ()),
        result.targets,
    )
    return _RENDERERS[output_format](files)


def _render_gitlab(files: CheckedFiles) -> str:
    from provision.views.diagnostics.gitlab import to_code_quality

    return json.dumps(to_code_quality(files), indent=1) + "\n"


def _render_junit(files: CheckedFiles) -> str:
    from provision.views.diagnostics.junit import render_junit_findings

    return render_junit_findings(files)


def _render_markdown(files: CheckedFiles) -> str:
    from provision.views.diagnostics.markdown import render_markdown

    return render_markdown(files)


def _render_rdjson(files: CheckedFiles) -> str:
    from provision.views.diagnostics.rdjson import to_rdjson

    return json.dumps(to_rdjson(files), indent=1) + "\n"


_RENDERERS: dict[str, Callable[[CheckedFiles], str]] = {
    "gitlab": _render_gitlab,
    "junit": _render_junit,
    "markdown": _render_markdown,
    "rdjson": _render_rdjson,
}


def _to_json(result: LintResult) -> dict[str, Any]:
    from provision.views.diagnostics import json as data

    merged = data.merge_documents(
        data.findings_to_json(document.diagnostics, document.source, document.suppressed)
        for document in result.documents
    )
    if result.fixed is not None:
        merged["fixed"] = [
            finding
            for item in result.fixed
            for finding in data.findings_to_json([item.finding], item.source)["diagnostics"]
        ]
    if result.failed_files:
        merged["errors"] = [console.error_to_json(error) for _, error in result.failed_files]
    return merged


def _to_sarif(
    result: LintResult,
    documents: list[_Findings],
    environment: Mapping[str, str],
    exit_code: int,
) -> dict[str, Any]:
    from provision.commands.explain import all_pages
    from provision.views.diagnostics import sarif
    from provision.views.diagnostics.repository_paths import Repository

    suppressed = [
        (document.suppressed, document.source)
        for document in result.documents
        if isinstance(document, CheckedDocument)
    ]
    return sarif.to_sarif_log(
        documents,
        _unread(result),
        all_pages(),
        Repository.from_environment(Path.cwd(), environment),
        exit_code,
        suppressed,
        is_compared=result.fixed is not None,
    )


def _unread(result: LintResult) -> list[tuple[str, ProvisionError]]:
    return [(str(path), error) for path, error in result.failed_files]


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
    # the errors of a document that no rule can check may be in the base, too
    is_checked = all(
        document.spec is not None
        for document in result.documents
        if isinstance(document, CheckedDocument)
    )
    return text.render_footer(
        diagnostics, fixable, result.suppressed, fixed, only_new=fixed is not None and is_checked
    )


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


def _render_text(result: LintResult, output_format: str, color: bool, width: int) -> str:
    from provision.views.diagnostics import text

    documents = _findings_by_document(result, in_files=False)
    if output_format == "concise":
        return "".join(text.render_concise(*document) for document in documents)
    parts = [
        text.render_findings(*document, color, width, with_footer=False) for document in documents
    ]
    diagnostics = [diagnostic for findings, _ in documents for diagnostic in findings]
    fixable = sum(text.count_fixable(*document) for document in documents)
    footer = _render_footer(result, diagnostics, fixable)
    return "\n".join([*filter(None, parts), footer]) + "\n"


def print_sarif(
    documents: Sequence[_Findings],
    unread: list[tuple[str, ProvisionError]],
    environment: Mapping[str, str],
    exit_code: int,
) -> None:
    """Write findings and the files that could not be read as SARIF."""
    from provision.commands.explain import all_pages
    from provision.views.diagnostics import sarif
    from provision.views.diagnostics.repository_paths import Repository

    repository = Repository.from_environment(Path.cwd(), environment)
    console.print_json(sarif.to_sarif_log(documents, unread, all_pages(), repository, exit_code))


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
