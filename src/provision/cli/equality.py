"""parity: what is proven equal across targets, for a terminal, a program or a pull request."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import homecoming, terminal
from provision.cli.worlds import loaded_in, opened


def parity(path: Path, *, sandbox: bool, form: str) -> int:
    """Show what is proven; exit 0 when all of it is, 1 with a proven difference, 3 when something is not yet proven."""
    from provision.commands.parity import parity as state
    from provision.stores import LocalStore
    from provision.views import parity as view

    with opened(path, sandbox=sandbox) as world:
        loaded = loaded_in(path, world, sandbox=sandbox)
        homecoming.gathered(loaded, world)
        found = state(loaded, LocalStore(loaded.folder, world).ledger(), world)
    if form == "json":
        terminal.show(json.dumps(view.document(found), indent=1))
    elif form == "markdown":
        terminal.show(terminal.for_log(view.markdown(found)))
    else:
        terminal.show(terminal.for_log(view.text(found, terminal.colored(), terminal.width())))
    return found.exit_code
