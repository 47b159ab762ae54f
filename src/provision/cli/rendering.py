"""render: the files of Colab targets, and what a person does with them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

from provision.cli import terminal
from provision.cli.locking import warn
from provision.commands.loading import load
from provision.commands.render import Rendering, Wanted
from provision.commands.render import render as rendered
from provision.safe import safe_line
from provision.targets.colab.naming import CELL, PAYLOAD, colab
from provision.world import Machine


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
            _show(path, one)
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
    }


def _show_check(done: tuple[Rendering, ...], again: str) -> None:
    for one in done:
        for name in one.files:
            said = "differs from" if name in one.differing else "is"
            terminal.say(f"{safe_line(os.path.relpath(one.folder / name))} {said} what spec and lock make")
    if any(one.differing for one in done):
        terminal.say(f"write {'it' if sum(len(one.differing) for one in done) == 1 else 'them'} with: {again}")


def _show(path: Path, one: Rendering) -> None:
    shown = {name: safe_line(os.path.relpath(one.folder / name)) for name in one.files}
    for name, where in shown.items():
        terminal.say(f"wrote {where}" if name in one.differing else f"{where} is what spec and lock make already")
    notebook = shown[one.made.notebook_name]
    terminal.say("rendered, not verified: what proves the environment is the notebook, on its runtime")
    terminal.say("")
    if one.made.url:
        terminal.say(f"put          {shown[one.made.name + PAYLOAD]} at {safe_line(one.made.url)} (sha256 {one.made.sha256})")
    if one.link:
        terminal.say(f"open         {one.link} (once {notebook} is pushed)")
    terminal.say(f"{'or upload' if one.link else 'upload   '}    {notebook} at https://colab.research.google.com (File, Upload notebook)")
    terminal.say(f"run          Runtime, Run all; it asks for {_asked(one)}, and looks whether that is what it got")
    terminal.say(f"             any other notebook: paste {shown[one.made.name + CELL]} into its first cell")
    if one.folder == one.place.folder.parent:
        terminal.say(f"then         provision report add {shlex.quote(one.place.stem)}.report.json, the file that it offers at its end")
    else:
        terminal.say(f"then         provision apply {shlex.quote(str(path))} --target {one.place.target}, which can take its report")


def _asked(one: Rendering) -> str:
    target, gpu = colab(one.place), one.place.spec.gpu
    return f"runtime {target.runtime} and {'no GPU' if gpu.none else f'GPU {gpu}'}"
