"""`provision diff`: the differences between two verifications."""

from __future__ import annotations

from pathlib import Path

import click

from provision.adapters import RealSystem
from provision.cli import console
from provision.cli.app import DEFAULT_SPEC, FILE, examples, output_format_option


@click.command(
    epilog=examples(
        "provision diff colab.json workbench.json --html diff.html",
        "provision diff colab workbench --spec specs/hf-trainer.yaml",
    )
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--spec",
    type=FILE,
    help="The spec whose targets A and B are, where they are no files.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Every difference, those of the surroundings too."
)
@click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Write the comparison as one HTML page.",
)
@output_format_option("text", "json", "markdown", "html")
def diff(
    a: str, b: str, *, spec: Path | None, everything: bool, html: Path | None, output_format: str
) -> int:
    """Say what differs between two verifications, and which difference matters.

    A and B are report.json files, or targets with stored reports. Exit 1 when an identity
    reading or a check's status differs, or
    a report was changed after the probe wrote it.
    """
    from provision.commands import diff as command
    from provision.views.diff import report_html, report_text

    # Two files need no spec: the spec of this folder may have nothing to do with them.
    are_files = a.endswith(".json") and b.endswith(".json")
    if spec is None and Path(DEFAULT_SPEC).exists() and not are_files:
        spec = Path(DEFAULT_SPEC)
    system = RealSystem()
    comparison = command.diff(a, b, spec, system, console.print_note)
    if html is not None:
        console.write_output_file(html, report_html.render_page(comparison), system)
    elif output_format == "html":
        console.print_result(report_html.render_page(comparison))
    elif output_format == "json":
        console.print_json(report_text.to_json(comparison))
    elif output_format == "markdown":
        console.print_result(report_text.render_markdown(comparison))
    else:
        text = report_text.render_text(
            comparison, console.supports_color(), console.width(), everything
        )
        console.print_result(text)
    return 0 if comparison.is_same else 1
