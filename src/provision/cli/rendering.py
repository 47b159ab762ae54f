"""render: the files of Colab targets, and what a person does with them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

from provision.cli import terminal
from provision.cli.homecoming import show_notebook
from provision.cli.locking import warn
from provision.commands.loading import Loaded, load
from provision.commands.render import Rendering, Wanted
from provision.commands.render import render as rendered
from provision.safe import safe_line
from provision.targets.colab import copy_kept
from provision.targets.colab.naming import PAYLOAD
from provision.world import Machine

_BECAUSE = "what proves the environment is the notebook, on its runtime"


def render(path: Path, targets: tuple[str, ...], *, check: bool, out: Path | None, payload_url: str, wait: float, form: str) -> int:
    """Write the files; with `check`, exit 1 when some differ."""
    world = Machine()
    loaded = load(path, world)
    warn(loaded, loaded.diagnostics)
    done = rendered(loaded, targets, Wanted(check, out, payload_url, wait), world, terminal.note)
    differ = check and any(one.differing for one in done)
    again = f"provision render {shlex.quote(str(path))}" + "".join(f" --target {name}" for name in targets)
    again += (f" --out {shlex.quote(str(out))}" if out is not None else "") + (f" --payload-url {shlex.quote(payload_url)}" if payload_url else "")
    if form == "json":
        terminal.show(json.dumps({"version": 1, "check": check, "holds": not differ, "targets": [_document(one) for one in done]}, indent=1))
    elif check:
        _show_check(done, again)
    else:
        for one in done:
            _show(loaded, one)
    return 1 if differ else 0


def _document(one: Rendering) -> dict[str, Any]:
    return {
        "target": one.place.target,
        "files": [os.path.relpath(one.folder / name) for name in one.files],
        "differing": list(one.differing),
        "nonce": one.made.nonce,
        "lock": one.place.lock.digest,
        "payload_sha256": one.made.sha256,
        "cell_bytes": len(one.made.cell),
        "link": one.link,
        "copies": list(one.copies),
    }


def _show_check(done: tuple[Rendering, ...], again: str) -> None:
    for one in done:
        for name in one.files:
            said = "differs from" if name in one.differing else "is"
            terminal.say(f"{safe_line(os.path.relpath(one.folder / name))} {said} what spec and lock make")
    if any(one.differing for one in done):
        terminal.say(f"write {'it' if sum(len(one.differing) for one in done) == 1 else 'them'} with: {again}")


def _show(loaded: Loaded, one: Rendering) -> None:
    shown = {name: safe_line(os.path.relpath(one.folder / name)) for name in one.files}
    for name, where in shown.items():
        terminal.say(f"wrote {where}" if name in one.differing else f"{where} is what spec and lock make already")
    for name in one.copies:
        terminal.say(f"{shown[one.made.notebook_name]}: {copy_kept(name)}")
    if one.made.url:
        terminal.say(f"put {shown[one.made.name + PAYLOAD]} at {safe_line(one.made.url)}: the cell fetches it there (sha256 {one.made.sha256})")
    if one.folder == one.place.folder.parent:
        show_notebook(loaded, one.place.target, one.record, _BECAUSE, one.link)
        return
    terminal.say(f"\n{one.place.address}: rendered, not verified: {_BECAUSE}")
    terminal.say("what is written elsewhere than beside its spec is not recorded, and its report cannot be added")
