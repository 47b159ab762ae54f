"""env: what this machine is, for a terminal, a program or a bug report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from provision.cli import terminal


def env(python: Path | None, *, with_torch: bool, form: str) -> int:
    """Show what this machine is; exit 0 whatever it is."""
    from provision.commands.env import env as look
    from provision.probe import telling
    from provision.world.asking import run_zipapp

    found = look(python, os.environ, Path(sys.executable), run_zipapp, with_torch=with_torch)
    if found.remark:
        terminal.print_note(f"note: {found.remark}")
    if form == "json":
        terminal.print_result(json.dumps(found.document, indent=1, sort_keys=True))
    elif form == "markdown":
        terminal.print_result(terminal.escape_for_log(telling.to_markdown(found.document)))
    else:
        terminal.print_text(telling.to_text(found.document, terminal.width() if sys.stdout.isatty() else 0))
    return 0
