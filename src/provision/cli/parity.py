"""`provision parity`: shows what is proven equal across the targets of a spec."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import (
    OUTPUT_FORMAT_WITH_MARKDOWN,
    SANDBOX,
    SPEC,
    examples,
)


@click.command(
    epilog=examples(
        "provision parity", "provision parity specs/hf-trainer.yaml --output-format markdown"
    )
)
@SPEC
@SANDBOX
@OUTPUT_FORMAT_WITH_MARKDOWN
def parity(spec: Path, *, sandbox: bool, output_format: str) -> int:
    """Show what is proven equal across all targets, and how to prove the rest.

    Exit 1 if a difference is proven, 3 if something is not proven yet.
    """
    from provision.cli import console
    from provision.cli.session import import_dropped_reports, open_session
    from provision.commands import parity as command
    from provision.state_store import LocalStore
    from provision.views import parity as view

    with open_session(spec, sandbox=sandbox) as (loaded, system):
        import_dropped_reports(loaded, system)
        ledger = LocalStore(loaded.folder, system).load_ledger()
        result = command.parity(loaded, ledger, system)
    if output_format == "json":
        console.print_json(view.to_json(result))
    elif output_format == "markdown":
        console.print_view(view.render_markdown(result))
    else:
        console.print_rendered(view.render_text, result)
    return result.exit_code
