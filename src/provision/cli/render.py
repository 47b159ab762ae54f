"""render: the files of Colab targets, and what a person does with them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

from provision.adapters import RealSystem
from provision.cli import console
from provision.cli.lock import print_warnings
from provision.cli.report_import import show_pending_notebook
from provision.commands.render import RenderedTarget, RenderOptions
from provision.commands.render import render as rendered
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.sanitize import escape_line
from provision.targets.colab.file_names import PAYLOAD_SUFFIX
from provision.targets.colab.planning import describe_kept_copy

_PENDING_REASON = "what proves the environment is the notebook, on its runtime"


def render(
    path: Path,
    targets: tuple[str, ...],
    *,
    check: bool,
    out: Path | None,
    payload_url: str,
    wait: float,
    form: str,
) -> int:
    """Write the files; with `check`, exit 1 when some differ."""
    world = RealSystem()
    loaded = load_spec(path, world)
    print_warnings(loaded, loaded.diagnostics)
    done = rendered(
        loaded, targets, RenderOptions(check, out, payload_url, wait), world, console.print_note
    )
    differ = check and any(one.differing for one in done)
    again = f"provision render {shlex.quote(str(path))}" + "".join(
        f" --target {name}" for name in targets
    )
    again += (f" --out {shlex.quote(str(out))}" if out is not None else "") + (
        f" --payload-url {shlex.quote(payload_url)}" if payload_url else ""
    )
    if form == "json":
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    "check": check,
                    "holds": not differ,
                    "targets": [_document(one) for one in done],
                },
                indent=1,
            )
        )
    elif check:
        _show_check(done, again)
    else:
        for one in done:
            _show(loaded, one)
    return 1 if differ else 0


def _document(one: RenderedTarget) -> dict[str, Any]:
    return {
        "target": one.context.target,
        "files": [os.path.relpath(one.folder / name) for name in one.files],
        "differing": list(one.differing),
        "nonce": one.made.nonce,
        "lock": one.context.lock.digest,
        "payload_sha256": one.made.sha256,
        "cell_bytes": len(one.made.cell),
        "link": one.link,
        "copies": list(one.copies),
    }


def _show_check(done: tuple[RenderedTarget, ...], again: str) -> None:
    for one in done:
        for name in one.files:
            said = "differs from" if name in one.differing else "is"
            console.print_text(
                f"{escape_line(os.path.relpath(one.folder / name))} {said} what spec and lock make"
            )
    if any(one.differing for one in done):
        console.print_text(
            f"write {'it' if sum(len(one.differing) for one in done) == 1 else 'them'} "
            f"with: {again}"
        )


def _show(loaded: LoadedSpec, one: RenderedTarget) -> None:
    shown = {name: escape_line(os.path.relpath(one.folder / name)) for name in one.files}
    for name, where in shown.items():
        console.print_text(
            f"wrote {where}"
            if name in one.differing
            else f"{where} is what spec and lock make already"
        )
    for name in one.copies:
        console.print_text(f"{shown[one.made.notebook_name]}: {describe_kept_copy(name)}")
    if one.made.url:
        console.print_text(
            f"put {shown[one.made.name + PAYLOAD_SUFFIX]} at {escape_line(one.made.url)}: "
            f"the cell fetches it there (sha256 {one.made.sha256})"
        )
    if one.folder == one.context.folder.parent:
        show_pending_notebook(loaded, one.context.target, one.record, _PENDING_REASON, one.link)
        return
    console.print_text(f"\n{one.context.address}: rendered, not verified: {_PENDING_REASON}")
    console.print_text(
        "what is written elsewhere than beside its spec is not recorded, and its report "
        "cannot be added"
    )
