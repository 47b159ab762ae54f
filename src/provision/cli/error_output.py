"""Errors for people on standard error, and as data for programs."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Any

from provision.cli import console
from provision.errors import ProvisionError
from provision.sanitize import escape_control, escape_line, redact
from provision.views.formatting import Style, Styler

_MAX_REASON_LINES = 40
"""Longest reason that is shown whole, in lines. Our choice."""


def print_error(error: ProvisionError) -> None:
    """Write an error to standard error: findings as frames, others as what, why and help."""
    from provision.commands.shared.load import SpecHasErrors

    color = console.supports_color(sys.stderr)
    if isinstance(error, SpecHasErrors):
        from provision.views.diagnostics import text

        console.print_stderr(
            text.render_findings(error.diagnostics, error.source, color, console.width())
        )
        console.print_note(error.what)
        return
    pen = Styler(color)
    console.print_stderr(f"{pen('error', Style.ERROR)}: {escape_line(redact(error.what))}")
    for label, paragraph in (("why:", error.why), ("help:", error.hint)):
        margin = pen(label, Style.INFO)
        for line in _last_lines(escape_control(redact(paragraph))):
            console.print_stderr(f"  {margin} {line}")
            margin = " " * len(label)


def print_errors(failed: Mapping[str, ProvisionError], kind: str = "target") -> None:
    """Write the errors of single targets (or projects, as `kind` names them) to standard error."""
    for name, error in failed.items():
        console.print_note(f"\n{kind} {name}:")
        print_error(error)


def errors_to_json(
    failed: Mapping[str, ProvisionError], kind: str = "target"
) -> list[dict[str, Any]]:
    """Return the errors of single targets (or projects) as data, with the findings of the spec."""
    documents = []
    for name, error in failed.items():
        document = {kind: name, **error_to_json(error), "exit_code": error.exit_code}
        if findings := error_findings(error):
            document["diagnostics"] = findings["diagnostics"]
        documents.append(document)
    return documents


def error_to_json(error: ProvisionError) -> dict[str, str]:
    """Return an error as data."""
    return {"what": redact(error.what), "why": redact(error.why), "help": redact(error.hint)}


def error_findings(error: ProvisionError) -> dict[str, Any]:
    """Return the findings that an error carries as data; {} for an error of another class."""
    from provision.commands.shared.load import SpecHasErrors

    if not isinstance(error, SpecHasErrors):
        return {}
    from provision.views.diagnostics import json as view

    return view.findings_to_json(error.diagnostics, error.source)


def write_crash_report(error: Exception) -> str:
    """Write the traceback of our bug to a file without known shapes of secrets; return its path."""
    return _write_temporary_file("provision-bug-", "".join(traceback.format_exception(error)))


def _last_lines(paragraph: str) -> list[str]:
    """Return the end of a long text, where a resolver concludes, and the file with all of it."""
    lines = paragraph.splitlines()
    if len(lines) <= _MAX_REASON_LINES:
        return lines
    path = _write_temporary_file("provision-uv-", paragraph + "\n")
    return [
        f"... {len(lines) - _MAX_REASON_LINES} lines come before these; all of it: {path}",
        *lines[-_MAX_REASON_LINES:],
    ]


def _write_temporary_file(prefix: str, text: str) -> str:
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=prefix, suffix=".txt", delete=False
    ) as file:
        file.write(redact(text))
        return file.name
