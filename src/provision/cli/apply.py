"""`provision apply`: creates the targets of a spec and verifies them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    ADOPT,
    ALL_TARGETS,
    FAULTS,
    FILE,
    KEEP_GOING,
    LOCK_TIMEOUT,
    LOCKED,
    OFFLINE,
    OUTPUT_FORMAT,
    PARALLEL,
    SANDBOX,
    SPEC,
    TARGETS,
    VERBOSE,
    YES,
    examples,
)

if TYPE_CHECKING:
    from provision.cli.fleet_progress import LineWatcher
    from provision.cli.progress import Progress
    from provision.commands.apply import ApplyOptions
    from provision.commands.lock import LockResult
    from provision.plan import Plan

TIERS = ("inventory", "quick", "deep", "burn")


@click.command(
    epilog=examples(
        "provision apply",
        "provision apply specs/quickstart.yaml --yes",
        "provision apply --locked --yes   # in CI",
        "provision apply specs --all      # every spec in a folder",
    )
)
@SPEC
@TARGETS
@ALL_TARGETS
@PARALLEL
@KEEP_GOING
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
    parallel: int,
    keep_going: bool,
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
    from provision.commands.apply import ApplyOptions

    options = ApplyOptions(
        verify=verify,
        frozen=locked,
        saved_plan=saved_plan,
        lock_wait_s=lock_timeout,
        detach=detach,
        keep=keep,
        adopt=adopt,
        tier=tier or "",
    )
    as_json = output_format == "json"
    if spec.is_dir():
        from provision.cli.fleet import FleetOptions, refuse_folder_options
        from provision.cli.fleet_apply import apply_folder

        refuse_folder_options(spec, target=targets, plan=saved_plan)
        fleet_options = FleetOptions(parallel, keep_going, sandbox, faults, offline)
        return apply_folder(
            spec, options, fleet_options, all_targets=all_targets, yes=yes, as_json=as_json
        )
    if keep_going:
        from provision.errors import UsageError

        raise UsageError(
            f"--keep-going applies to a folder, and {spec} is not a folder", hint="omit it"
        )
    return _apply_spec(
        spec,
        targets,
        options,
        all_targets=all_targets,
        parallel=parallel,
        sandbox=sandbox,
        faults=faults,
        offline=offline,
        yes=yes,
        verbose=verbose,
        as_json=as_json,
    )


def _apply_spec(
    spec: Path,
    targets: tuple[str, ...],
    options: ApplyOptions,
    *,
    all_targets: bool,
    parallel: int,
    sandbox: bool,
    faults: tuple[str, ...],
    offline: bool,
    yes: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    from provision.cli import apply_output, console, session
    from provision.cli.progress import show_progress
    from provision.commands import apply as command
    from provision.commands.shared.target_selection import select_targets

    has_shown_findings = False
    run = None
    if (all_targets or len(targets) > 1) and options.saved_plan is None:
        from provision.cli.fleet import start_run

        run = start_run(parallel)
    opened = session.open_session(spec, sandbox=sandbox, faults=faults, offline=offline, run=run)
    with opened as (loaded, system):
        names = select_targets(loaded, targets, everything=all_targets)
        if options.saved_plan is None:
            session.import_dropped_reports(loaded, system, lock_timeout=options.lock_wait_s)

        def confirm(progress: Progress | LineWatcher, plan: Plan, lock: LockResult) -> None:
            nonlocal has_shown_findings
            with progress.paused():
                if not has_shown_findings:
                    console.print_lock_findings(lock, loaded)
                has_shown_findings = True
                _confirm(plan, lock, yes=yes, show_plan=not as_json)

        interruption = None
        if run is None or len(names) == 1:
            with show_progress() as progress:
                ask = partial(confirm, progress)
                result = command.apply(loaded, names, options, system, ask, progress)
        else:
            from provision.cli.fleet_apply import apply_targets
            from provision.cli.fleet_progress import watch_fleet

            with watch_fleet() as watcher:
                ask = partial(confirm, watcher)
                result, interruption = apply_targets(
                    loaded, names, options, system, run, watcher, ask
                )
        if as_json:
            apply_output.print_as_json(result, loaded)
        else:
            apply_output.print_as_text(result, loaded, verbose=verbose)
    if interruption is not None:
        raise interruption
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
