"""`provision explain`: the page of a rule or a check."""

from __future__ import annotations

import click

from provision.cli.app import OUTPUT_FORMAT_WITH_MARKDOWN, completed_by, examples


@click.command(
    epilog=examples(
        "provision explain PKG001",
        "provision explain trainer-needs-accelerate --output-format markdown",
    )
)
@click.argument("rule", metavar="RULE", shell_complete=completed_by("rules"))
@OUTPUT_FORMAT_WITH_MARKDOWN
def explain(rule: str, *, output_format: str) -> int:
    """Explain a finding by its id or name."""
    from provision.cli import console
    from provision.commands.explain import find_page
    from provision.views import rule_page

    page = find_page(rule)
    if output_format == "json":
        console.print_json(rule_page.to_json(page))
    elif output_format == "markdown":
        console.print_result(page.markdown)
    else:
        console.print_rendered(rule_page.render_text, page)
    return 0
