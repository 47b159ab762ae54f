"""`provision destroy`: removes what apply made."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    ALL_TARGETS,
    FAULTS,
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    SANDBOX,
    SPEC,
    TARGETS,
    YES,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.shared.multi_target import ErrorsByTarget
    from provision.effects.system import System
    from provision.plan import Action


@click.command(
    epilog=examples("provision destroy", "provision destroy specs/quickstart.yaml --yes")
)
@SPEC
@TARGETS
@ALL_TARGETS
@click.option("--force", is_flag=True, help="Also remove environments in which programs run.")
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
    force: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    yes: bool,
    output_format: str,
) -> int:
    """Remove exactly what apply made."""
    from provision.cli import console, session
    from provision.commands import destroy as command
    from provision.views.plan import render_actions

    def confirm(actions: tuple[Action, ...]) -> None:
        if output_format == "text" or not yes:
            color = console.supports_color(sys.stderr)
            console.print_stderr(render_actions(actions, color))
        console.confirm("Remove it?", yes=yes, doing="destroy")

    failed: ErrorsByTarget = {}
    with session.open_system(spec, sandbox=sandbox, faults=faults) as system:
        removed = command.destroy(
            spec,
            targets,
            system,
            confirm,
            console.print_note,
            everything=all_targets,
            lock_wait_s=lock_timeout,
            sandbox=sandbox,
            force=force,
            failed=failed,
        )
    console.print_errors(failed)
    if output_format == "json":
        titles = [action.title for action in removed]
        console.print_document(removed=titles, failed=console.errors_to_json(failed))
    elif removed or failed:
        console.print_result(f"removed: {len(removed)}")
    else:
        console.print_result("nothing to remove: nothing of this spec was made here")
        if not sandbox and _has_sandbox_resources(spec, system):
            console.print_note("what was made in the sandbox is removed with --sandbox")
    return max((error.exit_code for error in failed.values()), default=0)


def _has_sandbox_resources(path: Path, system: System) -> bool:
    from provision.commands.shared.load import state_folder
    from provision.errors import ProvisionError
    from provision.state_store import LocalStore

    try:
        ledger = LocalStore(state_folder(path, sandbox=True), system).load_ledger()
    except ProvisionError:  # the commands with --sandbox report a damaged state
        return False
    return any(address.startswith(f"{path.stem}/") for address in ledger.state.resources)
