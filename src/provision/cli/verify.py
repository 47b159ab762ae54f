"""`provision verify`: verifies an existing environment again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    ALL_TARGETS,
    FAULTS,
    LOCK_TIMEOUT,
    OUTPUT_FORMAT_WITH_JUNIT,
    PARALLEL,
    SANDBOX,
    SPEC,
    TARGETS,
    VERBOSE,
    YES,
    completed_by,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.lock import LockResult
    from provision.commands.shared.load import LoadedSpec
    from provision.commands.shared.report_store import VerificationResult
    from provision.commands.shared.target_plans import ErrorsByTarget
    from provision.effects.system import System
    from provision.plan import Plan


@click.command(
    epilog=examples(
        "provision verify",
        "provision verify --only P02 --only R05",
        "provision verify --output-format junit > junit.xml",
        "provision verify --before specs/workbench-l4.yaml   # on the same image, by a job",
    )
)
@SPEC
@TARGETS
@ALL_TARGETS
@PARALLEL
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    shell_complete=completed_by("checks"),
    help="Run only this check; repeatable.",
)
@click.option(
    "--before",
    is_flag=True,
    help="Before creating an instance, verify its image by running a job, which costs money while "
    "it runs and is deleted afterwards.",
)
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@YES
@VERBOSE
@OUTPUT_FORMAT_WITH_JUNIT
def verify(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    parallel: int,
    only: tuple[str, ...],
    before: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    yes: bool,
    verbose: bool,
    output_format: str,
) -> int:
    """Verify an existing environment again."""
    from provision.errors import UsageError

    if before and only:
        raise UsageError("--before and --only cannot be combined", hint="omit --only")
    if spec.is_dir():
        from provision.cli.fleet import FleetOptions, refuse_folder_options
        from provision.cli.fleet_change import verify_folder

        refuse_folder_options(spec, target=targets, before=before)
        return verify_folder(
            spec,
            FleetOptions(parallel, sandbox=sandbox, faults=faults),
            only=only,
            lock_wait_s=lock_timeout,
            all_targets=all_targets,
            output_format=output_format,
        )
    return _verify_spec(
        *(spec, targets),
        all_targets=all_targets,
        parallel=parallel,
        only=only,
        before=before,
        sandbox=sandbox,
        faults=faults,
        lock_timeout=lock_timeout,
        yes=yes,
        verbose=verbose,
        output_format=output_format,
    )


def _verify_spec(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    parallel: int,
    only: tuple[str, ...],
    before: bool,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    yes: bool,
    verbose: bool,
    output_format: str,
) -> int:
    from provision.cli.report_output import print_verifications
    from provision.cli.session import import_dropped_reports, open_session
    from provision.commands.shared.report_store import VerificationResult
    from provision.commands.shared.target_selection import select_targets

    failed: ErrorsByTarget = {}
    run, interruption = None, None
    if (all_targets or len(targets) > 1) and not before:
        from provision.cli.fleet import start_run

        run = start_run(parallel)
    with open_session(spec, sandbox=sandbox, faults=faults, run=run) as (loaded, system):
        names = select_targets(loaded, targets, everything=all_targets)
        if before:
            early = _verify_before(loaded, names, system, failed, lock_timeout, yes=yes)
            return print_verifications(early, failed, output_format, verbose=verbose)
        dropped = import_dropped_reports(loaded, system, lock_timeout=lock_timeout).imported
        imported = {stored.context.target: stored for stored in dropped}
        results = [
            VerificationResult(stored.report, stored.json_path, stored.html_path)
            for stored in (imported[name] for name in names if name in imported)
        ]
        remaining = tuple(name for name in names if name not in imported)
        if run is not None and len(remaining) > 1:
            from provision.cli.fleet_change import verify_targets

            verified, interruption = verify_targets(
                *(loaded, remaining, system, run),
                only=only,
                lock_wait_s=lock_timeout,
                failed=failed,
            )
            results += verified
        elif remaining:
            results += _verify_one(loaded, remaining, system, failed, lock_timeout, only=only)
    code = print_verifications(tuple(results), failed, output_format, verbose=verbose)
    if interruption is not None:
        raise interruption
    return code


def _verify_one(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    failed: ErrorsByTarget,
    lock_timeout: float,
    *,
    only: tuple[str, ...],
) -> tuple[VerificationResult, ...]:
    from provision.cli.progress import show_progress
    from provision.commands.verify import verify as verify_in_order

    with show_progress() as progress:
        return verify_in_order(
            *(loaded, names, system, progress),
            only=only,
            lock_wait_s=lock_timeout,
            failed=failed,
        )


def _verify_before(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    failed: ErrorsByTarget,
    lock_timeout: float,
    *,
    yes: bool,
) -> tuple[VerificationResult, ...]:
    """Show the jobs with their cost, request a confirmation, and run them."""
    import sys

    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands.verify_before import verify_before
    from provision.views.plan import render_text

    with show_progress() as progress:

        def confirm(plan: Plan, lock: LockResult) -> None:
            with progress.paused():
                console.print_lock_findings(lock, loaded)
                color, width = console.supports_color(sys.stderr), console.text_width(sys.stderr)
                console.print_stderr(render_text(plan, lock.change, color, width))
                console.confirm("Run this job?", yes=yes, doing="verify --before")

        return verify_before(
            *(loaded, names, system, confirm, progress), lock_wait_s=lock_timeout, failed=failed
        )
