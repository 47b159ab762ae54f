"""`provision apply` for several targets: those of a folder, or of one spec."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.cli import console
from provision.cli.fleet import (
    FleetOptions,
    import_reports_of_fleet,
    open_fleet,
    print_failures,
    refuse_folder_options,
    require_all,
)
from provision.cli.fleet_progress import LineWatcher, watch_fleet
from provision.commands.apply import (
    ApplyOptions,
    ApplyResult,
    PendingTarget,
    TargetResult,
)
from provision.commands.fleets.apply import FleetResult, apply_fleet
from provision.commands.fleets.members import Fleet, list_targets
from provision.commands.fleets.parallel_run import JobOutcome, JobState, ParallelRun
from provision.commands.fleets.planning import FleetPlan, plan_fleet
from provision.commands.shared.target_plans import worst_exit_code
from provision.commands.shared.verified_tier import override_tier
from provision.errors import ProvisionError
from provision.plan import Plan
from provision.spelling import format_command, pluralize
from provision.views.fleet import (
    OutcomeRow,
    PlanRow,
    count_outcomes,
    render_outcomes,
    render_plan_summary,
)

if TYPE_CHECKING:
    from provision.commands.lock import LockResult
    from provision.commands.shared.load import LoadedSpec
    from provision.effects.system import System


@dataclass(frozen=True, slots=True)
class AppliedTarget:
    """What is kept of a target that was applied: its verdict and where it is."""

    verdict: str
    detail: str
    exit_code: int
    report: str = ""
    changed: bool = False


def apply_folder(
    folder: Path,
    targets: tuple[str, ...],
    options: ApplyOptions,
    fleet_options: FleetOptions,
    *,
    all_targets: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Apply every spec in a folder; return the exit code."""
    refuse_folder_options(folder, target=targets, plan=options.saved_plan)

    def change(loaded: LoadedSpec) -> LoadedSpec:
        return override_tier(loaded, options.tier) if options.tier else loaded

    with open_fleet(folder, fleet_options, change) as (fleet, system, run):
        sandbox = fleet_options.sandbox
        require_all(fleet, "apply", all_targets=all_targets, sandbox=sandbox)
        import_reports_of_fleet(fleet, system, options.lock_wait_s)
        keep_going = fleet_options.keep_going
        with watch_fleet() as watcher:
            if fleet.failed and not keep_going:
                with watcher.paused():
                    return _refuse_start(fleet, fleet.failed, as_json=as_json)
            plan = plan_fleet(fleet, options, system, run, watcher)
            if plan.interruption is not None:
                raise plan.interruption
            with watcher.paused():
                if plan.failed and not keep_going:
                    return _refuse_start(fleet, plan.failed, as_json=as_json)
                _confirm(plan, yes=yes, show_plan=not as_json)
            result = apply_fleet(plan, options, system, run, watcher, _reduce)
    rows = tuple(map(_outcome_row, result.run.outcomes)) + _failed_rows(plan.failed)
    if as_json:
        _print_as_json(result, rows, sandbox=sandbox)
    else:
        print_failures(result.errors)
        console.print_view(render_outcomes(rows, console.supports_color()))
        _print_rest(result, rows, sandbox=sandbox)
    if result.run.interruption is not None:
        raise result.run.interruption
    return result.exit_code


def apply_targets(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    options: ApplyOptions,
    system: System,
    run: ParallelRun,
    watcher: LineWatcher,
    confirm: Callable[[Plan, LockResult], None],
) -> tuple[ApplyResult, BaseException | None]:
    """Apply several targets of one spec; return the result, and the interrupt if one came.

    Raises:
        ProvisionError: a target cannot be planned.
    """
    if options.tier:
        loaded = override_tier(loaded, options.tier)
    fleet = Fleet(loaded.path, list_targets(loaded, names), {})
    plan = plan_fleet(fleet, options, system, run, watcher)
    if plan.interruption is not None:
        raise plan.interruption
    for error in plan.failed.values():
        raise error
    confirm(_join([each.plan for each in plan.planned]), plan.planned[0].locked)
    result = apply_fleet(plan, options, system, run, watcher, lambda value: value)
    values = [outcome.value for outcome in result.run.outcomes]
    applied = ApplyResult(
        tuple(value for value in values if isinstance(value, TargetResult)),
        tuple(value for value in values if isinstance(value, PendingTarget)),
        result.errors,
    )
    if result.run.interruption is not None:
        for note in (note for outcome in result.run.outcomes for note in outcome.notes):
            result.run.interruption.add_note(note)
    return applied, result.run.interruption


def _join(plans: list[Plan]) -> Plan:
    """Return the plan of all targets of one spec."""
    actions = tuple(action for plan in plans for action in plan.actions)
    verifications = {name: each for plan in plans for name, each in plan.verifications.items()}
    return replace(plans[0], actions=actions, verifications=verifications)


