"""`provision env`: what this machine is, for a terminal, a program or a bug report."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from provision.cli.app import FILE, OUTPUT_FORMAT_WITH_MARKDOWN, examples


@click.command(
    epilog=examples(
        "provision env",
        "provision env --torch",
        "provision env --python .venv/bin/python --output-format markdown",
    )
)
@click.option(
    "--python",
    type=FILE,
    metavar="PATH",
    help="Look from this interpreter; default: the first python3 on the PATH.",
)
@click.option(
    "--torch",
    is_flag=True,
    help="Import torch there, in a process of its own, and tell what it sees.",
)
@OUTPUT_FORMAT_WITH_MARKDOWN
def env(*, python: Path | None, torch: bool, output_format: str) -> int:
    """Say what this machine is: no spec is needed, nothing is changed."""
    from provision.adapters.zipapp_runner import run_zipapp
    from provision.agent.probe import machine_info_view as view
    from provision.cli import console
    from provision.commands import env as command

    own = Path(sys.executable)
    machine, remark = command.env(python, os.environ, own, run_zipapp, with_torch=torch)
    if remark:
        console.print_note(f"note: {remark}")
    if output_format == "json":
        console.print_json(machine, sort_keys=True)
    elif output_format == "markdown":
        console.print_view(view.to_markdown(machine))
    else:
        width = console.width() if sys.stdout.isatty() else 0
        console.print_text(view.to_text(machine, width))
    return 0
