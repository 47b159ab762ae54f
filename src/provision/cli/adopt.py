"""adopt: a state that came from another machine or folder is shown, and becomes this folder's after
a yes.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.adopt import Adoption
from provision.commands.adopt import adopt as bind
from provision.sanitize import escape_line


def adopt(path: Path, *, wait: float, yes: bool, form: str, sandbox: bool) -> int:
    """Show what the state beside a spec names, ask, and bind it to this machine and folder."""

    def agree(found: Adoption) -> None:
        if form == "text" or not yes:
            console.print_stderr(_format_adoption(found))
        console.confirm("Adopt it?", yes=yes, doing="adopt")

    done = bind(path, RealSystem(), agree, console.print_note, lock_wait_s=wait, sandbox=sandbox)
    if form == "json":
        named = [dataclasses.asdict(one) for one in done.resources]
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    "state": str(done.path),
                    "adopted": bool(done.foreign_reason),
                    "because": done.foreign_reason,
                    "resources": named,
                },
                indent=1,
            )
        )
    else:
        console.print_result(
            f"{done.path} belongs to this machine and this folder"
            + ("" if done.foreign_reason else " already")
        )
    return 0


def _format_adoption(found: Adoption) -> str:
    lines = [f"{found.path} names {len(found.resources)} things; {found.foreign_reason}"]
    for one in found.resources:
        lines.append(f"  {one.address} {one.part}: {one.title}")
        lines.append(f"    {one.where}: {one.becomes}")
    return "\n".join(escape_line(line) for line in lines) + "\n"
