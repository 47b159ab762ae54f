"""`provision diff`: the differences between two environments."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import click

from provision.adapters import RealSystem
from provision.cli import console
from provision.cli.app import DEFAULT_SPEC, FILE, examples, output_format_option


@click.command(
    epilog=examples(
        "provision diff laptop.json colab.json --error trace.txt",
        "provision diff colab.json workbench.json --html diff.html",
        "provision diff colab workbench --spec specs/hf-trainer.yaml",
    )
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--spec",
    type=FILE,
    help="Look up the targets A and B in this spec; default: provision.yaml.",
)
@click.option(
    "--error",
    type=FILE,
    metavar="FILE",
    help="Read an error message from this file (- for standard input), and list the "
    "differences that could have caused it first.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show all differences, including minor ones and those in the machines themselves.",
)
@click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Write the comparison to an HTML file.",
)
@output_format_option("text", "json", "markdown", "html")
def diff(
    a: str,
    b: str,
    *,
    spec: Path | None,
    error: Path | None,
    everything: bool,
    html: Path | None,
    output_format: str,
) -> int:
    """Compare two environments, and show the difference that matters first.

    A and B are captures (`provision capture`), machine descriptions (`provision env
    --output-format json`), report.json files, or targets with stored reports. Exit 1 if something
    that matters differs, or if a report was changed after the probe wrote it.
    """
    from provision.cli.why import read_error_text
    from provision.commands import diff as command
    from provision.verification.diff.model import ReportComparison
    from provision.views.diff import (
        report_html,
        report_text,
        snapshot_html,
        snapshot_text,
    )

    system = RealSystem()
    # Two files need no spec: the spec of this folder may have nothing to do with them.
    are_files = command.is_file(a, system) and command.is_file(b, system)
    if spec is None and Path(DEFAULT_SPEC).exists() and not are_files:
        spec = Path(DEFAULT_SPEC)
    text = read_error_text(str(error), system) if error is not None else None
    comparison = command.diff(a, b, spec, system, console.print_note, text)
    view: ModuleType = report_text
    page: ModuleType = report_html
    if not isinstance(comparison, ReportComparison):
        view, page = snapshot_text, snapshot_html
    if html is not None:
        console.write_output_file(html, page.render_page(comparison), system)
    elif output_format == "html":
        console.print_result(page.render_page(comparison))
    elif output_format == "json":
        console.print_json(view.to_json(comparison))
    elif output_format == "markdown":
        console.print_result(view.render_markdown(comparison))
    else:
        color, width = console.supports_color(), console.width()
        console.print_result(view.render_text(comparison, color, width, everything))
    return 0 if comparison.is_same else 1
