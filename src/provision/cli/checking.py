"""lint, explain and schema: what is said about a spec without acting on it."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import terminal
from provision.world import Machine


def lint(paths: tuple[Path, ...], *, fix: bool, dry: bool, skip_foreign: bool, form: str) -> int:
    """Show the findings in every file; exit 1 when one is an error, or when --diff shows a change, and 2 when a file cannot be read."""
    from provision.cli import findings
    from provision.commands.lint import lint as judge

    world = Machine()
    result = judge(paths, world, terminal.note, fix=fix, dry=dry, skip_foreign=skip_foreign)
    code = max(result.exit_code, int(dry and bool(result.changed)))
    findings.show(result, form, world.environment(), code)
    findings.show_beside(result, form, dry=dry)
    return code


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
