"""`provision schema`: prints the JSON Schema of specs or of reports."""

from __future__ import annotations

import click

from provision.cli.app import examples


@click.command(
    epilog=examples(
        "provision schema > provision.schema.json", "provision schema report > report.schema.json"
    )
)
@click.argument("of", type=click.Choice(["spec", "report"]), default="spec")
def schema(of: str) -> int:
    """Print the JSON Schema of specs or of reports.

    The schema of specs (draft 7) is for editors, the schema of reports (draft 2020-12) for programs
    that read reports.
    """
    from provision.cli import console
    from provision.commands.schema import report_schema_text, schema_text

    console.print_result(report_schema_text() if of == "report" else schema_text())
    return 0