def _reduce(value: TargetResult | PendingTarget) -> AppliedTarget:
    """Return what the end of a run shows of a target; reports would fill the memory."""
    summary = value.summary
    place = ""
    if summary.instance is not None:
        place = f"{summary.instance.name} in {summary.instance.zone}"
    elif summary.resource is not None:
        place = f"{summary.resource.name} in {summary.resource.location}"
    elif summary.notebook is not None:
        place = summary.notebook.file
    if isinstance(value, PendingTarget):
        reason = value.reason or "not waited for"
        return AppliedTarget("pending", f"{place}: {reason}" if place else reason, 3, changed=True)
    if not place:
        place = str(value.interpreter.stable_prefix)
    sentence = value.report.sentence if value.exit_code else place
    if value.on_failure_note:
        sentence += f"; {value.on_failure_note}"
    return AppliedTarget(
        value.report.verdict,
        sentence if value.fresh else f"{sentence} (no changes)",
        value.exit_code,
        str(value.json_path),
        value.changed,
    )


def _outcome_row(outcome: JobOutcome) -> OutcomeRow:
    if isinstance(outcome.value, AppliedTarget):
        return OutcomeRow(outcome.label, outcome.value.verdict, outcome.value.detail)
    what = outcome.error.what if outcome.error is not None else ""
    if outcome.state is JobState.INTERRUPTED:
        what = "; ".join(note.partition("\n")[0] for note in outcome.notes)
    return OutcomeRow(outcome.label, str(outcome.state), what)


def _failed_rows(failed: Mapping[str, ProvisionError]) -> tuple[OutcomeRow, ...]:
    return tuple(OutcomeRow(name, "not applied", error.what) for name, error in failed.items())


def _refuse_start(fleet: Fleet, failed: Mapping[str, ProvisionError], *, as_json: bool) -> int:
    """Write the errors that were found before anything was started; return the exit code."""
    print_failures(failed)
    console.print_note(
        f"\nnothing was started: {pluralize(len(failed), 'error')} in {fleet.path}; fix them, or "
        "leave these specs and targets out with --keep-going"
    )
    if as_json:
        console.print_document(targets=[], **console.failures_to_json(failed))
    return worst_exit_code(error.exit_code for error in failed.values())


def _confirm(plan: FleetPlan, *, yes: bool, show_plan: bool) -> None:
    """Show what the run does, and request one confirmation for all targets."""
    for loaded, locked in plan.locks:
        if locked.fresh:
            console.print_lock_findings(locked, loaded)
            if locked.unconfirmed_note:
                console.print_note(f"{loaded.path}: {locked.unconfirmed_note}")
    lines = [locked.change for _, locked in plan.locks if locked.fresh]
    if not lines and not any(each.plan.changes for each in plan.planned):
        return
    rows = [PlanRow(each.target.label, each.plan, each.target.offer) for each in plan.planned]
    if show_plan or not yes:
        color = console.supports_color(sys.stderr)
        console.print_stderr(render_plan_summary(rows, lines, color))
    console.confirm(
        f"Apply these changes to {pluralize(len(rows), 'target')}?", yes=yes, doing="apply"
    )


def _print_rest(result: FleetResult, rows: tuple[OutcomeRow, ...], *, sandbox: bool) -> None:
    """Write what the next run has left to do, and what an interrupted one left running."""
    for note in dict.fromkeys(note for each in result.run.outcomes for note in each.notes):
        console.print_note(note)
    left = sum(row.outcome not in ("verified", "simulated") for row in rows)
    if left:
        command = format_command("apply --all", result.fleet.path, sandbox=sandbox)
        console.print_note(
            f"{left} of {pluralize(len(rows), 'target')} left: `{command}` continues with "
            f"{'it' if left == 1 else 'them'}"
        )


def _print_as_json(result: FleetResult, rows: tuple[OutcomeRow, ...], *, sandbox: bool) -> None:
    print_failures(result.errors)
    details = {row.label: row for row in rows}
    console.print_document(
        sandbox=sandbox,
        targets=[_document(each, details[each.label]) for each in result.run.outcomes],
        summary=count_outcomes(rows),
        **console.failures_to_json(result.errors),
    )


def _document(outcome: JobOutcome, row: OutcomeRow) -> dict[str, Any]:
    document: dict[str, Any] = {"target": row.label, "outcome": row.outcome, "detail": row.detail}
    applied = outcome.value
    if isinstance(applied, AppliedTarget):
        document |= {"changed": applied.changed, "report": applied.report or None}
    if outcome.notes:
        document["left"] = list(outcome.notes)
    return document
