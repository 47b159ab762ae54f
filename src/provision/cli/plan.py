"""`provision plan`: shows what apply would do."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    ADOPT,
    ALL_TARGETS,
    FAULTS,
    FILE,
    LOCKED,
    OFFLINE,
    OUTPUT_FORMAT,
    PARALLEL,
    SANDBOX,
    SPEC,
    TARGETS,
    examples,
)

if TYPE_CHECKING:
    from provision.adapters import RealSystem
    from provision.commands.plan import PlanResult
    from provision.commands.shared.load import LoadedSpec


@click.command(
    epilog=examples(
        "provision plan", "provision plan --out plan.json && provision apply --plan plan.json --yes"
    )
)
@SPEC
@TARGETS
@ALL_TARGETS
@PARALLEL
@click.option(
    "--out",
    type=FILE,
    help="Save the plan to this file; `apply --plan` rejects it if anything has changed since.",
)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit 0 if there are no changes, 2 if there are changes, 1 on errors.",
)
@LOCKED
@ADOPT
@SANDBOX
@FAULTS
@OFFLINE
@OUTPUT_FORMAT
def plan(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    parallel: int,
    out: Path | None,
    detailed_exitcode: bool,
    locked: bool,
    adopt: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    offline: bool,
    output_format: str,
) -> int:
    """Show what apply would do, and why. Changes nothing."""
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.cli.session import open_session, print_fit
    from provision.commands import plan as command
    from provision.commands.shared.target_selection import select_targets
    from provision.errors import UsageError

    if spec.is_dir():
        from provision.cli.fleet import FleetOptions, refuse_folder_options
        from provision.cli.fleet_inspect import plan_folder
        from provision.commands.apply import ApplyOptions

        refuse_folder_options(spec, target=targets, out=out)
        return plan_folder(
            spec,
            ApplyOptions(frozen=locked, adopt=adopt),
            FleetOptions(parallel, False, sandbox, faults, offline, apart=True),
            detailed_exitcode=detailed_exitcode,
            as_json=output_format == "json",
        )
    if all_targets and targets:
        raise UsageError("--all and --target cannot be combined", hint="omit one of them")
    session = open_session(spec, sandbox=sandbox, faults=faults, offline=offline, apart=out is None)
    with session as (loaded, system):
        names = select_targets(loaded, targets, everything=True)
        with show_progress() as progress:
            result = command.plan(loaded, names, system, progress, frozen=locked, adopt=adopt)
            if out is not None and result.failed:
                raise next(iter(result.failed.values()))
        console.print_lock_findings(result.locked, loaded)
        if out is not None:
            _save(loaded, result, out, system)
        _print_plan(loaded, result, output_format)
        print_fit(loaded, names, system)
    console.print_errors(result.failed)
    if detailed_exitcode and result.failed:
        return 1
    return 2 if detailed_exitcode and result.has_changes else result.exit_code


def _save(loaded: LoadedSpec, result: PlanResult, out: Path, system: RealSystem) -> None:
    """Write the plan for `apply --plan`."""
    from provision.cli import console
    from provision.effects.local import WriteFile
    from provision.errors import Refused

    if result.locked.fresh:
        raise Refused(
            "a plan can be saved only if the lock is up to date",
            why=result.locked.reason,
            hint=f"run `{loaded.command('lock')}` first",
        )
    fingerprint = json.dumps(result.target_plans.plan.fingerprint(), indent=1)
    system.perform(WriteFile(out, fingerprint + "\n", 0o600), console.print_note)
    console.print_note(
        f"saved {out}; apply it with `{loaded.command('apply')} --plan {shlex.quote(str(out))}`"
    )


def _print_plan(loaded: LoadedSpec, result: PlanResult, output_format: str) -> None:
    from provision.cli import console
    from provision.views import plan as view

    proposed, line = result.target_plans.plan, result.locked.change
    if output_format == "json":
        failures = console.failures_to_json(result.failed)
        console.print_json({**view.to_json(proposed, line), **failures})
        return
    stopped = {f"{loaded.stem}/{name}": error.what for name, error in result.failed.items()}
    width = console.text_width(sys.stdout)
    console.print_result(view.render_text(proposed, line, console.supports_color(), width, stopped))
