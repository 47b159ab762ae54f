"""diff and lock --diff: two reports, or two locks, beside each other; for a terminal, a program or a pull request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from provision.cli import terminal
from provision.commands.holding import LIMIT
from provision.commands.loading import load
from provision.commands.lock_changes import new_lock, old_lock, review
from provision.errors import WorldError
from provision.lock.asked import differences
from provision.world import Machine

if TYPE_CHECKING:
    from provision.verification.compared import Comparison


def reports(one: str, other: str, spec: Path | None, *, everything: bool, page: Path | None, form: str) -> int:
    """Show what differs between two reports, or write it as a page; exit 1 when an identity reading or a check's status does."""
    from provision.commands.diff import diff as compared
    from provision.views import comparison

    found = compared(one, other, spec, Machine(), terminal.note)
    if page is not None or form == "html":
        _as_page(found, page)
    elif form == "json":
        terminal.show(json.dumps(comparison.document(found), indent=1))
    elif form == "markdown":
        terminal.show(comparison.markdown(found))
    else:
        terminal.show(comparison.text(found, terminal.colored(), terminal.width(), everything))
    return 0 if found.same else 1


def _as_page(found: Comparison, page: Path | None) -> None:
    from provision.effects import WriteFile
    from provision.views import side_by_side

    if page is None:
        terminal.show(side_by_side.page(found))
    else:
        Machine().perform(WriteFile(page, side_by_side.page(found), 0o600), terminal.note)
        terminal.note(f"wrote {page}")


def locks(path: Path, old: Path, form: str) -> int:
    """Show what differs from the lock at `old` ("-": standard input) to the one beside the spec; exit 0 also when something does."""
    world = Machine()
    loaded = load(path, world)
    name, before = old_lock(None, _given(), world) if str(old) == "-" else old_lock(old, b"", world)
    after = new_lock(loaded, world)
    if moved := differences(loaded.spec, after):
        terminal.note("\n".join([f"note: {loaded.lock_path} is stale; since it was made these moved:", *(f"  {line}" for line in moved)]))
    found = review(loaded, before, after, name)
    if form == "json":
        from provision.views import lock_changes

        terminal.show(json.dumps(lock_changes.document(found, loaded.source), indent=1))
    elif form == "markdown":
        from provision.views import lock_comment

        terminal.show(lock_comment.comment(found, loaded.source))
    else:
        from provision.views import lock_changes

        terminal.show(terminal.for_log(lock_changes.text(found, loaded.source, terminal.colored(), terminal.width())))
    return 0


def _given() -> bytes:
    try:
        return sys.stdin.buffer.read(LIMIT + 1)
    except OSError as error:
        raise WorldError("cannot read standard input", why=error.strerror or str(error), hint="pipe the older lock into it, or name a file") from error
