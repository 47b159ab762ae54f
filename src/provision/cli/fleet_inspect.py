"""`provision plan` and `provision status` for a folder of specs."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from provision.cli import console
from provision.cli.fleet import (
    FleetOptions,
    import_reports_of_fleet,
    open_fleet,
    print_failures,
)
from provision.cli.fleet_progress import watch_fleet
from provision.commands.apply import ApplyOptions
from provision.commands.fleets.planning import FleetPlan, plan_fleet
from provision.commands.fleets.status import FleetStatus, get_fleet_status
from provision.commands.shared.target_plans import worst_exit_code
from provision.views import plan as plan_view
from provision.views.fleet import (
    OutcomeRow,
    format_total,
    render_outcomes,
    summarize_plans,
)


def plan_folder(
    folder: Path,
    options: ApplyOptions,
    fleet_options: FleetOptions,
    *,
    detailed_exitcode: bool,
    as_json: bool,
) -> int:
    """Show what apply would do with every spec in a folder; return the exit code."""
    with open_fleet(folder, fleet_options) as (fleet, system, run), watch_fleet() as watcher:
        plan = plan_fleet(fleet, options, system, run, watcher)
    if as_json:
        _print_plan_as_json(plan)
    else:
        _print_plan(plan)
    print_failures(plan.failed)
    if plan.interruption is not None:
        raise plan.interruption
    code = worst_exit_code(error.exit_code for error in plan.failed.values())
    if not detailed_exitcode:
        return code
    has_changes = any(each.plan.changes or each.locked.fresh for each in plan.planned)
    return 1 if plan.failed else 2 * has_changes


def _print_plan(plan: FleetPlan) -> None:
    color, width = console.supports_color(), console.text_width(sys.stdout)
    for each in plan.planned:
        change = each.locked.change
        console.print_result(plan_view.render_target(each.plan, each.target.label, color, width))
        if change:
            console.print_row("", change)
    plans = [each.plan for each in plan.planned]
    if total := format_total(each.target.offer for each in plan.planned):
        console.print_text(f"Cost: {total}.")
    console.print_text(f"Plan: {summarize_plans(plans)}.")


def _print_plan_as_json(plan: FleetPlan) -> None:
    console.print_document(
        targets=[
            {
                "target": each.target.label,
                "dollars_per_hour": each.target.offer and each.target.offer.dollars,
                **plan_view.to_json(each.plan, each.locked.change),
            }
            for each in plan.planned
        ],
        summary=summarize_plans([each.plan for each in plan.planned]),
        **console.failures_to_json(dict(plan.failed)),
    )


def status_of_folder(folder: Path, fleet_options: FleetOptions, *, as_json: bool) -> int:
    """Show the status of every spec in a folder; return the exit code."""
    with open_fleet(folder, fleet_options) as (fleet, system, run), watch_fleet() as watcher:
        import_reports_of_fleet(fleet, system)
        labels = {target.address: target.label for target in fleet.targets}
        result = get_fleet_status(fleet, system, run, watcher)
    if as_json:
        _print_status_as_json(result)
    else:
        rows = [
            OutcomeRow(
                labels.get(f"{loaded.stem}/{target.target}", f"{loaded.stem}/{target.target}"),
                target.verdict or "not verified",
                "; ".join(filter(None, (target.condition, target.outdated, target.path))),
            )
            for loaded, each in result.specs
            for target in each.targets
        ]
        console.print_view(render_outcomes(rows, console.supports_color()))
    print_failures(result.failed)
    if result.interruption is not None:
        raise result.interruption
    return result.exit_code


def _print_status_as_json(result: FleetStatus) -> None:
    console.print_document(
        specs=[
            {
                "spec": str(loaded.path),
                "lock_moved": each.lock_differences,
                "targets": [dataclasses.asdict(target) for target in each.targets],
                "state_foreign": each.foreign_reason,
                **console.failures_to_json(each.failed),
            }
            for loaded, each in result.specs
        ],
        **console.failures_to_json(dict(result.failed), "spec"),
    )
