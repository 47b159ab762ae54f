"""`provision schema`: prints the JSON Schema of specs or of reports."""

from __future__ import annotations

import click

from provision.cli.app import examples


@click.command(
    epilog=examples(
        "provision schema > provision.schema.json",
        "provision schema report > report.schema.json",
        "provision schema lint > lint.schema.json",
    )
)
@click.argument("of", type=click.Choice(["spec", "report", "lint"]), default="spec")
def schema(of: str) -> int:
    """Print the JSON Schema for specs, reports or lint findings.

    The schema for specs (draft 7) is for editors; the schemas for reports and findings (draft
    2020-12) are for programs that read them.
    """
    from provision.cli import console
    from provision.commands.schema import document_schema_text, schema_text

    console.print_result(schema_text() if of == "spec" else document_schema_text(of))
    return 0
