"""`provision import`: turns requirements, notebooks and files of other tools into a spec."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, examples

if TYPE_CHECKING:
    from provision.commands.import_files import ImportResult


@click.command(
    "import",
    epilog=examples(
        "provision import requirements.txt -o provision.yaml",
        "provision import environment.yml train.ipynb",
        "provision import pyproject.toml uv.lock --group train",
    ),
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--out", "-o", type=FILE, help="Write the spec to this file; default: standard output."
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="Also import the packages in this group or extra; repeatable.",
)
@OUTPUT_FORMAT
def import_files(
    files: tuple[Path, ...],
    *,
    out: Path | None,
    force: bool,
    groups: tuple[str, ...],
    output_format: str,
) -> int:
    """Turn requirements, notebooks and other tools' files into a spec."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import import_files as command

    system = RealSystem()
    if out is not None:
        command.check_output_path(out, system, force=force)
    result = command.import_files(files, system, out=out, groups=groups)
    if out is not None:
        command.write_imported_spec(result, out, system, console.print_note)
    return print_import(result, out, output_format)


def print_import(result: ImportResult, out: Path | None, output_format: str) -> int:
    """Print what was imported, and the spec if it was not written; return the exit code."""
    from provision.cli import console
    from provision.views import imported_files

    parts = result.files, result.project, result.spec
    if output_format == "json":
        from provision.views.diagnostics import json as findings

        document = imported_files.to_json(*parts)
        checked = findings.findings_to_json(result.checked.diagnostics, result.checked.source)
        document["diagnostics"] = checked["diagnostics"]
        document["placeholders"] = list(result.placeholders)
        console.print_document(wrote=str(out) if out else None, **document)
        return result.exit_code
    width = console.text_width(sys.stderr)
    console.print_stderr(imported_files.render_summary(*parts, width))
    console.print_findings(result.checked.diagnostics, result.checked.source)
    if out is None:
        console.print_result(result.spec.text)
        return result.exit_code
    quoted = shlex.quote(str(out))
    following = f"provision lint {quoted}, then provision lock {quoted}"
    if result.placeholders:
        following = f"set {', '.join(result.placeholders)}; then {following}"
    if result.exit_code:
        following = f"fix the problems listed above, then provision lint {quoted}"
    console.print_text(f"wrote {out}\nnext: {following}")
    return result.exit_code
