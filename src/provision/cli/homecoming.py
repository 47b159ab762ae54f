"""report add, and what was dropped into the folder of a target: reports that come home, and what they say of the facts."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.cli import terminal
from provision.cli.options import DEFAULT
from provision.errors import StateError, WorldError
from provision.verification.report import LIMIT, content_at

if TYPE_CHECKING:
    from provision.commands.carried import Carried
    from provision.commands.dropped import Gathered
    from provision.commands.loading import Loaded
    from provision.commands.reconsidering import Reconsidered
    from provision.effects import World


def add(file: Path, spec: Path | None, target: str | None, *, wait: float, verbose: bool, form: str) -> int:
    """File a report and show it; the exit code is that of its verdict."""
    from provision.cli.looking import show_report, summary
    from provision.commands.carried import bring_home
    from provision.commands.receiving import receive
    from provision.world import Machine

    world = Machine()
    content, name = (_given(), "standard input") if str(file) == "-" else (content_at(file, world), str(file))
    with terminal.progress() as (tell, _):
        if carried := bring_home(content, name, spec, target, world, tell, default=_here(), lock_wait_s=wait):
            return _show_carried(carried, verbose=verbose, form=form)
        received = receive(content, name, spec, target, world, tell, lock_wait_s=wait)
    if form == "json":
        told = {**summary(received.report, received.json_path), "target": received.place.target, "filed": received.fresh}
        terminal.show(json.dumps({"version": 1, **told, **reconsidered_document(received.reconsidered, received.loaded)}, indent=1))
        return received.exit_code
    show_report(received.report.shown, received.json_path, verbose=verbose)
    if not received.fresh:
        terminal.say("No changes: this report was filed before.")
    show_reconsidered(received.reconsidered, received.loaded)
    terminal.say(f"\npage         {os.path.relpath(received.html_path)}")
    terminal.say(f"filed under  {received.place.address}")
    return received.exit_code


def _here() -> Path | None:
    return Path(DEFAULT) if Path(DEFAULT).exists() else None


def _show_carried(carried: Carried, *, verbose: bool, form: str) -> int:
    """Show a report of a probe that was carried by hand; it is the verdict of that machine, and no target's."""
    from provision.cli.looking import show_report, summary

    if form == "json":
        told = {**summary(carried.report, carried.json_path), "target": carried.place.target, "carried": True}
        terminal.show(json.dumps({"version": 1, **told}, indent=1))
        return carried.report.exit_code
    show_report(carried.report.shown, carried.json_path, verbose=verbose)
    terminal.say(f"\npage         {os.path.relpath(carried.html_path)}")
    terminal.say(f"kept as      the report of a machine like {carried.place.address}, which `provision parity` counts; its own verdict is what it was")
    return carried.report.exit_code


def gathered(loaded: Loaded, world: World, *, wait: float = 0) -> Gathered:
    """File what was dropped into the folders of a spec's targets, and say of each file what became of it. Another provision at work is left alone."""
    from provision.commands.dropped import Gathered, gather

    if not any(target.kind == "colab" for target in loaded.spec.targets.values()):
        return Gathered()
    try:
        found = gather(loaded, world, terminal.note, lock_wait_s=wait)
    except StateError as error:
        terminal.note(f"what was dropped into the folder of reports is not looked at now: {error.what}")
        return Gathered()
    for received in found.filed:
        terminal.note(f"filed the report that was dropped for {received.place.address}")
    for path, why in found.refused:
        terminal.show_error(why)
        terminal.note(f"  it lies in {os.path.relpath(path)} now, and is not looked at again")
    return found


def show_reconsidered(found: Reconsidered, loaded: Loaded) -> None:
    """Show what moved since the day of the facts, and what the rules find in what was observed."""
    from provision.views import text

    if found.moved:
        terminal.say(f"\nmoved since the catalogue of {found.as_of}:")
    for moved in found.moved:
        terminal.say(f"  {moved.line}")
    if found.findings:
        terminal.say("\nThe rules, asked again of what was observed:")
        terminal.show(terminal.for_log(text.findings(found.findings, loaded.source, terminal.colored(), terminal.width())))


def reconsidered_document(found: Reconsidered, loaded: Loaded) -> dict[str, Any]:
    """Return the same as data."""
    from provision.views import json as data

    moved = [moved._asdict() for moved in found.moved]
    return {"facts_as_of": found.as_of, "moved": moved, "findings": data.findings(found.findings, loaded.source)["diagnostics"]}


def notebook_of(record: Mapping[str, Any]) -> str:
    """Return the name of a recorded notebook."""
    return next((str(name) for name in record.get("files", {}) if str(name).endswith(".ipynb")), "")


def show_notebook(loaded: Loaded, target: str, record: Mapping[str, Any], because: str, link: str | None) -> None:
    """Show what a person does next with a notebook that has no verdict yet."""
    place = loaded.spec.targets[target]
    version, gpu = getattr(place, "runtime", "latest"), place.gpu or loaded.spec.gpu
    words = shlex.quote(str(loaded.path))
    terminal.say(f"\n{loaded.stem}/{target}: rendered, not verified: {because}")
    terminal.say(
        f"open         {link}" if link else f"open         {os.path.relpath(loaded.folder.parent / notebook_of(record))} in Colab (File > Upload notebook)"
    )
    terminal.say(f"choose       Runtime > Change runtime type: version {version}, {'CPU' if gpu.none else gpu}")
    terminal.say("run          Runtime > Run all; its last cell offers report.json")
    terminal.say(f"then         provision report add report.json --spec {words}" + (f" --target {target}" if len(loaded.spec.targets) > 1 else ""))
    if link:
        terminal.say("             (the link opens what is pushed: push the notebook first)")


def _given() -> bytes:
    try:
        return sys.stdin.buffer.read(LIMIT + 1)
    except OSError as error:
        raise WorldError("cannot read standard input", why=error.strerror or str(error), hint="pipe the report into it, or name a file") from error
