"""init, plan, apply, run and destroy: what changes something, asked about before and shown after."""  # noqa: E501

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.adapters import RealSystem
from provision.agent.probe.proofs.launch import launch_command
from provision.cli import console, report_import
from provision.cli.lock import print_unconfirmed_hashes, print_warnings
from provision.cli.looking import report_summary, show_report
from provision.cli.sandbox_hints import sandbox_folder
from provision.cli.session import load_session_spec, open_system
from provision.commands.apply import ApplyOptions, ApplyResult, PendingTarget, TargetResult
from provision.commands.apply import apply as make
from provision.commands.destroy import destroy as remove
from provision.commands.facts_comparison import compare_with_facts
from provision.commands.init import init as begin
from provision.commands.lock import LockResult
from provision.commands.plan import plan as propose
from provision.commands.run import run as start
from provision.commands.shared.launch import build_launch
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.multi_target import ErrorsByTarget
from provision.commands.shared.target_plans import runs_in_browser, select_targets
from provision.errors import ProvisionError, Refused
from provision.plan import Action, Plan
from provision.targets.colab.github_link import build_colab_link
from provision.views import plan as plan_view

_DEVICE_LIFETIME_NOTE = (
    "its device lives as long as the command that runs the sandbox, and attach boots it again; "
    "to keep it running, in another terminal"
)


def init(path: Path, *, force: bool, form: str) -> int:
    """Write the starter spec and its schema for editors, and say what comes next."""
    begin(path, RealSystem(), console.print_note, force=force)
    if form == "json":
        console.print_result(json.dumps({"version": 1, "wrote": str(path)}))
        return 0
    console.print_text(
        f"wrote {path}\nnext: provision lint {shlex.quote(str(path))}, then provision "
        f"apply {shlex.quote(str(path))}"
    )
    return 0


def plan(
    path: Path,
    targets: tuple[str, ...],
    *,
    sandbox: bool,
    faults: tuple[str, ...],
    offline: bool,
    **options: Any,
) -> int:
    """Show the plan, and save it when asked to."""
    with open_system(path, sandbox=sandbox, faults=faults, offline=offline) as world:
        return _plan(
            path,
            targets,
            world,
            load_session_spec(
                path, world, sandbox=sandbox, faults=faults, apart=options["out"] is None
            ),
            **options,
        )


def _plan(
    path: Path,
    targets: tuple[str, ...],
    world: RealSystem,
    loaded: LoadedSpec,
    *,
    out: Path | None,
    detailed_exitcode: bool,
    frozen: bool,
    form: str,
    adopt: bool,
) -> int:
    with console.progress() as (tell, _):
        planned = propose(
            loaded,
            select_targets(loaded, targets, everything=True),
            world,
            tell,
            frozen=frozen,
            adopt=adopt,
        )
        if out is not None and planned.failed:
            raise next(iter(planned.failed.values()))
    print_warnings(loaded, (*loaded.diagnostics, *planned.locked.warnings))
    line = _lock_line(loaded, planned.locked)
    quoted = shlex.quote(str(path))
    if out is not None:
        if planned.locked.fresh:
            raise Refused(
                "a plan can be saved only when the lock holds",
                why=planned.locked.reason,
                hint=f"run `provision lock {quoted}` first",
            )
        _save_plan(out, planned.target_plans.plan, world)
        console.print_note(
            f"saved {out}; carry it out with `provision apply {quoted} --plan "
            f"{shlex.quote(str(out))}`"
        )
    proposed = planned.target_plans.plan
    if form == "json":
        console.print_result(
            json.dumps(
                {
                    **plan_view.to_json(proposed, line),
                    "failed": console.errors_to_json(planned.failed),
                },
                indent=1,
            )
        )
    else:
        console.print_result(
            plan_view.render_text(
                proposed,
                line,
                console.supports_color(),
                {f"{loaded.stem}/{name}": error.what for name, error in planned.failed.items()},
            )
        )
    console.print_errors(planned.failed)
    if detailed_exitcode and planned.failed:
        return 1
    return 2 if detailed_exitcode and planned.has_changes else planned.exit_code


