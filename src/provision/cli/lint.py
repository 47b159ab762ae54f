"""`provision lint`: checks specs and notebooks."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import FILE, examples, output_format_option, spec_or_default
from provision.errors import UsageError


@click.command(
    epilog=examples(
        "provision lint specs/*.yaml",
        "provision lint --fix provision.yaml",
        "provision lint --output-format json provision.yaml",
        "provision lint train.ipynb --spec provision.yaml",
    )
)
@click.argument("files", metavar="[SPEC|NOTEBOOK]...", nargs=-1, type=FILE)
@click.option(
    "--spec",
    type=FILE,
    help="Check notebooks for the targets of this spec and with its lock; default: no spec.",
)
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix or --diff, also apply fixes that may change what the spec declares.",
)
@click.option("--diff", is_flag=True, help="Show the safe fixes as a diff; change nothing.")
@click.option(
    "--skip-foreign",
    is_flag=True,
    help="Skip notebooks, and files that are not specs by their name and apiVersion.",
)
@output_format_option("text", "concise", "json", "sarif", "github")
def lint(
    files: tuple[Path, ...],
    *,
    spec: Path | None,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    skip_foreign: bool,
    output_format: str,
) -> int:
    """Check specs and notebooks, offline and without credentials."""
    if unsafe_fixes and not (fix or diff):
        raise UsageError(
            "--unsafe-fixes needs --fix or --diff", hint="add --diff to review the fixes"
        )
    from provision.adapters import RealSystem
    from provision.cli import console, lint_output
    from provision.commands import lint as command

    system = RealSystem()
    result = command.lint(
        files or (spec_or_default(None),),
        system,
        console.print_note,
        fix=fix or diff,
        unsafe=unsafe_fixes,
        dry=diff,
        skip_foreign=skip_foreign,
        notebook_spec=spec,
    )
    code = max(result.exit_code, int(diff and bool(result.changed)))
    lint_output.print_findings(result, output_format, system.environment(), code)
    lint_output.print_changes_and_errors(result, output_format, dry=diff)
    return code
