"""export: a lock as a document of another tool, to standard output or into a file."""

from __future__ import annotations

import json
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.export import ExportFormat, check_output_path, write_export
from provision.commands.export import export as written
from provision.commands.shared.load import load_spec


def export(
    path: Path,
    target: str | None,
    *,
    kind: str,
    out: Path | None,
    force: bool,
    offline: bool,
    form: str,
) -> int:
    """Write one target's part of the lock in another tool's format."""
    world = RealSystem(offline=offline)
    if out is not None:
        check_output_path(out, ExportFormat(kind), world, force=force)
    loaded = load_spec(path, world)
    with console.progress() as (tell, _):
        exported = written(loaded, ExportFormat(kind), target, world, tell)
        if out is not None:
            write_export(out, exported, world, tell)
    if exported.unconfirmed:
        console.print_note(
            "warning: the lock holds hashes that no index has confirmed, of "
            f"{', '.join(exported.unconfirmed)}"
        )
    if form == "json":
        document = {
            "version": 1,
            "format": kind,
            "lock": str(loaded.lock_path),
            "digest": exported.digest,
            "targets": list(exported.targets),
        }
        console.print_result(
            json.dumps(
                {**document, "out": str(out) if out else None, "text": exported.text}, indent=1
            )
        )
    elif out is not None:
        console.print_text(
            f"wrote {out}: {kind} of {loaded.lock_path}, target {', '.join(exported.targets)}"
        )
    else:
        console.print_result(exported.text)
    return 0
