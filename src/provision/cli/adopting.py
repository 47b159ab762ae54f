"""adopt: a state that came from another machine or folder is shown, and becomes this folder's after a yes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from provision.cli import terminal
from provision.commands.adopt import Adoption
from provision.commands.adopt import adopt as bind
from provision.safe import safe_line
from provision.world import Machine


def adopt(path: Path, *, wait: float, yes: bool, form: str, sandbox: bool) -> int:
    """Show what the state beside a spec names, ask, and bind it to this machine and folder."""

    def agree(found: Adoption) -> None:
        if form == "text" or not yes:
            terminal.beside(_shown(found))
        terminal.agree("Adopt it?", yes=yes, doing="adopt")

    done = bind(path, Machine(), agree, terminal.note, lock_wait_s=wait, sandbox=sandbox)
    if form == "json":
        named = [dataclasses.asdict(one) for one in done.named]
        terminal.show(json.dumps({"version": 1, "state": str(done.path), "adopted": bool(done.why), "because": done.why, "resources": named}, indent=1))
    else:
        terminal.show(f"{done.path} belongs to this machine and this folder" + ("" if done.why else " already"))
    return 0


def _shown(found: Adoption) -> str:
    lines = [f"{found.path} names {len(found.named)} things; {found.why}"]
    for one in found.named:
        lines.append(f"  {one.address} {one.part}: {one.title}")
        lines.append(f"    {one.where}: {one.becomes}")
    return "\n".join(safe_line(line) for line in lines) + "\n"
