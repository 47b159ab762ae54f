"""lint, explain, suggest and schema: what is said about a spec without acting on it."""

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


def suggest(subject: Path | dict[str, str], *, most: int, with_uv: bool, offline: bool, form: str) -> int:
    """Show combinations near a spec, or for what was named; exit 1 when none satisfies every rule, 2 when uv was to be asked and could not be."""
    from provision.commands.suggest import suggest_for_spec, suggest_for_words
    from provision.views import suggestions

    world = Machine(offline=offline)
    with terminal.progress() as (tell, _):
        if isinstance(subject, Path):
            offer = suggest_for_spec(subject, world, tell, most=most, with_uv=with_uv, offline=offline)
        else:
            offer = suggest_for_words(subject, world, tell, most=most, with_uv=with_uv, offline=offline)
    terminal.show(json.dumps(suggestions.document(offer), indent=1) if form == "json" else suggestions.text(offer, terminal.colored(), terminal.width()))
    if offer.trouble is not None:
        terminal.show_error(offer.trouble)
        return offer.trouble.exit_code
    return 0 if offer.holds else 1


def schema(of: str) -> int:
    """Print the JSON Schema of specs or of reports."""
    from provision.commands.schema import report_schema_text, schema_text

    terminal.show(report_schema_text() if of == "report" else schema_text())
    return 0


def why(trace: str, spec: Path | None, report: Path | None, *, fix: bool, form: str) -> int:
    """Show what an error means; exit 1 when nothing in it is known."""
    import sys

    from provision.commands.why import why as ask
    from provision.errors import WorldError
    from provision.verification.error_text import LIMIT, text_of
    from provision.views import why as view

    world = Machine()
    try:
        content = sys.stdin.buffer.read(LIMIT) if trace == "-" else world.read(Path(trace), LIMIT)
    except WorldError as error:
        hint = error.hint or "name a file with the error's text, or pipe it in: python train.py 2>&1 | provision why -"
        raise WorldError(error.what, why=error.why, hint=hint) from error
    text, left_out = text_of(content, "standard input" if trace == "-" else trace)
    if left_out:
        terminal.note(f"this is long: {left_out} characters in its middle are not looked through")
    answer = ask(text, spec, report, world, terminal.note, fix=fix)
    if form == "json":
        terminal.show(json.dumps({**view.document(answer.explanations, answer.unknown), "changed": dict(answer.changed)}, indent=1))
    else:
        held = " and ".join(name for name in (answer.spec, answer.report) if name)
        mended = bool(answer.changed)
        terminal.show(view.text(answer.explanations, terminal.colored(), terminal.width(), held, answer.unknown, mended=mended))
        for diff in answer.changed.values():
            terminal.note(diff.rstrip())
    if fix and answer.explanations and not answer.changed:
        terminal.note(f"nothing was changed: {spec} holds nothing for this error that an edit mends; `provision suggest {spec}` looks for versions near it")
    return 0 if answer.holds else 1