def apply(path: Path, targets: tuple[str, ...], **options: Any) -> int:
    """Make and verify the chosen targets; the exit code is that of the worst verdict."""
    sandbox = options["sandbox"]
    with open_system(
        path, sandbox=sandbox, faults=options["faults"], offline=options["offline"]
    ) as world:
        return _apply(
            path,
            targets,
            world,
            load_session_spec(path, world, sandbox=sandbox, faults=options["faults"]),
            options,
        )


def _apply(
    path: Path,
    targets: tuple[str, ...],
    world: RealSystem,
    loaded: LoadedSpec,
    options: Mapping[str, Any],
) -> int:
    names = select_targets(loaded, targets, everything=options["everything"])
    plain = {
        "verify": options["verify"],
        "frozen": options["frozen"],
        "detach": options["detach"],
        "adopt": options["adopt"],
        "keep": options["keep"],
    }
    wishes = ApplyOptions(saved_plan=options["saved_plan"], lock_wait_s=options["wait"], **plain)
    as_text = options["form"] == "text"

    def agree(proposed: Plan, locked: LockResult) -> None:
        print_warnings(loaded, (*loaded.diagnostics, *locked.warnings))
        line = _lock_line(loaded, locked)
        if not proposed.changes and not line:
            return
        if locked.fresh:
            print_unconfirmed_hashes(locked)
        if as_text or not options["yes"]:
            console.print_stderr(
                plan_view.render_text(proposed, line, console.supports_color(sys.stderr))
            )
        console.confirm("Make it so?", yes=options["yes"], doing="apply")

    if wishes.saved_plan is None:
        report_import.import_dropped_reports(loaded, world, wait=wishes.lock_wait_s)
    with console.progress(ask=agree) as (tell, asked):
        applied = make(loaded, names, wishes, world, asked, tell)
    console.print_errors(applied.failed)
    if as_text:
        _show_applied(path, applied, loaded, world, verbose=options["verbose"])
    else:
        documents = [
            {
                **report_summary(r.report, r.json_path),
                "target": r.context.target,
                **_result_document(r, loaded),
            }
            for r in applied.results
        ]
        waiting = [
            {"target": one.context.target, **_pending_document(one, loaded, world)}
            for one in applied.pending
        ]
        failed = console.errors_to_json(applied.failed)
        whole = {
            "version": 1,
            "sandbox": loaded.sandbox_sources is not None,
            "results": documents,
            "waiting": waiting,
            "failed": failed,
        }
        console.print_result(json.dumps(whole, indent=1))
    return applied.exit_code


def run(path: Path, target: str | None, argv: tuple[str, ...], *, monitor: bool) -> int:
    """Run a program in the environment; the exit code is the program's, and so is the signal that
    ends it.
    """
    world = RealSystem()
    loaded = load_spec(path, world)
    (name,) = select_targets(loaded, (target,) if target else (), everything=False)
    ran = start(loaded, name, argv, world, console.print_note, monitor=monitor)
    if ran.record is not None:
        from provision.cli import report_run

        report_run.print_run_summary(ran.record, path, name, world)
    if ran.code < 0:
        from provision.adapters.monitored_process import exit_with_signal

        exit_with_signal(-ran.code)
    return ran.code


def destroy(
    path: Path,
    targets: tuple[str, ...],
    *,
    everything: bool,
    force: bool,
    yes: bool,
    form: str,
    sandbox: bool,
    **options: Any,
) -> int:
    """Remove what was made, after showing it."""

    def agree(actions: tuple[Action, ...]) -> None:
        if form == "text" or not yes:
            console.print_stderr(
                plan_view.render_actions(actions, console.supports_color(sys.stderr))
            )
        console.confirm("Remove it?", yes=yes, doing="destroy")

    failed: ErrorsByTarget = {}
    with open_system(path, sandbox=sandbox, faults=options["faults"]) as world:
        plain = {"everything": everything, "sandbox": sandbox, "force": force}
        done = remove(
            path,
            targets,
            world,
            agree,
            console.print_note,
            lock_wait_s=options["wait"],
            failed=failed,
            **plain,
        )
    console.print_errors(failed)
    if form == "json":
        told = {
            "version": 1,
            "removed": [action.title for action in done],
            "failed": console.errors_to_json(failed),
        }
        console.print_result(json.dumps(told, indent=1))
    else:
        console.print_result(
            f"removed: {len(done)}"
            if done or failed
            else "nothing to remove: nothing of this spec was made here"
        )
        if not (sandbox or done or failed) and _has_sandbox_resources(path, world):
            console.print_note("what was made in the sandbox is removed with --sandbox")
    return max((error.exit_code for error in failed.values()), default=0)


