"""lock --check: what is said of a lock that holds, and of one that does not."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import terminal
from provision.commands.holding import moved_since
from provision.commands.naming import lock_path
from provision.world import Machine


def lock_check(path: Path, form: str) -> int:
    """Say whether the lock still holds; exit 1 when it does not."""
    moved, lock = moved_since(path, Machine()), lock_path(path)
    if form == "json":
        terminal.show(json.dumps({"version": 1, "lock": str(lock), "holds": not moved, "moved": list(moved)}, indent=1))
    elif moved:
        terminal.say("\n".join([f"{lock} does not hold; since it was made these moved:", *(f"  {line}" for line in moved)]))
    else:
        terminal.say(f"{lock} holds")
    return 1 if moved else 0
