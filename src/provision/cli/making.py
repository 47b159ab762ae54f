"""init, plan, apply, run and destroy: what changes something, asked about before and shown after."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.cli import homecoming, terminal
from provision.cli.locking import warn, warn_unconfirmed
from provision.cli.looking import show_report, summary
from provision.cli.standing_in import folder_of_sandbox
from provision.cli.worlds import loaded_in, opened
from provision.commands.apart import Errors
from provision.commands.apply import Applied, Result, Waiting, Wishes
from provision.commands.apply import apply as make
from provision.commands.destroy import destroy as remove
from provision.commands.init import init as begin
from provision.commands.launching import launch_of
from provision.commands.loading import Loaded, load
from provision.commands.lock import Locked
from provision.commands.plan import plan as propose
from provision.commands.planning import choose, in_browser
from provision.commands.reconsidering import reconsider
from provision.commands.run import run as start
from provision.errors import ProvisionError, Refused
from provision.plan import Action, Plan
from provision.probe.proofs.launching import command
from provision.targets.colab import link_to
from provision.views import plan as plan_view
from provision.world import Machine

_LIFE_OF_A_DEVICE = "its device lives as long as the command that runs the sandbox, and attach boots it again; to keep it running, in another terminal"


def init(path: Path, *, force: bool, form: str) -> int:
    """Write the starter spec and its schema for editors, and say what comes next."""
    begin(path, Machine(), terminal.note, force=force)
    if form == "json":
        terminal.show(json.dumps({"version": 1, "wrote": str(path)}))
        return 0
    terminal.say(f"wrote {path}\nnext: provision lint {shlex.quote(str(path))}, then provision apply {shlex.quote(str(path))}")
    return 0


def plan(path: Path, targets: tuple[str, ...], *, sandbox: bool, faults: tuple[str, ...], offline: bool, **options: Any) -> int:
    """Show the plan, and save it when asked to."""
    with opened(path, sandbox=sandbox, faults=faults, offline=offline) as world:
        return _plan(path, targets, world, loaded_in(path, world, sandbox=sandbox, faults=faults, apart=options["out"] is None), **options)


def _plan(
    path: Path, targets: tuple[str, ...], world: Machine, loaded: Loaded, *, out: Path | None, detailed_exitcode: bool, frozen: bool, form: str, adopt: bool
) -> int:
    with terminal.progress() as (tell, _):
        planned = propose(loaded, choose(loaded, targets, everything=True), world, tell, frozen=frozen, adopt=adopt)
        if out is not None and planned.failed:
            raise next(iter(planned.failed.values()))
    warn(loaded, (*loaded.diagnostics, *planned.locked.warnings))
    line = _lock_line(loaded, planned.locked)
    quoted = shlex.quote(str(path))
    if out is not None:
        if planned.locked.fresh:
            raise Refused("a plan can be saved only when the lock holds", why=planned.locked.because, hint=f"run `provision lock {quoted}` first")
        _save(out, planned.proposal.plan, world)
        terminal.note(f"saved {out}; carry it out with `provision apply {quoted} --plan {shlex.quote(str(out))}`")
    proposed = planned.proposal.plan
    if form == "json":
        terminal.show(json.dumps({**plan_view.document(proposed, line), "failed": terminal.failed_document(planned.failed)}, indent=1))
    else:
        terminal.show(plan_view.text(proposed, line, terminal.colored(), {f"{loaded.stem}/{name}": error.what for name, error in planned.failed.items()}))
    terminal.show_failed(planned.failed)
    if detailed_exitcode and planned.failed:
        return 1
    return 2 if detailed_exitcode and planned.changes else planned.exit_code


def apply(path: Path, targets: tuple[str, ...], **options: Any) -> int:
    """Make and verify the chosen targets; the exit code is that of the worst verdict."""
    sandbox = options["sandbox"]
    with opened(path, sandbox=sandbox, faults=options["faults"], offline=options["offline"]) as world:
        return _apply(path, targets, world, loaded_in(path, world, sandbox=sandbox, faults=options["faults"]), options)


def _apply(path: Path, targets: tuple[str, ...], world: Machine, loaded: Loaded, options: Mapping[str, Any]) -> int:
    names = choose(loaded, targets, everything=options["everything"])
    plain = {"verify": options["verify"], "frozen": options["frozen"], "detach": options["detach"], "adopt": options["adopt"], "keep": options["keep"]}
    wishes = Wishes(saved_plan=options["saved_plan"], lock_wait_s=options["wait"], **plain)
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

    if wishes.saved_plan is None:
        homecoming.gathered(loaded, world, wait=wishes.lock_wait_s)
    with terminal.progress(ask=agree) as (tell, asked):
        applied = make(loaded, names, wishes, world, asked, tell)
    terminal.show_failed(applied.failed)
    if as_text:
        _show_applied(path, applied, loaded, world, verbose=options["verbose"])
    else:
        documents = [{**summary(r.report, r.json_path), "target": r.place.target, **_outcome(r, loaded)} for r in applied.results]
        waiting = [{"target": one.place.target, **_waiting(one, loaded, world)} for one in applied.waiting]
        failed = terminal.failed_document(applied.failed)
        whole = {"version": 1, "sandbox": loaded.stand_in is not None, "results": documents, "waiting": waiting, "failed": failed}
        terminal.show(json.dumps(whole, indent=1))
    return applied.exit_code


def run(path: Path, target: str | None, argv: tuple[str, ...], *, monitor: bool) -> int:
    """Run a program in the environment; the exit code is the program's, and so is the signal that ends it."""
    world = Machine()
    loaded = load(path, world)
    (name,) = choose(loaded, (target,) if target else (), everything=False)
    ran = start(loaded, name, argv, world, terminal.note, monitor=monitor)
    if ran.record is not None:
        from provision.cli import recounting

        recounting.told(ran.record, path, name, world)
    if ran.code < 0:
        from provision.world.watching import end_as

        end_as(-ran.code)
    return ran.code


