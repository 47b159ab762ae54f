"""`provision report run`: shows the record of a run."""

from __future__ import annotations

import os
from pathlib import Path

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, SPEC, TARGET, examples


@click.command(
    epilog=examples(
        "provision report run",
        "provision report run --html run.html",
        "provision report run path/to/record.json",
    )
)
@SPEC
@TARGET
@click.option(
    "--html",
    type=FILE,
    help="Write the record with its chart to an HTML file.",
)
@OUTPUT_FORMAT
def run(spec: Path, *, target: str | None, html: Path | None, output_format: str) -> int:
    """Show the resources that the last `provision run` used.

    SPEC can be the record of a run.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.shared.load import load_spec
    from provision.commands.shared.run_records import latest_run_record, read_run_record
    from provision.commands.shared.target_selection import select_target
    from provision.views import run_record_html, run_record_text

    system = RealSystem()
    path = spec
    if path.suffix != ".json":
        loaded = load_spec(path, system)
        name = select_target(loaded, target)
        path = latest_run_record(loaded, name, system)
    record = read_run_record(path, system)
    if html is not None:
        console.write_output_file(html, run_record_html.render_page(record), system)
    elif output_format == "json":
        console.print_json(record, sort_keys=True)
    else:
        lines = run_record_text.render_lines(record, console.width())
        console.print_text("\n".join([*lines, f"record     {os.path.relpath(path)}"]))
    return 0
