"""diff and lock --diff: two reports, or two locks, beside each other; for a terminal, a program or a pull request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from provision.cli import terminal
from provision.commands.holding import MAX_LOCK_BYTES
from provision.commands.loading import load_spec
from provision.commands.lock_changes import read_new_lock, read_old_lock, review_lock_changes
from provision.errors import ExternalError
from provision.lock.asked import list_changed_inputs
from provision.world import RealSystem

if TYPE_CHECKING:
    from provision.verification.compared import ReportComparison


def show_report_diff(one: str, other: str, spec: Path | None, *, everything: bool, page: Path | None, form: str) -> int:
    """Show what differs between two reports, or write it as a page; exit 1 when an identity reading or a check's status does."""
    from provision.commands.diff import diff as compared
    from provision.views import comparison

    found = compared(one, other, spec, RealSystem(), terminal.print_note)
    if page is not None or form == "html":
        _write_html(found, page)
    elif form == "json":
        terminal.print_result(json.dumps(comparison.to_json(found), indent=1))
    elif form == "markdown":
        terminal.print_result(comparison.render_markdown(found))
    else:
        terminal.print_result(comparison.render_text(found, terminal.supports_color(), terminal.width(), everything))
    return 0 if found.is_same else 1


def _write_html(found: ReportComparison, page: Path | None) -> None:
    from provision.effects import WriteFile
    from provision.views import side_by_side

    if page is None:
        terminal.print_result(side_by_side.render_page(found))
    else:
        RealSystem().perform(WriteFile(page, side_by_side.render_page(found), 0o600), terminal.print_note)
        terminal.print_note(f"wrote {page}")


def show_lock_diff(path: Path, old: Path, form: str) -> int:
    """Show what differs from the lock at `old` ("-": standard input) to the one beside the spec; exit 0 also when something does."""
    world = RealSystem()
    loaded = load_spec(path, world)
    name, before = read_old_lock(None, _read_stdin(), world) if str(old) == "-" else read_old_lock(old, b"", world)
    after = read_new_lock(loaded, world)
    if moved := list_changed_inputs(loaded.spec, after):
        terminal.print_note("\n".join([f"note: {loaded.lock_path} is stale; since it was made these moved:", *(f"  {line}" for line in moved)]))
    found = review_lock_changes(loaded, before, after, name)
    if form == "json":
        from provision.views import lock_changes

        terminal.print_result(json.dumps(lock_changes.to_json(found, loaded.source), indent=1))
    elif form == "markdown":
        from provision.views import lock_comment

        terminal.print_result(lock_comment.render_comment(found, loaded.source))
    else:
        from provision.views import lock_changes

        terminal.print_result(terminal.escape_for_log(lock_changes.render_text(found, loaded.source, terminal.supports_color(), terminal.width())))
    return 0


def _read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read(MAX_LOCK_BYTES + 1)
    except OSError as error:
        raise ExternalError("cannot read standard input", why=error.strerror or str(error), hint="pipe the older lock into it, or name a file") from error
