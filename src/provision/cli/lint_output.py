"""Findings on standard output in the form that was asked for, and beside them what was changed and
what could not be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from provision.cli import console
from provision.commands.lint import LintResult
from provision.diagnostics import RouteLocation
from provision.sanitize import escape_line, redact
from provision.views.diagnostics.secret_filter import may_contain_secret


def print_lint_result(
    result: LintResult, form: str, environment: Mapping[str, str], exit_code: int
) -> None:
    """Write the findings; `environment` says where a step of a GitHub workflow takes its summary."""  # noqa: E501
    from provision.views.diagnostics import text

    documents = [(judged.diagnostics, judged.source) for judged in result.documents]
    unread = [(str(path), error) for path, error in result.failed_files]
    if form == "json":
        from provision.views.diagnostics import json as data

        found = data.merge_documents(data.findings_to_json(*document) for document in documents)
        errors = {"errors": [console.error_to_json(error) for _, error in unread]} if unread else {}
        console.print_result(json.dumps({**found, **errors}, indent=1))
    elif form == "sarif":
        from provision.commands.explain import all_pages
        from provision.views.diagnostics import sarif
        from provision.views.diagnostics.repository_paths import Repository

        console.print_result(
            json.dumps(
                sarif.to_sarif_log(
                    documents,
                    unread,
                    all_pages(),
                    Repository.from_environment(Path.cwd(), environment),
                    exit_code,
                ),
                indent=1,
            )
        )
    elif form == "github":
        _annotate(result, environment)
    elif form == "concise":
        console.print_result(
            console.escape_for_log(
                "".join(text.render_concise(*document) for document in documents)
            )
        )
    elif documents or not unread:
        frames = (
            text.render_findings(
                *document, console.supports_color(), console.width(), with_footer=False
            )
            for document in documents
        )
        everything = [diagnostic for diagnostics, _ in documents for diagnostic in diagnostics]
        fixable = sum(text.count_fixable(*document) for document in documents)
        console.print_result(
            console.escape_for_log(
                "\n".join(
                    [*(frame for frame in frames if frame), text.render_footer(everything, fixable)]
                )
            )
        )


def print_changes_and_errors(result: LintResult, form: str, *, dry: bool) -> None:
    """Write to standard error what was fixed, or with `dry` would be, and which files could not be
    read.
    """
    for name, diff in result.changed.items():
        console.print_note(redact(diff, _secrets(result)) if dry else f"fixed {escape_line(name)}")
    if form != "github":
        for _, error in result.failed_files:
            console.print_error(error)


def _annotate(result: LintResult, environment: Mapping[str, str]) -> None:
    from provision.views.diagnostics.github import annotate
    from provision.views.diagnostics.repository_paths import Repository

    summary = environment.get("GITHUB_STEP_SUMMARY", "")
    documents = [(judged.diagnostics, judged.source) for judged in result.documents]
    unread = [(str(path), error) for path, error in result.failed_files]
    told = annotate(
        documents,
        unread,
        Repository.from_environment(Path.cwd(), environment),
        summarized=bool(summary),
    )
    if told.commands:
        console.print_result(told.commands)
    if told.summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(told.summary)


def _secrets(result: LintResult) -> tuple[str, ...]:
    """The values that findings about secrets point at, and what stands where a secret should be
    named.
    """
    pointed = (
        judged.source.text(d.where.route)
        for judged in result.documents
        for d in judged.diagnostics
        if may_contain_secret(d) and isinstance(d.where, RouteLocation)
    )
    return (
        *filter(None, pointed),
        *(text for judged in result.documents for text in judged.source.literal_secrets()),
    )
