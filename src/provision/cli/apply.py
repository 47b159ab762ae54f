"""`provision apply`: creates the targets of a spec and verifies them."""

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
    from provision.plan import Plan

TIERS = ("inventory", "quick", "deep", "burn")


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
    help="Apply this saved plan, and nothing else.",
)
@click.option("--verify", is_flag=True, help="Verify again even if nothing has changed.")
@click.option(
    "--tier",
    type=click.Choice(TIERS),
    help="Verify with this tier instead of the spec's `verify.tier`.",
)
@LOCKED
@click.option(
    "--detach",
    is_flag=True,
    help="Do not wait for an instance's report; use `provision attach` to wait for it later.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="With `via: colab-cli`, keep the machine running; `provision destroy` stops it.",
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
    tier: str | None,
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
    """Create what the spec declares, and verify it on the device."""
    from provision.cli import apply_output, console
    from provision.cli.progress import show_progress
    from provision.cli.session import import_dropped_reports, open_session
    from provision.commands import apply as command
    from provision.commands.shared.target_selection import select_targets

    options = command.ApplyOptions(
        verify=verify,
        frozen=locked,
        saved_plan=saved_plan,
        lock_wait_s=lock_timeout,
        detach=detach,
        keep=keep,
        adopt=adopt,
        tier=tier or "",
    )
    with open_session(spec, sandbox=sandbox, faults=faults, offline=offline) as (loaded, system):
        names = select_targets(loaded, targets, everything=all_targets)
        if saved_plan is None:
            import_dropped_reports(loaded, system, lock_timeout=lock_timeout)
        with show_progress() as progress:
            has_shown_findings = False

            def confirm(plan: Plan, lock: LockResult) -> None:
                nonlocal has_shown_findings
                with progress.paused():
                    if not has_shown_findings:
                        console.print_lock_findings(lock, loaded)
                    has_shown_findings = True
                    _confirm(plan, lock, yes=yes, show_plan=output_format == "text")

            result = command.apply(loaded, names, options, system, confirm, progress)
        if output_format == "json":
            apply_output.print_as_json(result, loaded)
        else:
            apply_output.print_as_text(result, loaded, verbose=verbose)
    return result.exit_code


def _confirm(plan: Plan, lock: LockResult, *, yes: bool, show_plan: bool) -> None:
    """Show the plan and request a confirmation; a plan without changes needs none."""
    from provision.cli import console
    from provision.views.plan import render_text

    if not plan.changes and not lock.fresh:
        return
    if lock.fresh and lock.unconfirmed_note:
        console.print_note(lock.unconfirmed_note)
    if show_plan or not yes:
        color, width = console.supports_color(sys.stderr), console.text_width(sys.stderr)
        console.print_stderr(render_text(plan, lock.change, color, width))
    console.confirm("Apply these changes?", yes=yes, doing="apply")