def destroy(path: Path, targets: tuple[str, ...], *, everything: bool, force: bool, yes: bool, form: str, sandbox: bool, **options: Any) -> int:
    """Remove what was made, after showing it."""

    def agree(actions: tuple[Action, ...]) -> None:
        if form == "text" or not yes:
            terminal.beside(plan_view.actions(actions, terminal.colored(sys.stderr)))
        terminal.agree("Remove it?", yes=yes, doing="destroy")

    failed: Errors = {}
    with opened(path, sandbox=sandbox, faults=options["faults"]) as world:
        plain = {"everything": everything, "sandbox": sandbox, "force": force}
        done = remove(path, targets, world, agree, terminal.note, lock_wait_s=options["wait"], failed=failed, **plain)
    terminal.show_failed(failed)
    if form == "json":
        told = {"version": 1, "removed": [action.title for action in done], "failed": terminal.failed_document(failed)}
        terminal.show(json.dumps(told, indent=1))
    else:
        terminal.show(f"removed: {len(done)}" if done or failed else "nothing to remove: nothing of this spec was made here")
        if not (sandbox or done or failed) and _in_sandbox_too(path, world):
            terminal.note("what was made in the sandbox is removed with --sandbox")
    return max((error.exit_code for error in failed.values()), default=0)


def _in_sandbox_too(path: Path, world: Machine) -> bool:
    from provision.stores import LocalStore

    try:
        made = LocalStore(Path(folder_of_sandbox(path), "state"), world).ledger().state.resources
    except ProvisionError:  # a damaged one is for the commands with --sandbox to tell
        return False
    return any(address.startswith(f"{path.stem}/") for address in made)


def _lock_line(loaded: Loaded, locked: Locked) -> str:
    return f"{loaded.lock_path}: {len(locked.lock.packages)} packages locked ({locked.because})" if locked.fresh else ""


def _save(out: Path, proposed: Plan, world: Machine) -> None:
    from provision.effects import WriteFile

    world.perform(WriteFile(out, json.dumps(proposed.seal(), indent=1) + "\n", 0o600), terminal.note)


def _outcome(result: Result, loaded: Loaded) -> dict[str, Any]:
    told = {"changed": result.changed, "fresh": result.fresh, "packages_fresh": result.installed}
    if result.notebook is not None:
        found = reconsider(loaded, result.place, result.report.document)
        names = {"notebook": homecoming.notebook_of(result.notebook), **({"session": result.session} if result.session else {})}
        return {**told, **names, **homecoming.reconsidered_document(found, loaded)}
    if result.instance is None:
        return {**told, "compared": result.compared or None}
    return {**told, "instance": result.instance["instance"], "zone": result.instance["zone"], "on_failure": result.taken or None}


def _waiting(one: Waiting, loaded: Loaded, world: Machine) -> dict[str, Any]:
    if one.instance is not None:
        return {"instance": one.instance["instance"], "zone": one.instance["zone"]}
    record = one.notebook or {}
    name = homecoming.notebook_of(record)
    return {"notebook": name, "nonce": record.get("nonce"), "because": one.because, "link": link_to(loaded.folder.parent / name, world)}


