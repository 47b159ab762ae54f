"""`provision why`: explains an error, and shows which of its causes applies here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, examples

if TYPE_CHECKING:
    from provision.adapters import RealSystem
    from provision.commands.why import ErrorLookup


@click.command(
    epilog=examples(
        "provision why trace.txt",
        "python train.py 2>&1 | provision why -",
        "provision why notebook.ipynb --spec specs/mine.yaml --fix",
    )
)
@click.argument("trace", metavar="TRACE")
@click.option(
    "--spec",
    type=FILE,
    help="Check the possible causes against this spec and its lock.",
)
@click.option("--report", type=FILE, help="Check the possible causes against this report.json.")
@click.option(
    "--fix",
    is_flag=True,
    help="Apply the fixes for the findings that explain the error, and print the changes.",
)
@OUTPUT_FORMAT
def why(
    trace: str, *, spec: Path | None, report: Path | None, fix: bool, output_format: str
) -> int:
    """Explain an error, and show which of its possible causes applies here.

    TRACE is a file with the error text, a notebook with its saved output, or - for standard
    input. Exit 1 if it contains no known error.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import why as command

    if fix and spec is None:
        raise click.UsageError("--fix needs a spec to change; pass it with --spec")
    system = RealSystem()
    text = read_error_text(trace, system)
    result = command.why(text, spec, report, system, console.print_note, fix=fix)
    _print_causes(result, output_format)
    if fix and result.explanations and not result.changed:
        console.print_note(
            f"nothing was changed: no fix in {spec} resolves this error; "
            f"`provision suggest {spec}` finds other versions"
        )
    return 0 if result.is_explained else 1


def read_error_text(trace: str, system: RealSystem) -> str:
    """Return the text of an error in a file or a notebook, or on standard input for "-"."""
    from provision.cli import console
    from provision.errors import ExternalError
    from provision.verification.error_lookup.error_text import MAX_INPUT_BYTES, extract_error_text

    try:
        if trace == "-":
            name, content = "standard input", sys.stdin.buffer.read(MAX_INPUT_BYTES)
        else:
            name, content = trace, system.read(Path(trace), MAX_INPUT_BYTES)
    except ExternalError as error:
        hint = (
            error.hint
            or "name a file that contains the error text, or pipe the error in: python "
            "train.py 2>&1 | provision why -"
        )
        raise ExternalError(error.what, why=error.why, hint=hint) from error
    text, left_out = extract_error_text(content, name)
    if left_out:
        console.print_note(
            f"the text is long: {left_out} characters in the middle were not searched"
        )
    return text


def _print_causes(result: ErrorLookup, output_format: str) -> None:
    from provision.cli import console
    from provision.views import error_lookup as view

    if output_format == "json":
        document = view.to_json(result.explanations, result.unexplained_error)
        console.print_json({**document, "changed": dict(result.changed)})
        return
    text = view.render_text(
        result.explanations,
        console.supports_color(),
        console.width(),
        " and ".join(name for name in (result.spec, result.report) if name),
        result.unexplained_error,
        fixed=bool(result.changed),
    )
    console.print_result(text)
    for diff in result.changed.values():
        console.print_note(diff.rstrip())
