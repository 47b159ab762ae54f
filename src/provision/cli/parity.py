"""`provision parity`: what is proven equal across the targets of a spec."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.options import (
    OUTPUT_FORMAT_WITH_MARKDOWN,
    SANDBOX,
    SPEC,
    examples,
    spec_or_default,
)


@click.command(
    epilog=examples(
        "provision parity", "provision parity specs/hf-trainer.yaml --output-format markdown"
    )
)
@SPEC
@SANDBOX
@OUTPUT_FORMAT_WITH_MARKDOWN
def parity(spec: Path | None, *, sandbox: bool, output_format: str) -> int:
    """Say what is proven equal across all targets, and how to prove the rest.

    Exit 1 with a proven difference, 3 while something is not yet proven.
    """
    from provision.cli import console
    from provision.cli.dropped_reports import import_dropped_reports
    from provision.cli.session import open_session
    from provision.commands import parity as command
    from provision.state_store import LocalStore
    from provision.views import parity as view

    with open_session(spec_or_default(spec), sandbox=sandbox) as (loaded, system):
        import_dropped_reports(loaded, system)
        ledger = LocalStore(loaded.folder, system).load_ledger()
        result = command.parity(loaded, ledger, system)
    if output_format == "json":
        console.print_json(view.to_json(result))
    elif output_format == "markdown":
        console.print_view(view.render_markdown(result))
    else:
        console.print_view(view.render_text(result, console.supports_color(), console.width()))
    return result.exit_code