def _show_applied(path: Path, applied: Applied, loaded: Loaded, world: Machine, *, verbose: bool) -> None:
    several = len(loaded.spec.targets) > 1
    for result in applied.results:
        _show_result(path, result, loaded, verbose=verbose, option=f" --target {result.place.target}" if several else "")
    for waiting in applied.waiting:
        if waiting.instance is None:
            link = link_to(loaded.folder.parent / homecoming.notebook_of(waiting.notebook or {}), world)
            homecoming.show_notebook(loaded, waiting.place.target, waiting.notebook or {}, waiting.because, link)
            continue
        words = " --sandbox" if waiting.place.stand_in is not None else ""
        option = f" --target {waiting.place.target}" if several else ""
        terminal.say(f"instance     {waiting.instance['instance']} in {waiting.instance['zone']}: it makes its environment now")
        terminal.say(f"wait for it  provision attach {shlex.quote(str(path))}{option}{words}")
        if words:
            terminal.say(f"SANDBOX      {_LIFE_OF_A_DEVICE}: provision sandbox up --folder {shlex.quote(folder_of_sandbox(path))}")


def _show_result(path: Path, result: Result, loaded: Loaded, *, verbose: bool, option: str) -> None:
    show_report(result.report.shown, result.json_path, verbose=verbose)
    if not result.fresh:
        when = result.report.document["subject"].get("created_utc", "")
        again = "run the notebook again for a new one" if in_browser(result.place) else "--verify asks the device again"
        terminal.say(f"No changes: this is the stored verdict of {when}; {again}.")
    if result.notebook is not None:
        homecoming.show_reconsidered(reconsider(loaded, result.place, result.report.document), loaded)
        terminal.say(f"\nnotebook     {os.path.relpath(loaded.folder.parent / homecoming.notebook_of(result.notebook))}")
        if result.session:
            terminal.say(f"running      {result.session} at Colab, and it costs; give it back: provision destroy {shlex.quote(str(path))}{option}")
    elif result.instance is not None:
        _show_instance(path, result, option)
    else:
        _show_environment(path, result, option)
    terminal.say(f"page         {os.path.relpath(result.html_path)}")


def _show_environment(path: Path, result: Result, option: str) -> None:
    stable = os.path.relpath(result.seat.stable)
    launch = launch_of(result.place.spec, result.place.target, result.place.lock)
    terminal.say(f"\nenvironment  {stable}")
    if provenance := result.report.provenance:
        when = "" if result.installed else " (when the environment was made)"
        terminal.say(f"packages     {', '.join(f'{count} {way}' for way, count in provenance.items())}{when}")
    if result.compared:
        terminal.say(f"compared     {result.compared}")
    terminal.say(f"activate     {_activation(result, stable)}")
    terminal.say(f"run          provision run {shlex.quote(str(path))}{option} -- {shlex.join(command(launch))}")
    if launch.by == "accelerate":
        terminal.say(f"launch       provision export {shlex.quote(str(path))}{option} --format accelerate --out accelerate.yaml")
    if result.kernel:
        terminal.say(f"kernel       {result.kernel} (in Jupyter: {result.place.spec.name} ({result.place.target}))")


def _activation(result: Result, stable: str) -> str:
    """Return the line that puts a shell into an environment; conda takes a path for one when it has a slash."""
    target = result.place.spec.targets[result.place.target]
    if getattr(target, "manager", "uv") != "conda":
        return f"source {shlex.quote(f'{stable}/bin/activate')}"
    by = result.activation or f"conda activate {shlex.quote(stable)}"
    return f"{by}   (without conda: PATH={shlex.quote(f'{stable}/bin')}:$PATH)"


def _show_instance(path: Path, result: Result, option: str) -> None:
    record = result.instance or {}
    sandbox = result.place.stand_in is not None
    words = option + (" --sandbox" if sandbox else "")
    terminal.say(f"\ninstance     {record['instance']} in {record['zone']}{', SANDBOX: not a real one' if sandbox else ''}")
    if result.taken:
        terminal.say(f"left         {result.taken}")
    if provenance := result.report.provenance:
        terminal.say(f"packages     {', '.join(f'{count} {way}' for way, count in provenance.items())}")
    terminal.say(f"environment  {result.seat.prefix} on the instance")
    launch = launch_of(result.place.spec, result.place.target, result.place.lock)
    if launch.strategy != "none":
        terminal.say(f"launch       {shlex.join(command(launch))}")
    if result.place.spec.package("ipykernel") is not None:
        terminal.say(f"kernel       in Jupyter: {result.place.spec.name} ({result.place.target})")
    terminal.say(f"open         provision open {shlex.quote(str(path))}{words}")
    terminal.say(f"remove       provision destroy {shlex.quote(str(path))}{words}")
