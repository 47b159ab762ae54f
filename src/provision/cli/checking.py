"""lint and schema: what is said about a spec without acting on it."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import terminal
from provision.world import Machine


def lint(paths: tuple[Path, ...], *, fix: bool, dry: bool, form: str) -> int:
    """Show the findings in every file; exit 1 when one is an error, or when --diff shows a change."""
    from provision.commands.lint import lint as judge
    from provision.views import json as data
    from provision.views import text

    result = judge(paths, Machine(), terminal.note, fix=fix, dry=dry)
    documents = result.documents
    if form == "json":
        found = data.joined(data.findings(judged.diagnostics, judged.source) for judged in documents)
        errors = {"errors": [terminal.told(error) for error in result.errors]} if result.errors else {}
        terminal.show(json.dumps({**found, **errors}, indent=1))
    elif form == "concise":
        terminal.show("".join(text.concise(judged.diagnostics, judged.source) for judged in documents))
    elif documents:
        frames = (text.findings(j.diagnostics, j.source, terminal.colored(), terminal.width(), with_footer=False) for j in documents)
        everything = [diagnostic for judged in documents for diagnostic in judged.diagnostics]
        fixable = sum(text.fixable(judged.diagnostics, judged.source) for judged in documents)
        terminal.show("\n".join([*(frame for frame in frames if frame), text.footer(everything, fixable)]))
    for name, diff in result.changed.items():
        terminal.note(diff if dry else f"fixed {name}")
    for error in result.errors:
        terminal.show_error(error)
    return 1 if dry and result.changed and not result.errors else result.exit_code


def schema() -> int:
    """Print the JSON Schema."""
    from provision.commands.schema import schema_text

    terminal.show(schema_text())
    return 0
