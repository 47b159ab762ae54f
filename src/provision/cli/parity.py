"""parity: what is proven equal across targets, for a terminal, a program or a pull request."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import console, report_import
from provision.cli.session import load_session_spec, open_system


def parity(path: Path, *, sandbox: bool, form: str) -> int:
    """Show what is proven; exit 0 when all of it is, 1 with a proven difference, 3 when something
    is not yet proven.
    """
    from provision.commands.parity import parity as state
    from provision.state_store import LocalStore
    from provision.views import parity as view

    with open_system(path, sandbox=sandbox) as world:
        loaded = load_session_spec(path, world, sandbox=sandbox)
        report_import.import_dropped_reports(loaded, world)
        found = state(loaded, LocalStore(loaded.folder, world).load_ledger(), world)
    if form == "json":
        console.print_result(json.dumps(view.to_json(found), indent=1))
    elif form == "markdown":
        console.print_result(console.escape_for_log(view.render_markdown(found)))
    else:
        console.print_result(
            console.escape_for_log(
                view.render_text(found, console.supports_color(), console.width())
            )
        )
    return found.exit_code
