"""`provision verify` and `provision destroy` for several targets: of a folder, or of one spec."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from provision.cli import console
from provision.cli.fleet import (
    FleetOptions,
    open_fleet,
    print_failures,
    require_all,
    start_run,
)
from provision.cli.fleet_progress import watch_fleet
from provision.cli.report_output import report_summary
from provision.cli.session import open_system
from provision.commands.fleets.destroy import (
    TargetRemoval,
    destroy_fleet,
    find_folder_removals,
    find_prices,
)
from provision.commands.fleets.members import Fleet, list_targets
from provision.commands.fleets.parallel_run import JobOutcome, JobState, ParallelResult, ParallelRun
from provision.commands.fleets.verify import verify_fleet
from provision.commands.shared.report_store import VerificationResult
from provision.commands.shared.target_plans import ErrorsByTarget, worst_exit_code
from provision.errors import ProvisionError, UsageError
from provision.spelling import pluralize
from provision.views.fleet import (
    OutcomeRow,
    count_outcomes,
    render_outcomes,
    render_removal_prices,
)
from provision.views.plan import render_actions

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec
    from provision.effects.system import System


def verify_folder(
    folder: Path,
    options: FleetOptions,
    *,
    only: tuple[str, ...],
    lock_wait_s: float,
    all_targets: bool,
    output_format: str,
) -> int:
    """Verify every target in a folder that exists; return the exit code."""
    with open_fleet(folder, options) as (fleet, system, run), watch_fleet() as watcher:
        require_all(fleet, "verify", all_targets=all_targets, sandbox=options.sandbox)
        result = verify_fleet(fleet, system, run, watcher, only=only, lock_wait_s=lock_wait_s)
    failed = {**fleet.failed, **_errors_of(result)}
    rows = [_verified_row(outcome) for outcome in result.outcomes]
    if output_format == "junit":
        from provision.views.report.junit import render_junit

        print_failures(failed)
        values = [each.value for each in result.outcomes if each.value is not None]
        errors = {each.label: str(each.state) for each in result.outcomes if each.value is None}
        errors |= {label: error.what for label, error in failed.items()}
        console.print_result(render_junit((value.report.displayed for value in values), errors))
    elif output_format == "json":
        print_failures(failed)
        console.print_document(
            targets=[
                {"target": row.label, "outcome": row.outcome, **_verified_document(outcome)}
                for row, outcome in zip(rows, result.outcomes, strict=True)
            ],
            summary=count_outcomes(rows),
            **console.failures_to_json(failed),
        )
    else:
        print_failures(failed)
        console.print_view(render_outcomes(rows, console.supports_color()))
    _raise_interruption(result)
    codes = [error.exit_code for error in failed.values()]
    codes += [each.value.exit_code for each in result.outcomes if each.value is not None]
    return worst_exit_code(codes)


def verify_targets(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    run: ParallelRun,
    *,
    only: tuple[str, ...],
    lock_wait_s: float,
    failed: ErrorsByTarget,
) -> tuple[list[VerificationResult], BaseException | None]:
    """Verify several targets of one spec; return the results, and the interrupt if one came."""
    fleet = Fleet(loaded.path, list_targets(loaded, names), {})
    with watch_fleet() as watcher:
        result = verify_fleet(fleet, system, run, watcher, only=only, lock_wait_s=lock_wait_s)
    failed |= _errors_of(result)
    values = [outcome.value for outcome in result.outcomes]
    return [value for value in values if value is not None], result.interruption


def destroy_folder(
    folder: Path,
    options: FleetOptions,
    *,
    all_targets: bool,
    lock_wait_s: float,
    force: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Remove everything that states in a folder record; return the exit code."""
    run = start_run(options.parallel)
    place = folder / "provision.yaml"
    with open_system(
        place, sandbox=options.sandbox, faults=options.faults, run=run, shown=folder
    ) as system:
        removals = find_folder_removals(folder, system, sandbox=options.sandbox)
        if removals and not all_targets:
            listing = "\n".join(f"{each.label}: {each.actions[0].title}" for each in removals)
            raise UsageError(
                f"{folder} contains resources from {pluralize(len(removals), 'target')}",
                why=listing,
                hint="remove them with --all, or name one spec",
            )
        return destroy_targets(
            removals, system, run, lock_wait_s=lock_wait_s, force=force, yes=yes, as_json=as_json
        )


def destroy_targets(
    removals: Sequence[TargetRemoval],
    system: System,
    run: ParallelRun,
    *,
    lock_wait_s: float,
    force: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Show the removals, request one confirmation, and perform them; return the exit code."""
    actions = [action for removal in removals for action in removal.actions]
    if actions:
        if not as_json or not yes:
            color, width = console.supports_color(sys.stderr), console.text_width(sys.stderr)
            console.print_stderr(render_actions(actions, color, width))
            if prices := render_removal_prices(find_prices(removals, system)):
                console.print_stderr(prices)
        question = f"Remove the resources of {pluralize(len(removals), 'target')}?"
        console.confirm(question, yes=yes, doing="destroy")
    with watch_fleet() as watcher:
        result = destroy_fleet(removals, system, run, watcher, lock_wait_s=lock_wait_s, force=force)
    failed = _errors_of(result)
    removed = [action.title for each in result.outcomes for action in each.value or ()]
    print_failures(failed)
    if as_json:
        console.print_document(removed=removed, **console.failures_to_json(failed))
    elif not removals:
        console.print_result("nothing to remove: there are no resources here")
    else:
        rows = [_removed_row(outcome) for outcome in result.outcomes]
        console.print_view(render_outcomes(rows, console.supports_color()))
        console.print_result(f"removed: {len(removed)}")
    _raise_interruption(result)
    return max((error.exit_code for error in failed.values()), default=0)


def _raise_interruption(result: ParallelResult) -> None:
    if result.interruption is not None:
        for note in dict.fromkeys(note for each in result.outcomes for note in each.notes):
            result.interruption.add_note(note)
        raise result.interruption


def _errors_of(result: ParallelResult) -> dict[str, ProvisionError]:
    return {
        outcome.label: outcome.error
        for outcome in result.outcomes
        if outcome.error is not None and outcome.state is JobState.FAILED
    }


def _verified_row(outcome: JobOutcome) -> OutcomeRow:
    if isinstance(outcome.value, VerificationResult):
        report = outcome.value.report
        return OutcomeRow(outcome.label, report.verdict, report.sentence)
    what = outcome.error.what if outcome.error is not None else ""
    return OutcomeRow(outcome.label, str(outcome.state), what)


def _verified_document(outcome: JobOutcome) -> dict[str, object]:
    result = outcome.value
    if not isinstance(result, VerificationResult):
        return {}
    return report_summary(result.report, result.json_path)


def _removed_row(outcome: JobOutcome) -> OutcomeRow:
    if outcome.state is JobState.DONE:
        titles = ", ".join(action.title for action in outcome.value)
        return OutcomeRow(outcome.label, "removed", titles)
    what = outcome.error.what if outcome.error is not None else ""
    return OutcomeRow(outcome.label, str(outcome.state), what)
