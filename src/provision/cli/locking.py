"""lock: what is said of a lock that was made or kept, and the warnings that come with one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from provision.cli import terminal
from provision.commands.loading import Loaded, load
from provision.commands.lock import Locked, settle, write_lock
from provision.diagnostics import Diagnostic
from provision.world import Machine


def lock(path: Path, *, upgrade: bool, offline: bool, form: str) -> int:
    """Make or renew the lock beside the spec."""
    world = Machine(offline=offline)
    loaded = load(path, world)
    with terminal.progress() as (tell, _):
        locked = settle(loaded, world, tell, upgrade=upgrade)
        if locked.fresh:
            write_lock(loaded, locked.lock, world, tell)
    warn(loaded, (*loaded.diagnostics, *locked.warnings))
    unconfirmed = warn_unconfirmed(locked)
    if form == "json":
        environments = {e.key: {"flavour": e.flavour, "digest": e.digest, "packages": len(locked.lock.held_by(e))} for e in locked.lock.environments}
        document = {"version": 1, "lock": str(loaded.lock_path), "changed": locked.fresh, "because": locked.because, "digest": locked.lock.digest}
        terminal.show(json.dumps({**document, "environments": environments, "unconfirmed": unconfirmed}, indent=1))
        return 0
    held = ", ".join(f"{e.key}: {len(locked.lock.held_by(e))} packages ({e.because})" for e in locked.lock.environments)
    terminal.say(f"{'wrote' if locked.fresh else 'kept'} {loaded.lock_path}: {held}")
    return 0


def warn(loaded: Loaded, diagnostics: tuple[Diagnostic, ...]) -> None:
    """Show what was found in a spec beside the result."""
    if diagnostics:
        from provision.views import text

        terminal.beside(text.findings(diagnostics, loaded.source, terminal.colored(sys.stderr), terminal.width()))


def warn_unconfirmed(locked: Locked) -> list[str]:
    """Name the packages whose hashes nothing has confirmed, and return their names."""
    names = [package.name for package in locked.lock.packages if package.unconfirmed]
    if names:
        terminal.note(f"warning: not confirmed by an index or another source, taken from this machine's files: {', '.join(names)}")
    return names
