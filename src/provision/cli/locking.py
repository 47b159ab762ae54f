"""lock: what is said of a lock that was made or kept, and the warnings that come with one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from provision.cli import terminal
from provision.commands.loading import Loaded, load
from provision.commands.lock import Locked, settle, write_lock
from provision.diagnostics import Diagnostic
from provision.views import lock as lock_view
from provision.world import Machine

_SHOWN = 8


def lock(path: Path, *, upgrade: bool | frozenset[str], offline: bool, form: str) -> int:
    """Make or renew the lock beside the spec; `upgrade` chooses every version anew, or those of the named packages."""
    world = Machine(offline=offline)
    loaded = load(path, world)
    with terminal.progress() as (tell, _):
        locked = settle(loaded, world, tell, upgrade=upgrade, repair=True)
        if locked.fresh:
            write_lock(loaded, locked.lock, world, tell)
    warn(loaded, (*loaded.diagnostics, *locked.warnings))
    unconfirmed = warn_unconfirmed(locked)
    if form == "json":
        document = {"version": 1, "lock": str(loaded.lock_path), "changed": locked.fresh, "because": locked.because, "digest": locked.lock.digest}
        repaired = {"repaired": locked.repair._asdict()} if locked.repair is not None else {}
        terminal.show(json.dumps({**document, **repaired, **lock_view.document(locked.lock), "unconfirmed": unconfirmed}, indent=1))
        return 0
    if locked.repair is not None:
        terminal.say(f"repaired: {locked.because}\n{lock_view.repair(locked.repair)}")
    terminal.say(f"{'wrote' if locked.fresh else 'kept'} {loaded.lock_path}\n{lock_view.text(locked.lock)}")
    return 0


def warn(loaded: Loaded, diagnostics: tuple[Diagnostic, ...]) -> None:
    """Show what was found in a spec beside the result."""
    if diagnostics:
        from provision.views import text

        terminal.beside(text.findings(diagnostics, loaded.source, terminal.colored(sys.stderr), terminal.width()))


def warn_unconfirmed(locked: Locked) -> list[str]:
    """Name the packages whose hashes nothing has confirmed, and return their names."""
    names = [f"{package.name} {package.version}" for package in locked.lock.packages if package.unconfirmed]
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        terminal.note(f"warning: not confirmed by an index or another source, taken from this machine's files: {', '.join(names[:_SHOWN])}{more}")
    return list(dict.fromkeys(package.name for package in locked.lock.packages if package.unconfirmed))
