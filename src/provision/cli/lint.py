"""`provision lint`: the findings in specs."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import FILE, examples, output_format_option, spec_or_default


@click.command(
    epilog=examples(
        "provision lint specs/*.yaml",
        "provision lint --fix provision.yaml",
        "provision lint --output-format json provision.yaml",
    )
)
@click.argument("specs", nargs=-1, type=FILE)
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--diff", is_flag=True, help="Show the safe fixes as a diff; change nothing.")
@click.option(
    "--skip-foreign",
    is_flag=True,
    help="Leave alone files that are no specs: not called provision*.yaml, without an "
    "apiVersion of ours.",
)
@output_format_option(
    "text", "concise", "json", "sarif", "github", text="How findings are written."
)
def lint(
    specs: tuple[Path, ...], *, fix: bool, diff: bool, skip_foreign: bool, output_format: str
) -> int:
    """Say what is wrong with specs: offline, without credentials."""
    from provision.adapters import RealSystem
    from provision.cli import console, lint_output
    from provision.commands import lint as command

    system = RealSystem()
    result = command.lint(
        specs or (spec_or_default(None),),
        system,
        console.print_note,
        fix=fix or diff,
        dry=diff,
        skip_foreign=skip_foreign,
    )
    code = max(result.exit_code, int(diff and bool(result.changed)))
    lint_output.print_findings(result, output_format, system.environment(), code)
    lint_output.print_changes_and_errors(result, output_format, dry=diff)
    return code