def _has_sandbox_resources(path: Path, world: RealSystem) -> bool:
    from provision.state_store import LocalStore

    try:
        made = LocalStore(Path(sandbox_folder(path), "state"), world).load_ledger().state.resources
    except ProvisionError:  # a damaged one is for the commands with --sandbox to tell
        return False
    return any(address.startswith(f"{path.stem}/") for address in made)


def _lock_line(loaded: LoadedSpec, locked: LockResult) -> str:
    return (
        f"{loaded.lock_path}: {len(locked.lock.packages)} packages locked ({locked.reason})"
        if locked.fresh
        else ""
    )


def _save_plan(out: Path, proposed: Plan, world: RealSystem) -> None:
    from provision.effects import WriteFile

    world.perform(
        WriteFile(out, json.dumps(proposed.fingerprint(), indent=1) + "\n", 0o600),
        console.print_note,
    )


def _result_document(result: TargetResult, loaded: LoadedSpec) -> dict[str, Any]:
    told = {"changed": result.changed, "fresh": result.fresh, "packages_fresh": result.installed}
    if result.summary.notebook is not None:
        found = compare_with_facts(loaded, result.context, result.report.document)
        names = {
            "notebook": report_import.notebook_name(result.summary.notebook),
            **({"session": result.summary.session} if result.summary.session else {}),
        }
        return {**told, **names, **report_import.facts_comparison_document(found, loaded)}
    if result.summary.instance is None:
        return {**told, "compared": result.summary.file_comparison or None}
    return {
        **told,
        "instance": result.summary.instance["instance"],
        "zone": result.summary.instance["zone"],
        "on_failure": result.on_failure_note or None,
    }


def _pending_document(one: PendingTarget, loaded: LoadedSpec, world: RealSystem) -> dict[str, Any]:
    if one.summary.instance is not None:
        return {"instance": one.summary.instance["instance"], "zone": one.summary.instance["zone"]}
    record = one.summary.notebook or {}
    name = report_import.notebook_name(record)
    return {
        "notebook": name,
        "nonce": record.get("nonce"),
        "because": one.reason,
        "link": build_colab_link(loaded.folder.parent / name, world),
    }


def _show_applied(
    path: Path, applied: ApplyResult, loaded: LoadedSpec, world: RealSystem, *, verbose: bool
) -> None:
    several = len(loaded.spec.targets) > 1
    for result in applied.results:
        _show_result(
            path,
            result,
            loaded,
            verbose=verbose,
            option=f" --target {result.context.target}" if several else "",
        )
    for waiting in applied.pending:
        if waiting.summary.instance is None:
            link = build_colab_link(
                loaded.folder.parent / report_import.notebook_name(waiting.summary.notebook or {}),
                world,
            )
            report_import.show_pending_notebook(
                loaded, waiting.context.target, waiting.summary.notebook or {}, waiting.reason, link
            )
            continue
        words = " --sandbox" if waiting.context.sandbox_sources is not None else ""
        option = f" --target {waiting.context.target}" if several else ""
        instance = waiting.summary.instance
        console.print_text(
            f"instance     {instance['instance']} in {instance['zone']}: "
            "it makes its environment now"
        )
        console.print_text(f"wait for it  provision attach {shlex.quote(str(path))}{option}{words}")
        if words:
            console.print_text(
                f"SANDBOX      {_DEVICE_LIFETIME_NOTE}: provision sandbox up --folder "
                f"{shlex.quote(sandbox_folder(path))}"
            )


