"""`provision destroy`: removes what apply created."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    ALL_TARGETS,
    FAULTS,
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    PARALLEL,
    SANDBOX,
    SPEC,
    TARGETS,
    YES,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.shared.target_plans import ErrorsByTarget
    from provision.effects.system import System
    from provision.plan import Action


@click.command(
    epilog=examples("provision destroy", "provision destroy specs/quickstart.yaml --yes")
)
@SPEC
@TARGETS
@ALL_TARGETS
@PARALLEL
@click.option(
    "--force", is_flag=True, help="Also remove environments that are in use by running programs."
)
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@YES
@OUTPUT_FORMAT
def destroy(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    parallel: int,
    force: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    yes: bool,
    output_format: str,
) -> int:
    """Remove everything that apply created, and nothing else."""
    as_json = output_format == "json"
    if spec.is_dir():
        from provision.cli.fleet import FleetOptions, refuse_folder_options
        from provision.cli.fleet_change import destroy_folder

        refuse_folder_options(spec, target=targets)
        return destroy_folder(
            spec,
            FleetOptions(parallel, sandbox=sandbox, faults=faults),
            all_targets=all_targets,
            lock_wait_s=lock_timeout,
            force=force,
            yes=yes,
            as_json=as_json,
        )

    return _destroy_spec(
        *(spec, targets),
        all_targets=all_targets,
        parallel=parallel,
        force=force,
        sandbox=sandbox,
        faults=faults,
        lock_timeout=lock_timeout,
        yes=yes,
        as_json=as_json,
    )


def _destroy_spec(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    parallel: int,
    force: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    yes: bool,
    as_json: bool,
) -> int:
    from provision.cli import console, session
    from provision.commands import destroy as command

    failed: ErrorsByTarget = {}
    run = None
    if all_targets or len(targets) > 1:
        from provision.cli.fleet import start_run

        run = start_run(parallel)
    with session.open_system(spec, sandbox=sandbox, faults=faults, run=run) as system:
        if run is not None:
            from provision.cli.fleet_change import destroy_targets
            from provision.commands.fleets.destroy import find_spec_removals

            removals = find_spec_removals(spec, targets, system, sandbox=sandbox)
            if len(removals) > 1:
                return destroy_targets(
                    *(removals, system, run),
                    lock_wait_s=lock_timeout,
                    force=force,
                    yes=yes,
                    as_json=as_json,
                )
        removed = command.destroy(
            spec,
            targets,
            system,
            partial(_confirm, yes=yes, as_json=as_json),
            console.print_note,
            everything=all_targets,
            lock_wait_s=lock_timeout,
            sandbox=sandbox,
            force=force,
            failed=failed,
        )
    console.print_errors(failed)
    if as_json:
        titles = [action.title for action in removed]
        console.print_document(removed=titles, **console.failures_to_json(failed))
    elif removed or failed:
        console.print_result(f"removed: {len(removed)}")
        _print_remaining_data(spec, system, sandbox=sandbox)
    else:
        console.print_result("nothing to remove: this spec has no resources here")
        if not sandbox and _has_sandbox_resources(spec, system, f"{spec.stem}/"):
            console.print_note("to remove the resources in the sandbox, add --sandbox")
    return max((error.exit_code for error in failed.values()), default=0)


def _print_remaining_data(spec: Path, system: System, *, sandbox: bool) -> None:
    """Print where the emulator keeps its data, once no target is left in a sandbox."""
    from provision.cli.console import print_note
    from provision.commands.shared.load import sandbox_folder

    if sandbox and not _has_sandbox_resources(spec, system, ""):
        print_note(
            "SANDBOX: nothing is left to destroy; to remove the emulator's data too, delete "
            f"{sandbox_folder(spec)}"
        )


def _confirm(actions: tuple[Action, ...], *, yes: bool, as_json: bool) -> None:
    """Show the removals and request a confirmation."""
    from provision.cli import console
    from provision.views.plan import render_actions

    if not as_json or not yes:
        color, width = console.supports_color(sys.stderr), console.text_width(sys.stderr)
        console.print_stderr(render_actions(actions, color, width))
    console.confirm("Remove these resources?", yes=yes, doing="destroy")


def _has_sandbox_resources(path: Path, system: System, prefix: str) -> bool:
    """Return whether the sandbox of a spec records resources at addresses with a prefix."""
    from provision.commands.shared.load import state_folder
    from provision.errors import ProvisionError
    from provision.state_store import LocalStore

    try:
        ledger = LocalStore(state_folder(path, sandbox=True), system).load_ledger()
    except ProvisionError:  # the commands with --sandbox report a damaged state
        return False
    return any(address.startswith(prefix) for address in ledger.state.resources)
