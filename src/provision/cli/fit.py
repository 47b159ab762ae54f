"""`provision fit`: compares what a training takes with what every target has."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, SPEC, TARGETS, examples


@click.command(
    epilog=examples(
        "provision fit",
        "provision fit --run .provision/reports/local/runs/RECORD.json",
        "provision fit --html fit.html",
    )
)
@SPEC
@TARGETS
@click.option(
    "--run",
    "record",
    type=FILE,
    help="Use the peak usage in this `provision run` record; default: the newest record of the "
    "spec that has one.",
)
@click.option("--html", type=FILE, help="Write the comparison to an HTML file.")
@OUTPUT_FORMAT
def fit(
    spec: Path,
    targets: tuple[str, ...],
    *,
    record: Path | None,
    html: Path | None,
    output_format: str,
) -> int:
    """Compare the memory and disk that a training run needs with what each target has.

    The needs are estimated from the spec, and measured by the last recorded `provision run`.
    Exit 1 if the training run does not fit on a target.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import fit as command
    from provision.views import fit as view

    system = RealSystem()
    result = command.fit(spec, targets, record, system)
    if html is not None:
        page = view.render_page(result.spec, result.targets, result.run)
        console.write_output_file(html, page, system)
    elif output_format == "json":
        console.print_json(view.to_json(result.spec, result.targets, result.run))
    else:
        width = console.text_width(sys.stdout)
        text = view.render_text(result.targets, result.run, console.supports_color(), width)
        console.print_result(text)
    return result.exit_code
