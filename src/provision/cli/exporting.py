"""export: a lock as a document of another tool, to standard output or into a file."""

from __future__ import annotations

import json
from pathlib import Path

from provision.cli import terminal
from provision.commands.export import Format, check_out, write_export
from provision.commands.export import export as written
from provision.commands.loading import load
from provision.world import Machine


def export(path: Path, target: str | None, *, kind: str, out: Path | None, force: bool, offline: bool, form: str) -> int:
    """Write one target's part of the lock in another tool's format."""
    world = Machine(offline=offline)
    if out is not None:
        check_out(out, Format(kind), world, force=force)
    loaded = load(path, world)
    with terminal.progress() as (tell, _):
        exported = written(loaded, Format(kind), target, world, tell)
        if out is not None:
            write_export(out, exported, world, tell)
    if exported.unconfirmed:
        terminal.note(f"warning: the lock holds hashes that no index has confirmed, of {', '.join(exported.unconfirmed)}")
    if form == "json":
        document = {"version": 1, "format": kind, "lock": str(loaded.lock_path), "digest": exported.digest, "targets": list(exported.targets)}
        terminal.show(json.dumps({**document, "out": str(out) if out else None, "text": exported.text}, indent=1))
    elif out is not None:
        terminal.say(f"wrote {out}: {kind} of {loaded.lock_path}, target {', '.join(exported.targets)}")
    else:
        terminal.show(exported.text)
    return 0
