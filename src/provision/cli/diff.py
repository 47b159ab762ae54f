"""diff and lock --diff: two reports, or two locks, beside each other; for a terminal, a program or
a pull request.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.lock_diff import read_new_lock, read_old_lock, review_lock_changes
from provision.commands.shared.load import load_spec
from provision.commands.shared.lock_file import MAX_LOCK_BYTES
from provision.errors import ExternalError
from provision.lock.inputs import list_changed_inputs

if TYPE_CHECKING:
    from provision.verification.diff.model import ReportComparison


def show_report_diff(
    one: str, other: str, spec: Path | None, *, everything: bool, page: Path | None, form: str
) -> int:
    """Show what differs between two reports, or write it as a page; exit 1 when an identity reading
    or a check's status does.
    """
    from provision.commands.diff import diff as compared
    from provision.views.diff import report_text

    found = compared(one, other, spec, RealSystem(), console.print_note)
    if page is not None or form == "html":
        _write_html(found, page)
    elif form == "json":
        console.print_result(json.dumps(report_text.to_json(found), indent=1))
    elif form == "markdown":
        console.print_result(report_text.render_markdown(found))
    else:
        console.print_result(
            report_text.render_text(found, console.supports_color(), console.width(), everything)
        )
    return 0 if found.is_same else 1


def _write_html(found: ReportComparison, page: Path | None) -> None:
    from provision.effects import WriteFile
    from provision.views.diff import report_html

    if page is None:
        console.print_result(report_html.render_page(found))
    else:
        RealSystem().perform(
            WriteFile(page, report_html.render_page(found), 0o600), console.print_note
        )
        console.print_note(f"wrote {page}")


def show_lock_diff(path: Path, old: Path, form: str) -> int:
    """Show what differs from the lock at `old` ("-": standard input) to the one beside the spec;
    exit 0 also when something does.
    """
    world = RealSystem()
    loaded = load_spec(path, world)
    name, before = (
        read_old_lock(None, _read_stdin(), world)
        if str(old) == "-"
        else read_old_lock(old, b"", world)
    )
    after = read_new_lock(loaded, world)
    if moved := list_changed_inputs(loaded.spec, after):
        console.print_note(
            "\n".join(
                [
                    f"note: {loaded.lock_path} is stale; since it was made these moved:",
                    *(f"  {line}" for line in moved),
                ]
            )
        )
    found = review_lock_changes(loaded, before, after, name)
    if form == "json":
        from provision.views.diff import lock_text

        console.print_result(json.dumps(lock_text.to_json(found, loaded.source), indent=1))
    elif form == "markdown":
        from provision.views.diff import lock_markdown

        console.print_result(lock_markdown.render_comment(found, loaded.source))
    else:
        from provision.views.diff import lock_text

        console.print_result(
            console.escape_for_log(
                lock_text.render_text(
                    found, loaded.source, console.supports_color(), console.width()
                )
            )
        )
    return 0


def _read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read(MAX_LOCK_BYTES + 1)
    except OSError as error:
        raise ExternalError(
            "cannot read standard input",
            why=error.strerror or str(error),
            hint="pipe the older lock into it, or name a file",
        ) from error
