"""`provision apply`: makes the targets of a spec and verifies them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    ADOPT,
    ALL_TARGETS,
    FAULTS,
    FILE,
    LOCK_TIMEOUT,
    LOCKED,
    OFFLINE,
    OUTPUT_FORMAT,
    SANDBOX,
    SPEC,
    TARGETS,
    VERBOSE,
    YES,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.lock import LockResult
    from provision.commands.shared.load import LoadedSpec
    from provision.plan import Plan


@click.command(
    epilog=examples(
        "provision apply",
        "provision apply specs/quickstart.yaml --yes",
        "provision apply --locked --yes   # in CI",
    )
)
@SPEC
@TARGETS
@ALL_TARGETS
@click.option(
    "--plan",
    "saved_plan",
    type=FILE,
    help="Carry out a saved plan, and only that.",
)
@click.option("--verify", is_flag=True, help="Verify again even when nothing changed.")
@LOCKED
@click.option(
    "--detach",
    is_flag=True,
    help="Do not wait for an instance's report; `provision attach` does later.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Leave the machine of a target with via: colab-cli running; `provision destroy` gives "
    "it back.",
)
@ADOPT
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@OFFLINE
@YES
@VERBOSE
@OUTPUT_FORMAT
def apply(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    saved_plan: Path | None,
    verify: bool,
    locked: bool,
    detach: bool,
    keep: bool,
    adopt: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    offline: bool,
    yes: bool,
    verbose: bool,
    output_format: str,
) -> int:
    """Make what the spec declares, and prove it on the device."""
    from provision.cli import apply_output, console
    from provision.cli.session import import_dropped_reports, open_session
    from provision.commands import apply as command
    from provision.commands.shared.target_plans import select_targets

    options = command.ApplyOptions(
        verify=verify,
        frozen=locked,
        saved_plan=saved_plan,
        lock_wait_s=lock_timeout,
        detach=detach,
        keep=keep,
        adopt=adopt,
    )
    with open_session(spec, sandbox=sandbox, faults=faults, offline=offline) as (loaded, system):
        names = select_targets(loaded, targets, everything=all_targets)
        if saved_plan is None:
            import_dropped_reports(loaded, system, lock_timeout=lock_timeout)
        with console.progress() as progress:

            def confirm(plan: Plan, lock: LockResult) -> None:
                with progress.paused():
                    _confirm(loaded, plan, lock, yes=yes, show_plan=output_format == "text")

            result = command.apply(loaded, names, options, system, confirm, progress)
        if output_format == "json":
            apply_output.print_as_json(result, loaded)
        else:
            apply_output.print_as_text(result, loaded, verbose=verbose)
    return result.exit_code


def _confirm(
    loaded: LoadedSpec, plan: Plan, lock: LockResult, *, yes: bool, show_plan: bool
) -> None:
    """Show the plan and ask; a plan without changes needs no answer."""
    from provision.cli import console
    from provision.views.plan import render_text

    console.print_findings(lock.warnings, loaded.source)
    if not plan.changes and not lock.fresh:
        return
    if lock.fresh and lock.unconfirmed_note:
        console.print_note(lock.unconfirmed_note)
    if show_plan or not yes:
        console.print_stderr(render_text(plan, lock.change, console.supports_color(sys.stderr)))
    console.confirm("Make it so?", yes=yes, doing="apply")
