"""lint, explain and schema: what is said about a spec without acting on it."""

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
        terminal.show(json.dumps(data.joined(data.findings(judged.diagnostics, judged.source) for judged in documents), indent=1))
    elif form == "concise":
        terminal.show("".join(text.concise(judged.diagnostics, judged.source) for judged in documents))
    else:
        frames = (text.findings(j.diagnostics, j.source, terminal.colored(), terminal.width(), with_footer=False) for j in documents)
        everything = [diagnostic for judged in documents for diagnostic in judged.diagnostics]
        fixable = sum(text.fixable(judged.diagnostics, judged.source) for judged in documents)
        terminal.show("\n".join([*(frame for frame in frames if frame), text.footer(everything, fixable)]))
    for name, diff in result.changed.items():
        terminal.note(diff if dry else f"fixed {name}")
    return 1 if dry and result.changed else result.exit_code


def explain(word: str, form: str) -> int:
    """Show the page of a rule or finding; exit 1 when there is none of that name."""
    from provision.commands.explain import page
    from provision.views import pages

    found = page(word)
    if form == "json":
        terminal.show(json.dumps(pages.document(found), indent=1))
    elif form == "markdown":
        terminal.show(found.markdown)
    else:
        terminal.show(pages.text(found, terminal.colored(), terminal.width()))
    return 0


def schema() -> int:
    """Print the JSON Schema."""
    from provision.commands.schema import schema_text

    terminal.show(schema_text())
    return 0