def _show_result(
    path: Path, result: TargetResult, loaded: LoadedSpec, *, verbose: bool, option: str
) -> None:
    show_report(result.report.displayed_document, result.json_path, verbose=verbose)
    if not result.fresh:
        when = result.report.document["subject"].get("created_utc", "")
        again = (
            "run the notebook again for a new one"
            if runs_in_browser(result.context)
            else "--verify asks the device again"
        )
        console.print_text(f"No changes: this is the stored verdict of {when}; {again}.")
    if result.summary.notebook is not None:
        report_import.show_facts_comparison(
            compare_with_facts(loaded, result.context, result.report.document), loaded
        )
        console.print_text(
            "\nnotebook     "
            f"{os.path.relpath(loaded.folder.parent / report_import.notebook_name(result.summary.notebook))}"  # noqa: E501
        )
        if result.summary.session:
            console.print_text(
                f"running      {result.summary.session} at Colab, and it costs; give it back: "
                f"provision destroy {shlex.quote(str(path))}{option}"
            )
    elif result.summary.instance is not None:
        _show_instance(path, result, option)
    else:
        _show_environment(path, result, option)
    console.print_text(f"page         {os.path.relpath(result.html_path)}")


def _show_environment(path: Path, result: TargetResult, option: str) -> None:
    stable = os.path.relpath(result.interpreter.stable_prefix)
    launch = build_launch(result.context.spec, result.context.target, result.context.lock)
    console.print_text(f"\nenvironment  {stable}")
    if provenance := result.report.provenance:
        when = "" if result.installed else " (when the environment was made)"
        console.print_text(
            f"packages     {', '.join(f'{count} {way}' for way, count in provenance.items())}{when}"
        )
    if result.summary.file_comparison:
        console.print_text(f"compared     {result.summary.file_comparison}")
    console.print_text(f"activate     {_activation(result, stable)}")
    console.print_text(
        f"run          provision run {shlex.quote(str(path))}{option} -- "
        f"{shlex.join(launch_command(launch))}"
    )
    if launch.effective_launcher == "accelerate":
        console.print_text(
            f"launch       provision export {shlex.quote(str(path))}{option} --format "
            "accelerate --out accelerate.yaml"
        )
    if result.summary.kernel:
        console.print_text(
            f"kernel       {result.summary.kernel} (in Jupyter: {result.context.spec.name} "
            f"({result.context.target}))"
        )


def _activation(result: TargetResult, stable: str) -> str:
    """Return the line that puts a shell into an environment; conda takes a path for one when it has
    a slash.
    """
    target = result.context.spec.targets[result.context.target]
    if getattr(target, "manager", "uv") != "conda":
        return f"source {shlex.quote(f'{stable}/bin/activate')}"
    by = result.summary.activation or f"conda activate {shlex.quote(stable)}"
    return f"{by}   (without conda: PATH={shlex.quote(f'{stable}/bin')}:$PATH)"


def _show_instance(path: Path, result: TargetResult, option: str) -> None:
    record = result.summary.instance or {}
    sandbox = result.context.sandbox_sources is not None
    words = option + (" --sandbox" if sandbox else "")
    console.print_text(
        f"\ninstance     {record['instance']} in "
        f"{record['zone']}{', SANDBOX: not a real one' if sandbox else ''}"
    )
    if result.on_failure_note:
        console.print_text(f"left         {result.on_failure_note}")
    if provenance := result.report.provenance:
        console.print_text(
            f"packages     {', '.join(f'{count} {way}' for way, count in provenance.items())}"
        )
    console.print_text(f"environment  {result.interpreter.prefix} on the instance")
    launch = build_launch(result.context.spec, result.context.target, result.context.lock)
    if launch.strategy != "none":
        console.print_text(f"launch       {shlex.join(launch_command(launch))}")
    if result.context.spec.package("ipykernel") is not None:
        console.print_text(
            f"kernel       in Jupyter: {result.context.spec.name} ({result.context.target})"
        )
    console.print_text(f"open         provision open {shlex.quote(str(path))}{words}")
    console.print_text(f"remove       provision destroy {shlex.quote(str(path))}{words}")
