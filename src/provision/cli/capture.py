"""`provision capture`: writes down this environment, to compare it with another."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from provision.cli.app import FILE, examples, output_format_option


@click.command(
    epilog=examples(
        "provision capture -o laptop.json",
        "provision capture --python .venv/bin/python > laptop.json",
        "provision capture --spec -o provision.yaml",
        "provision capture --print-cell",
    )
)
@click.option(
    "--python",
    type=FILE,
    metavar="PATH",
    help="Use this interpreter; default: the first python3 on PATH.",
)
@click.option(
    "-o",
    "--out",
    type=FILE,
    metavar="FILE",
    help="Write the capture or the spec to a file; default: standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--print-cell",
    is_flag=True,
    help="Print a notebook cell that captures the runtime's environment; the cell installs "
    "nothing.",
)
@click.option(
    "--spec",
    "as_spec",
    is_flag=True,
    help="Write a spec from the environment: its Python and CUDA versions, its GPU, and the "
    "packages that no other package requires.",
)
@output_format_option(
    "text", "json", text="Set the output format; json prints the capture without hints."
)
def capture(
    *,
    python: Path | None,
    out: Path | None,
    force: bool,
    print_cell: bool,
    as_spec: bool,
    output_format: str,
) -> int:
    """Record this machine's GPU, driver, Python, packages and environment variable names.

    Needs no spec, changes nothing, and never records the value of a variable.
    """
    from provision.adapters import RealSystem
    from provision.adapters.zipapp_runner import run_zipapp
    from provision.cli import console
    from provision.cli.import_files import print_import
    from provision.commands import capture as command
    from provision.commands import import_files as spec_command
    from provision.errors import UsageError

    if print_cell and as_spec:
        raise UsageError(
            "--print-cell and --spec cannot be combined",
            why="the cell writes a capture, not a spec",
            hint="run the cell, then run `provision import capture.json`",
        )
    system = RealSystem()
    if out is not None:
        check_path = spec_command.check_output_path if as_spec else command.check_output_path
        check_path(out, system, force=force)
    if print_cell:
        text = command.cell_text()
    else:
        own = Path(sys.executable)
        text, remark = command.capture(python, os.environ, own, run_zipapp)
        console.print_note(f"captured: {remark}")
    if as_spec:
        result = spec_command.import_capture(text, system, out=out)
        if out is not None:
            spec_command.write_imported_spec(result, out, system, console.print_note)
        return print_import(result, out, output_format)
    if out is None:
        console.print_result(text)
    else:
        console.write_output_file(out, text, system)
    if not print_cell and output_format == "text":
        console.print_note("next: compare two captures with `provision diff A.json B.json`")
    return 0
