"""status, verify and report: what exists, and what its verification found."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from pathlib import Path
from typing import Any

from provision.cli import terminal
from provision.commands.loading import load
from provision.commands.planning import choose
from provision.errors import Refused, UsageError
from provision.verification import Report, read_report
from provision.verification.report import LIMIT
from provision.world import Machine


def status(path: Path, form: str) -> int:
    """Show how the spec's targets stand; exit 0 when all is current and verified."""
    from provision.commands.status import status as look
    from provision.stores import LocalStore

    world = Machine()
    loaded = load(path, world)
    found = look(loaded, LocalStore(loaded.folder, world).ledger(), world)
    if form == "json":
        targets = [dataclasses.asdict(standing) for standing in found.targets]
        terminal.show(json.dumps({"version": 1, "lock_moved": None if found.moved is None else list(found.moved), "targets": targets}, indent=1))
        return found.exit_code
    if found.moved is None:
        terminal.say(f"lock         none yet: provision lock {shlex.quote(str(path))}")
    else:
        terminal.say("lock         holds" if not found.moved else "lock         stale: " + "; ".join(found.moved))
    for t in found.targets:
        terminal.say(f"{t.target:<12} {t.kind}, {t.condition}{f', {os.path.relpath(t.path)}' if t.path and t.condition != 'absent' else ''}")
        terminal.say(f"{'':<12} {f'{t.verdict} at {t.verified_at}' if t.verdict else 'not verified'}{f', but {t.outdated}' if t.outdated else ''}")
    return found.exit_code


def verify(path: Path, targets: tuple[str, ...], *, everything: bool, only: tuple[str, ...], wait: float, verbose: bool, form: str) -> int:
    """Verify the chosen targets again; the exit code is that of the worst verdict."""
    from provision.commands.verify import verify as prove

    world = Machine()
    loaded = load(path, world)
    names = choose(loaded, targets, everything=everything)
    with terminal.progress() as (tell, _):
        done = prove(loaded, names, world, tell, only=only, lock_wait_s=wait)
    if form == "json":
        terminal.show(json.dumps({"version": 1, "results": [summary(v.report, v.json_path) for v in done]}, indent=1))
    else:
        for verified in done:
            show_report(report_document(verified.report), verified.json_path, verbose=verbose)
    codes = {verified.exit_code for verified in done}
    return next((code for code in (1, 2, 3) if code in codes), 0)


def report(path: Path, targets: tuple[str, ...], *, page: Path | None, verbose: bool, form: str) -> int:
    """Show a stored report, or the report.json at `path`."""
    world = Machine()
    found = _reports(path, targets, world)
    if page is not None:
        _write_page(page, found, world)
    elif form == "json":
        documents = [report_document(one) for one, _ in found]
        whole = documents[0] if len(documents) == 1 else {"version": 1, "reports": documents}
        terminal.show(json.dumps(whole, indent=1, sort_keys=True))
    else:
        for one, report_path in found:
            show_report(report_document(one), report_path, verbose=verbose)
    return 0


def show_report(document: dict[str, Any], path: Path, *, verbose: bool) -> None:
    """Show a report's terminal form."""
    from provision.views import outcome

    terminal.show(outcome.report(document, terminal.colored(), terminal.width(), verbose, os.path.relpath(path)))


def report_document(found: Report) -> dict[str, Any]:
    """Return the report's document as views take it."""
    return dict(found.document)


def summary(found: Report, path: Path) -> dict[str, Any]:
    """Return what a program wants to know of a report."""
    return {
        "verdict": found.verdict,
        "sentence": found.sentence,
        "identity": found.identity,
        "report": str(path),
        "counts": found.document["verdict"].get("counts"),
        "packages": found.provenance,
    }


def _write_page(page: Path, found: list[tuple[Report, Path]], world: Machine) -> None:
    from provision.effects import WriteFile
    from provision.views import html

    if len(found) > 1:
        raise UsageError("a page holds one report", why=", ".join(path.parent.name for _, path in found), hint="name one target with --target")
    ((report, _),) = found
    world.perform(WriteFile(page, html.report(report_document(report), str(report.document["spec"].get("name", "report"))), 0o600), terminal.note)
    terminal.note(f"wrote {page}")


def _reports(path: Path, targets: tuple[str, ...], world: Machine) -> list[tuple[Report, Path]]:
    if path.suffix == ".json":
        return [(read_report(world.read(path, LIMIT), str(path)), path)]
    loaded = load(path, world)
    stored = {name: loaded.folder / "reports" / f"{loaded.stem}.{name}" / "report.json" for name in choose(loaded, targets, everything=True)}
    lacking = [name for name, place in stored.items() if not world.exists(place)]
    if lacking and (targets or len(lacking) == len(stored)):
        hint = f"make one with `provision apply {shlex.quote(str(path))}`"
        raise Refused(f"there is no report of target {lacking[0]}", why=f"looked for {stored[lacking[0]]}", hint=hint)
    return [(read_report(world.read(place, LIMIT), str(place)), place) for name, place in stored.items() if name not in lacking]
