"""`provision apply`: creates the targets of a spec and verifies them."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
    from provision.cli.fleet import FleetOptions
    from provision.cli.fleet_progress import LineWatcher
    from provision.cli.progress import Progress
    from provision.commands.apply import ApplyOptions, ApplyResult
    from provision.commands.fleets.parallel_run import ParallelRun
    from provision.commands.lock import LockResult
    from provision.commands.shared.load import LoadedSpec
    from provision.effects.system import System
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
    from provision.cli.fleet import FleetOptions
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
    fleet_options = FleetOptions(parallel, keep_going, sandbox, faults, offline)
    if spec.is_dir():
        from provision.cli.fleet_apply import apply_folder

        return apply_folder(
            *(spec, targets, options, fleet_options),
            all_targets=all_targets,
            yes=yes,
            as_json=as_json,
        )
    return _apply_spec(
        *(spec, targets, options, fleet_options),
        all_targets=all_targets,
        yes=yes,
        verbose=verbose,
        as_json=as_json,
    )


def _apply_spec(
    spec: Path,
    targets: tuple[str, ...],
    options: ApplyOptions,
    fleet_options: FleetOptions,
    *,
    all_targets: bool,
    yes: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    from provision.cli import apply_output, console, session
    from provision.cli.fleet import start_run
    from provision.commands.shared.target_selection import select_targets
    from provision.errors import UsageError

    if fleet_options.keep_going:
        why = f"{spec} is not a folder"
        raise UsageError("--keep-going works only with a folder", why=why, hint="omit --keep-going")
    has_shown_findings = False
    run = None
    if (all_targets or len(targets) > 1) and options.saved_plan is None:
        run = start_run(fleet_options.parallel)
    _, _, sandbox, faults, offline, _ = fleet_options
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

        run = run if len(names) > 1 else None
        result, interruption = _perform(loaded, names, options, system, run, confirm)
        if as_json:
            apply_output.print_as_json(result, loaded)
        else:
            apply_output.print_as_text(result, loaded, verbose=verbose)
    if interruption is not None:
        raise interruption
    return result.exit_code


def _perform(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    options: ApplyOptions,
    system: System,
    run: ParallelRun | None,
    confirm: Callable[[Progress | LineWatcher, Plan, LockResult], None],
) -> tuple[ApplyResult, BaseException | None]:
    """Apply targets, in threads if there is a run; return the result and the interrupt."""
    if run is None:
        from provision.cli.progress import show_progress
        from provision.commands.apply import apply as apply_in_order

        with show_progress() as progress:
            ask = partial(confirm, progress)
            return apply_in_order(loaded, names, options, system, ask, progress), None
    from provision.cli.fleet_apply import apply_targets
    from provision.cli.fleet_progress import watch_fleet

    with watch_fleet() as watcher:
        ask = partial(confirm, watcher)
        return apply_targets(loaded, names, options, system, run, watcher, ask)


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
