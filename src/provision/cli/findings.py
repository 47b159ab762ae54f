"""Findings on standard output in the form that was asked for, and beside them what was changed and what could not be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from provision.cli import terminal
from provision.commands.lint import Linted
from provision.diagnostics import Place
from provision.safe import redact, safe_line
from provision.views.secrecy import is_secret


def show(result: Linted, form: str, environment: Mapping[str, str], exit_code: int) -> None:
    """Write the findings; `environment` says where a step of a GitHub workflow takes its summary."""
    from provision.views import text

    documents = [(judged.diagnostics, judged.source) for judged in result.documents]
    unread = [(str(path), error) for path, error in result.unread]
    if form == "json":
        from provision.views import json as data

        found = data.joined(data.findings(*document) for document in documents)
        errors = {"errors": [terminal.told(error) for _, error in unread]} if unread else {}
        terminal.show(json.dumps({**found, **errors}, indent=1))
    elif form == "sarif":
        from provision.commands.explain import pages
        from provision.views import sarif
        from provision.views.repository import Repository

        terminal.show(json.dumps(sarif.log(documents, unread, pages(), Repository.of(Path.cwd(), environment), exit_code), indent=1))
    elif form == "github":
        _annotate(result, environment)
    elif form == "concise":
        terminal.show(terminal.for_log("".join(text.concise(*document) for document in documents)))
    elif documents or not unread:
        frames = (text.findings(*document, terminal.colored(), terminal.width(), with_footer=False) for document in documents)
        everything = [diagnostic for diagnostics, _ in documents for diagnostic in diagnostics]
        fixable = sum(text.fixable(*document) for document in documents)
        terminal.show(terminal.for_log("\n".join([*(frame for frame in frames if frame), text.footer(everything, fixable)])))


def show_beside(result: Linted, form: str, *, dry: bool) -> None:
    """Write to standard error what was fixed, or with `dry` would be, and which files could not be read."""
    for name, diff in result.changed.items():
        terminal.note(redact(diff, _secrets(result)) if dry else f"fixed {safe_line(name)}")
    if form != "github":
        for _, error in result.unread:
            terminal.show_error(error)


def _annotate(result: Linted, environment: Mapping[str, str]) -> None:
    from provision.views.github import annotate
    from provision.views.repository import Repository

    summary = environment.get("GITHUB_STEP_SUMMARY", "")
    documents = [(judged.diagnostics, judged.source) for judged in result.documents]
    unread = [(str(path), error) for path, error in result.unread]
    told = annotate(documents, unread, Repository.of(Path.cwd(), environment), summarized=bool(summary))
    if told.commands:
        terminal.show(told.commands)
    if told.summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(told.summary)


def _secrets(result: Linted) -> tuple[str, ...]:
    """The values that findings about secrets point at, and what stands where a secret should be named."""
    pointed = (judged.source.text(d.where.route) for judged in result.documents for d in judged.diagnostics if is_secret(d) and isinstance(d.where, Place))
    return (*filter(None, pointed), *(text for judged in result.documents for text in judged.source.written_secrets()))
