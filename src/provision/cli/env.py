"""`provision env`: describes this machine for a terminal, a program or a bug report."""

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
    help="Use this interpreter; default: the first python3 on PATH.",
)
@click.option(
    "--torch",
    is_flag=True,
    help="Also import torch in a subprocess, and show what it detects.",
)
@OUTPUT_FORMAT_WITH_MARKDOWN
def env(*, python: Path | None, torch: bool, output_format: str) -> int:
    """Describe this machine. Needs no spec and changes nothing."""
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
