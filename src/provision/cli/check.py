"""`provision check`: checks requirements, notebooks and files of other tools for places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import FILE, completed_by, examples, output_format_option

if TYPE_CHECKING:
    from provision.commands.check import CheckResult
    from provision.effects.system import Reader, System


@click.command(
    epilog=examples(
        "provision check requirements.txt",
        "provision check requirements.txt --on colab-t4 --on workbench-l4 --on this",
        "provision check train.ipynb --on colab-t4@2026.07",
        "pip freeze | provision check - --on this",
        "provision check pyproject.toml --group train --output-format github",
    )
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--on",
    "places",
    multiple=True,
    metavar="PLACE",
    shell_complete=completed_by("places"),
    help="Check against this runtime, image or machine (`provision facts list places` lists them); "
    "repeatable, or a comma-separated list; default: the runtime recorded in the notebook, "
    "otherwise colab-t4, workbench-l4 and the local machine.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="Also check the packages in this group or extra; repeatable.",
)
@output_format_option("text", "concise", "json", "sarif", "github")
def check(
    files: tuple[Path, ...],
    *,
    places: tuple[str, ...],
    groups: tuple[str, ...],
    output_format: str,
) -> int:
    """Check requirements, notebooks and other tools' files, without a spec.

    `-` reads requirements or a notebook from standard input.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import check as command

    is_stdin = Path("-") in files
    system: System = RealSystem()
    if is_stdin:
        from provision.commands.lint_files import read_stdin

        files, system = read_stdin(files, None, "stdin-requirements.txt", system)
    result = command.check_files(files, system, places, groups)
    if output_format == "json":
        _print_json(result)
    elif output_format == "text":
        _print_text(result, groups, is_stdin=is_stdin)
    else:
        _print_for_tools(result, output_format, system)
    if output_format != "github":
        for _, error in result.failed_files:
            console.print_error(error)
    return result.exit_code


def _print_json(result: CheckResult) -> None:
    from provision.cli import console
    from provision.views import checked_places

    document = checked_places.to_json(
        result.findings, result.source, result.places, result.leftovers
    )
    if result.failed_files:
        document["errors"] = [console.error_to_json(error) for _, error in result.failed_files]
    console.print_json(document)


def _print_text(result: CheckResult, groups: tuple[str, ...], *, is_stdin: bool) -> None:
    from provision.cli import console
    from provision.views import checked_places
    from provision.views.diagnostics import text

    if not result.files:
        return
    color = console.supports_color()
    parts = []
    if result.findings:
        parts.append(
            text.render_findings(
                result.diagnostics, result.source, color, console.width(), with_footer=False
            )
        )
    if result.leftovers:
        parts.append(checked_places.render_leftover_lines(result.leftovers, console.width()) + "\n")
    parts.append(checked_places.render_places(result.places, color) + "\n")
    command = checked_places.save_command([path for path, _ in result.files], groups)
    if not is_stdin:
        parts.append(f"To save a spec: {command}")
    console.print_view("\n".join(parts))


def _print_for_tools(result: CheckResult, output_format: str, system: Reader) -> None:
    from provision.cli import console, lint_output
    from provision.views import imported_files
    from provision.views.diagnostics import text

    if output_format == "concise":
        notes = imported_files.render_leftovers_concise(result.leftovers)
        console.print_view(text.render_concise(result.diagnostics, result.source) + notes)
        return
    documents = [result.source.findings_in_files(result.diagnostics)] if result.files else []
    unread = [(str(path), error) for path, error in result.failed_files]
    if output_format == "github":
        lint_output.print_annotations(documents, unread, system.environment())
    else:
        lint_output.print_sarif(documents, unread, system.environment(), result.exit_code)
