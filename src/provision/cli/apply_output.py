"""Results of `provision apply`: verdicts and next steps."""

from __future__ import annotations

import dataclasses
import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provision.cli import notebook_output, report_output
from provision.cli.console import (
    failures_to_json,
    print_document,
    print_errors,
    print_prose_row,
    print_row,
    print_text,
)
from provision.commands.apply import ApplyResult, PendingTarget, TargetResult
from provision.commands.shared.facts_comparison import compare_with_facts
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.target_plans import runs_in_browser
from provision.targets import TargetContext, get_driver
from provision.targets.capabilities import Openable
from provision.targets.summary import InstanceSummary, NotebookSummary, ResourceSummary

if TYPE_CHECKING:
    from provision.agent.probe.proofs.launch import Launch

_DEVICE_LIFETIME_NOTE = (
    "the device stops when the command that runs the sandbox ends, and `provision attach` "
    "starts it again; to keep it running, start the sandbox in another terminal"
)


def print_as_json(applied: ApplyResult, loaded: LoadedSpec) -> None:
    """Write the results for programs."""
    print_errors(applied.failed)
    print_document(
        sandbox=loaded.sandbox_sources is not None,
        results=[_result_document(result, loaded) for result in applied.results],
        waiting=[_pending_document(pending) for pending in applied.pending],
        **failures_to_json(applied.failed),
    )


def _result_document(result: TargetResult, loaded: LoadedSpec) -> dict[str, Any]:
    document = {
        **report_output.report_summary(result.report, result.json_path),
        "target": result.context.target,
        "changed": result.changed,
        "fresh": result.fresh,
        "packages_fresh": result.installed,
    }
    if result.summary.notebook is not None:
        document["notebook"] = result.summary.notebook.file
        if result.summary.session:
            document["session"] = result.summary.session
        comparison = compare_with_facts(loaded, result.context, result.report.document)
        return document | notebook_output.facts_comparison_document(comparison, loaded)
    if result.summary.resource is not None:
        return {**document, "resource": dataclasses.asdict(result.summary.resource)}
    if result.summary.instance is None:
        return {**document, "compared": result.summary.file_comparison or None}
    return {
        **document,
        "instance": result.summary.instance.name,
        "zone": result.summary.instance.zone,
        "on_failure": result.on_failure_note or None,
    }


def _pending_document(pending: PendingTarget) -> dict[str, Any]:
    document: dict[str, Any] = {"target": pending.context.target}
    if pending.summary.instance is not None:
        instance = pending.summary.instance
        return {**document, "instance": instance.name, "zone": instance.zone}
    if pending.summary.resource is not None:
        resource = dataclasses.asdict(pending.summary.resource)
        return {**document, "resource": resource, "because": pending.reason}
    notebook = pending.summary.notebook
    if notebook is None:
        return document
    return {
        **document,
        "notebook": notebook.file,
        "nonce": notebook.nonce,
        "because": pending.reason,
        "link": notebook.link,
    }


def print_as_text(applied: ApplyResult, loaded: LoadedSpec, *, verbose: bool) -> None:
    """Write the results for people."""
    print_errors(applied.failed)
    for result in applied.results:
        _print_result(result, loaded, verbose=verbose)
    for pending in applied.pending:
        notebook = pending.summary.notebook
        if pending.summary.instance is not None:
            _print_pending_instance(pending.summary.instance, pending.context, loaded)
        if pending.summary.resource is not None:
            _print_resource(pending.summary.resource, pending.context)
            print_row("unverified", pending.reason)
        if notebook is not None:
            notebook_output.print_pending_notebook(
                loaded,
                pending.context,
                notebook.file,
                pending.reason,
                notebook.link,
                (notebook.report_uri, notebook.report_path),
            )
            if notebook.payload_note:
                print_prose_row("first", notebook.payload_note)


def _print_pending_instance(
    instance: InstanceSummary, context: TargetContext, loaded: LoadedSpec
) -> None:
    print_row("instance", f"{instance.name} in {instance.zone} is creating its environment")
    print_row("wait for it", context.command("attach"))
    if loaded.sandbox_sources is None:
        return
    folder = shlex.quote(loaded.sandbox_folder)
    print_row("SANDBOX", f"{_DEVICE_LIFETIME_NOTE}: provision sandbox up --folder {folder}")


def _print_resource(resource: ResourceSummary, context: TargetContext) -> None:
    sandbox = ", SANDBOX: not real" if context.sandbox_sources is not None else ""
    print_row(resource.kind, f"{resource.name} in {resource.location}{sandbox}")
    print_row("use", resource.next_step)
    print_row("remove", context.command("destroy"))


