"""init, plan, apply, run and destroy: what changes something, asked about before and shown after."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from provision.cli import terminal
from provision.cli.locking import warn, warn_unconfirmed
from provision.cli.looking import report_document, show_report, summary
from provision.commands.apply import Applied, Result, Wishes
from provision.commands.apply import apply as make
from provision.commands.destroy import destroy as remove
from provision.commands.init import init as begin
from provision.commands.loading import Loaded, load
from provision.commands.lock import Locked
from provision.commands.plan import plan as propose
from provision.commands.planning import choose
from provision.commands.run import run as start
from provision.errors import Refused
from provision.plan import Action, Plan
from provision.views import plan as plan_view
from provision.world import Machine


def init(path: Path, *, force: bool, form: str) -> int:
    """Write the starter spec and its schema for editors, and say what comes next."""
    begin(path, Machine(), terminal.note, force=force)
    if form == "json":
        terminal.show(json.dumps({"version": 1, "wrote": str(path)}))
        return 0
    terminal.say(f"wrote {path}\nnext: provision lint {shlex.quote(str(path))}, then provision apply {shlex.quote(str(path))}")
    return 0


def plan(path: Path, targets: tuple[str, ...], *, out: Path | None, detailed_exitcode: bool, frozen: bool, offline: bool, form: str) -> int:
    """Show the plan, and save it when asked to."""
    world = Machine(offline=offline)
    loaded = load(path, world)
    with terminal.progress() as (tell, _):
        planned = propose(loaded, choose(loaded, targets, everything=True), world, tell, frozen=frozen)
    warn(loaded, (*loaded.diagnostics, *planned.locked.warnings))
    line = _lock_line(loaded, planned.locked)
    quoted = shlex.quote(str(path))
    if out is not None:
        if planned.locked.fresh:
            raise Refused("a plan can be saved only when the lock holds", why=planned.locked.because, hint=f"run `provision lock {quoted}` first")
        _save(out, planned.proposal.plan, world)
        terminal.note(f"saved {out}; carry it out with `provision apply {quoted} --plan {shlex.quote(str(out))}`")
    proposed = planned.proposal.plan
    terminal.show(json.dumps(plan_view.document(proposed, line), indent=1) if form == "json" else plan_view.text(proposed, line, terminal.colored()))
    return 2 if detailed_exitcode and planned.changes else 0


def apply(path: Path, targets: tuple[str, ...], **options: Any) -> int:
    """Make and verify the chosen targets; the exit code is that of the worst verdict."""
    world = Machine(offline=options["offline"])
    loaded = load(path, world)
    names = choose(loaded, targets, everything=options["everything"])
    wishes = Wishes(options["verify"], options["frozen"], saved_plan=options["saved_plan"], lock_wait_s=options["wait"])
    as_text = options["form"] == "text"

    def agree(proposed: Plan, locked: Locked) -> None:
        warn(loaded, (*loaded.diagnostics, *locked.warnings))
        line = _lock_line(loaded, locked)
        if not proposed.changes and not line:
            return
        if locked.fresh:
            warn_unconfirmed(locked)
        if as_text or not options["yes"]:
            terminal.beside(plan_view.text(proposed, line, terminal.colored(sys.stderr)))
        terminal.agree("Make it so?", yes=options["yes"], doing="apply")

    with terminal.progress(ask=agree) as (tell, asked):
        applied = make(loaded, names, wishes, world, asked, tell)
    if as_text:
        _show_applied(path, applied, verbose=options["verbose"])
    else:
        terminal.show(json.dumps({"version": 1, "results": [_told(result) for result in applied.results]}, indent=1))
    return applied.exit_code


def run(path: Path, target: str | None, argv: tuple[str, ...]) -> int:
    """Run a program in the environment; the exit code is the program's."""
    world = Machine()
    loaded = load(path, world)
    (name,) = choose(loaded, (target,) if target else (), everything=False)
    return start(loaded, name, argv, world, terminal.note)


def destroy(path: Path, targets: tuple[str, ...], *, everything: bool, wait: float, yes: bool, form: str) -> int:
    """Remove what was made, after showing it."""

    def agree(actions: tuple[Action, ...]) -> None:
        if form == "text" or not yes:
            terminal.beside(plan_view.actions(actions, terminal.colored(sys.stderr)))
        terminal.agree("Remove it?", yes=yes, doing="destroy")

    done = remove(path, targets, Machine(), agree, terminal.note, everything=everything, lock_wait_s=wait)
    if form == "json":
        terminal.show(json.dumps({"version": 1, "removed": [action.title for action in done]}, indent=1))
    else:
        terminal.show(f"removed: {len(done)}" if done else "nothing to remove: nothing of this spec was made here")
    return 0


def _lock_line(loaded: Loaded, locked: Locked) -> str:
    return f"{loaded.lock_path}: {len(locked.lock.packages)} packages locked ({locked.because})" if locked.fresh else ""


def _save(out: Path, proposed: Plan, world: Machine) -> None:
    from provision.effects import WriteFile

    world.perform(WriteFile(out, json.dumps(proposed.seal(), indent=1) + "\n", 0o600), terminal.note)


def _told(result: Result) -> dict[str, Any]:
    done = {"target": result.place.target, "changed": result.changed, "fresh": result.fresh, "packages_fresh": result.installed}
    return {**summary(result.report, result.json_path), **done}


def _show_applied(path: Path, applied: Applied, *, verbose: bool) -> None:
    for result in applied.results:
        show_report(report_document(result.report), result.json_path, verbose=verbose)
        if not result.fresh:
            when = result.report.document["subject"].get("created_utc", "")
            terminal.say(f"No changes: this is the stored verdict of {when}; --verify asks the device again.")
        stable = os.path.relpath(result.seat.stable)
        terminal.say(f"\nenvironment  {stable}")
        if provenance := result.report.provenance:
            when = "" if result.installed else " (when the environment was made)"
            terminal.say(f"packages     {', '.join(f'{count} {way}' for way, count in provenance.items())}{when}")
        terminal.say(f"activate     source {shlex.quote(f'{stable}/bin/activate')}")
        option = f" --target {result.place.target}" if len(applied.results) > 1 else ""
        terminal.say(f"run          provision run {shlex.quote(str(path))}{option} -- python train.py")
        if result.kernel:
            terminal.say(f"kernel       {result.kernel} (in Jupyter: {result.place.spec.name} ({result.place.target}))")
        terminal.say(f"page         {os.path.relpath(result.html_path)}")
