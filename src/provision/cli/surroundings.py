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
    from provision.world.asking import ask

    found = look(python, os.environ, Path(sys.executable), ask, with_torch=with_torch)
    if found.remark:
        terminal.note(f"note: {found.remark}")
    if form == "json":
        terminal.show(json.dumps(found.document, indent=1, sort_keys=True))
    elif form == "markdown":
        terminal.show(terminal.for_log(telling.markdown(found.document)))
    else:
        terminal.say(telling.text(found.document, terminal.width() if sys.stdout.isatty() else 0))
    return 0