def _print_result(result: TargetResult, loaded: LoadedSpec, *, verbose: bool) -> None:
    report_output.print_report(result.report, result.json_path, verbose=verbose)
    if not result.fresh:
        created = result.report.document["subject"].get("created_utc", "")
        again = "use --verify to verify again"
        if runs_in_browser(result.context):
            again = "run the notebook again for a new verdict"
        print_text(f"No changes: this is the stored verdict of {created}; {again}.")
    if result.summary.notebook is not None:
        _print_notebook(result, result.summary.notebook, loaded)
    elif result.summary.instance is not None:
        _print_instance(result, result.summary.instance)
    elif result.summary.resource is not None:
        print_text("")
        _print_resource(result.summary.resource, result.context)
        _print_provenance(result)
    else:
        _print_environment(result)
    print_row("page", os.path.relpath(result.html_path))


def _print_notebook(result: TargetResult, summary: NotebookSummary, loaded: LoadedSpec) -> None:
    comparison = compare_with_facts(loaded, result.context, result.report.document)
    notebook_output.print_facts_comparison(comparison, loaded)
    notebook = notebook_output.notebook_path(loaded, summary.file)
    print_text("")
    print_row("notebook", os.path.relpath(notebook))
    if result.summary.session:
        destroy = result.context.command("destroy")
        print_row(
            "running",
            f"{result.summary.session} on Colab, which costs money; stop it with {destroy}",
        )


def _print_environment(result: TargetResult) -> None:
    stable = os.path.relpath(result.interpreter.stable_prefix)
    context, launch = result.context, _launch(result)
    print_text("")
    print_row("environment", stable)
    when = "" if result.installed else " (when the environment was created)"
    _print_provenance(result, when)
    if result.summary.file_comparison:
        print_prose_row("compared", result.summary.file_comparison)
    print_row("activate", _activation(result, stable))
    # With its target: the line stays right when the spec gets another one.
    run = replace(context, target_option=context.target).command("run")
    print_row("run", f"{run} -- {_join_launch(launch)}")
    if launch.effective_launcher == "accelerate":
        export = context.command("export")
        print_row("launch", f"{export} --format accelerate --out accelerate.yaml")
    if result.summary.kernel:
        print_row(
            "kernel",
            f"{result.summary.kernel} (in Jupyter: {context.spec.name} ({context.target}))",
        )


def _launch(result: TargetResult) -> Launch:
    # Here: it loads the probe, and is needed after the verification only.
    from provision.commands.shared.launch import build_launch

    context = result.context
    return build_launch(context.spec, context.target, context.lock)


def _join_launch(launch: Launch) -> str:
    from provision.agent.probe.proofs.launch import launch_command

    return shlex.join(launch_command(launch))


def _activation(result: TargetResult, stable: str) -> str:
    """Return the line that activates an environment in a shell."""
    target = result.context.spec.targets[result.context.target]
    if getattr(target, "manager", "uv") != "conda":
        return f"source {shlex.quote(f'{stable}/bin/activate')}"
    # conda takes a name with a slash for a path.
    activate = result.summary.activation or f"conda activate {shlex.quote(stable)}"
    return f"{activate}   (without conda: PATH={shlex.quote(f'{stable}/bin')}:$PATH)"


def _print_instance(result: TargetResult, summary: InstanceSummary) -> None:
    context = result.context
    instance = f"{summary.name} in {summary.zone}"
    if context.sandbox_sources is not None:
        instance += ", SANDBOX: not real"
    print_text("")
    print_row("instance", instance)
    if result.on_failure_note:
        print_prose_row("left", result.on_failure_note)
    _print_provenance(result)
    print_row("environment", f"{result.interpreter.prefix} on the instance")
    launch = _launch(result)
    if launch.strategy != "none":
        print_row("launch", _join_launch(launch))
    if context.spec.package("ipykernel") is not None:
        print_row("kernel", f"in Jupyter: {context.spec.name} ({context.target})")
    if isinstance(get_driver(context), Openable):
        print_row("open", context.command("open"))
    print_row("remove", context.command("destroy"))


def _print_provenance(result: TargetResult, when: str = "") -> None:
    """Write how many packages came from where."""
    if provenance := result.report.provenance:
        counts = ", ".join(f"{count} {origin}" for origin, count in provenance.items())
        print_prose_row("packages", f"{counts}{when}")
