"""Remarks about a spec and its lock next to the result of a command."""

from __future__ import annotations

import sys

from provision.cli import console
from provision.commands.lock import LockResult
from provision.commands.shared.load import LoadedSpec

_MAX_NAMES = 8


def print_warnings(loaded: LoadedSpec, locked: LockResult | None = None) -> None:
    """Show the warnings of a spec, and those of its lock."""
    diagnostics = (*loaded.diagnostics, *(locked.warnings if locked is not None else ()))
    if diagnostics:
        from provision.views.diagnostics import text

        color = console.supports_color(sys.stderr)
        console.print_stderr(
            text.render_findings(diagnostics, loaded.source, color, console.width())
        )


def print_unconfirmed_hashes(locked: LockResult) -> None:
    """Name the packages whose hashes nothing has confirmed."""
    names = [
        f"{package.name} {package.version}"
        for package in locked.lock.packages
        if package.unconfirmed
    ]
    if names:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        console.print_note(
            "warning: not confirmed by an index or another source, taken from this "
            f"machine's files: {', '.join(names[:_MAX_NAMES])}{more}"
        )


def changed_lock_line(loaded: LoadedSpec, locked: LockResult) -> str:
    """Return the line of a plan about a lock that is written anew; "" for one that is kept."""
    if not locked.fresh:
        return ""
    return f"{loaded.lock_path}: {len(locked.lock.packages)} packages locked ({locked.reason})"
