"""env: what this machine is, for a terminal, a program or a bug report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from provision.cli import console


def env(python: Path | None, *, with_torch: bool, form: str) -> int:
    """Show what this machine is; exit 0 whatever it is."""
    from provision.adapters.zipapp_runner import run_zipapp
    from provision.agent.probe import machine_info_text
    from provision.commands.env import env as look

    found = look(python, os.environ, Path(sys.executable), run_zipapp, with_torch=with_torch)
    if found.remark:
        console.print_note(f"note: {found.remark}")
    if form == "json":
        console.print_result(json.dumps(found.document, indent=1, sort_keys=True))
    elif form == "markdown":
        console.print_result(console.escape_for_log(machine_info_text.to_markdown(found.document)))
    else:
        console.print_text(
            machine_info_text.to_text(found.document, console.width() if sys.stdout.isatty() else 0)
        )
    return 0
