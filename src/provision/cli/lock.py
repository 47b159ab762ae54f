"""lock: what is said of a lock that was made or kept, and the warnings that come with one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.lock import LockResult, ensure_lock, write_lock
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.diagnostics import Diagnostic
from provision.views import lock as lock_view

_SHOWN = 8


def lock(path: Path, *, upgrade: bool | frozenset[str], offline: bool, form: str) -> int:
    """Make or renew the lock beside the spec; `upgrade` chooses every version anew, or those of the
    named packages.
    """
    world = RealSystem(offline=offline)
    loaded = load_spec(path, world)
    with console.progress() as (tell, _):
        locked = ensure_lock(loaded, world, tell, upgrade=upgrade, repair=True)
        if locked.fresh:
            write_lock(loaded, locked.lock, world, tell)
    print_warnings(loaded, (*loaded.diagnostics, *locked.warnings))
    unconfirmed = print_unconfirmed_hashes(locked)
    if form == "json":
        document = {
            "version": 1,
            "lock": str(loaded.lock_path),
            "changed": locked.fresh,
            "because": locked.reason,
            "digest": locked.lock.digest,
        }
        repaired = {"repaired": locked.repair._asdict()} if locked.repair is not None else {}
        console.print_result(
            json.dumps(
                {
                    **document,
                    **repaired,
                    **lock_view.to_json(locked.lock),
                    "unconfirmed": unconfirmed,
                },
                indent=1,
            )
        )
        return 0
    if locked.repair is not None:
        console.print_text(f"repaired: {locked.reason}\n{lock_view.render_repair(locked.repair)}")
    console.print_text(
        f"{'wrote' if locked.fresh else 'kept'} "
        f"{loaded.lock_path}\n{lock_view.render_text(locked.lock)}"
    )
    return 0


def print_warnings(loaded: LoadedSpec, diagnostics: tuple[Diagnostic, ...]) -> None:
    """Show what was found in a spec beside the result."""
    if diagnostics:
        from provision.views.diagnostics import text

        console.print_stderr(
            text.render_findings(
                diagnostics, loaded.source, console.supports_color(sys.stderr), console.width()
            )
        )


def print_unconfirmed_hashes(locked: LockResult) -> list[str]:
    """Name the packages whose hashes nothing has confirmed, and return their names."""
    names = [
        f"{package.name} {package.version}"
        for package in locked.lock.packages
        if package.unconfirmed
    ]
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        console.print_note(
            "warning: not confirmed by an index or another source, taken from this "
            f"machine's files: {', '.join(names[:_SHOWN])}{more}"
        )
    return list(
        dict.fromkeys(package.name for package in locked.lock.packages if package.unconfirmed)
    )
