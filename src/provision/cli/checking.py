"""lint, explain, suggest and schema: what is said about a spec without acting on it."""

from __future__ import annotations

import json
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console


def lint(paths: tuple[Path, ...], *, fix: bool, dry: bool, skip_foreign: bool, form: str) -> int:
    """Show the findings in every file; exit 1 when one is an error, or when --diff shows a change,
    and 2 when a file cannot be read.
    """
    from provision.cli import lint_output
    from provision.commands.lint import lint as judge

    world = RealSystem()
    result = judge(paths, world, console.print_note, fix=fix, dry=dry, skip_foreign=skip_foreign)
    code = max(result.exit_code, int(dry and bool(result.changed)))
    lint_output.print_lint_result(result, form, world.environment(), code)
    lint_output.print_changes_and_errors(result, form, dry=dry)
    return code


def explain(word: str, form: str) -> int:
    """Show the page of a rule or finding; exit 1 when there is none of that name."""
    from provision.commands.explain import find_page
    from provision.views import rule_page

    found = find_page(word)
    if form == "json":
        console.print_result(json.dumps(rule_page.to_json(found), indent=1))
    elif form == "markdown":
        console.print_result(found.markdown)
    else:
        console.print_result(
            rule_page.render_text(found, console.supports_color(), console.width())
        )
    return 0


def suggest(
    subject: Path | dict[str, str], *, most: int, with_uv: bool, offline: bool, form: str
) -> int:
    """Show combinations near a spec, or for what was named; exit 1 when none satisfies every rule,
    2 when uv was to be asked and could not be.
    """
    from provision.commands.suggest import suggest_for_options, suggest_for_spec
    from provision.views import suggestions

    world = RealSystem(offline=offline)
    with console.progress() as (tell, _):
        if isinstance(subject, Path):
            offer = suggest_for_spec(
                subject, world, tell, most=most, with_uv=with_uv, offline=offline
            )
        else:
            offer = suggest_for_options(
                subject, world, tell, most=most, with_uv=with_uv, offline=offline
            )
    console.print_result(
        json.dumps(suggestions.to_json(offer), indent=1)
        if form == "json"
        else suggestions.render_text(offer, console.supports_color(), console.width())
    )
    if offer.uv_error is not None:
        console.print_error(offer.uv_error)
        return offer.uv_error.exit_code
    return 0 if offer.has_usable_combination else 1


def schema(of: str) -> int:
    """Print the JSON Schema of specs or of reports."""
    from provision.commands.schema import report_schema_text, schema_text

    console.print_result(report_schema_text() if of == "report" else schema_text())
    return 0


def why(trace: str, spec: Path | None, report: Path | None, *, fix: bool, form: str) -> int:
    """Show what an error means; exit 1 when nothing in it is known."""
    import sys

    from provision.commands.why import why as ask
    from provision.errors import ExternalError
    from provision.verification.error_lookup.error_text import MAX_INPUT_BYTES, extract_error_text
    from provision.views import error_lookup as view

    world = RealSystem()
    try:
        content = (
            sys.stdin.buffer.read(MAX_INPUT_BYTES)
            if trace == "-"
            else world.read(Path(trace), MAX_INPUT_BYTES)
        )
    except ExternalError as error:
        hint = (
            error.hint
            or "name a file with the error's text, or pipe it in: python train.py 2>&1 | "
            "provision why -"
        )
        raise ExternalError(error.what, why=error.why, hint=hint) from error
    text, left_out = extract_error_text(content, "standard input" if trace == "-" else trace)
    if left_out:
        console.print_note(
            f"this is long: {left_out} characters in its middle are not looked through"
        )
    answer = ask(text, spec, report, world, console.print_note, fix=fix)
    if form == "json":
        console.print_result(
            json.dumps(
                {
                    **view.to_json(answer.explanations, answer.unexplained_error),
                    "changed": dict(answer.changed),
                },
                indent=1,
            )
        )
    else:
        held = " and ".join(name for name in (answer.spec, answer.report) if name)
        mended = bool(answer.changed)
        console.print_result(
            view.render_text(
                answer.explanations,
                console.supports_color(),
                console.width(),
                held,
                answer.unexplained_error,
                fixed=mended,
            )
        )
        for diff in answer.changed.values():
            console.print_note(diff.rstrip())
    if fix and answer.explanations and not answer.changed:
        console.print_note(
            f"nothing was changed: {spec} holds nothing for this error that an edit mends; "
            f"`provision suggest {spec}` looks for versions near it"
        )
    return 0 if answer.is_explained else 1
