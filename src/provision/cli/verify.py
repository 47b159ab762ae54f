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
    SANDBOX,
    SPEC,
    TARGETS,
    VERBOSE,
    completed_by,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.shared.target_plans import ErrorsByTarget


@click.command(
    epilog=examples(
        "provision verify",
        "provision verify --only P02 --only R05",
        "provision verify --output-format junit > junit.xml",
    )
)
@SPEC
@TARGETS
@ALL_TARGETS
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    shell_complete=completed_by("checks"),
    help="Run only this check; repeatable.",
)
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@VERBOSE
@OUTPUT_FORMAT_WITH_JUNIT
def verify(
    spec: Path,
    targets: tuple[str, ...],
    *,
    all_targets: bool,
    only: tuple[str, ...],
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    verbose: bool,
    output_format: str,
) -> int:
    """Verify an existing environment again."""
    from provision.cli.progress import show_progress
    from provision.cli.report_output import print_verifications
    from provision.cli.session import import_dropped_reports, open_session
    from provision.commands import verify as command
    from provision.commands.shared.report_store import VerificationResult
    from provision.commands.shared.target_plans import select_targets

    failed: ErrorsByTarget = {}
    with open_session(spec, sandbox=sandbox, faults=faults) as (loaded, system):
        names = select_targets(loaded, targets, everything=all_targets)
        dropped = import_dropped_reports(loaded, system, lock_timeout=lock_timeout).imported
        imported = {stored.context.target: stored for stored in dropped}
        results = [
            VerificationResult(stored.report, stored.json_path, stored.html_path)
            for stored in (imported[name] for name in names if name in imported)
        ]
        remaining = tuple(name for name in names if name not in imported)
        if remaining:
            with show_progress() as progress:
                results += command.verify(
                    loaded,
                    remaining,
                    system,
                    progress,
                    only=only,
                    lock_wait_s=lock_timeout,
                    failed=failed,
                )
    return print_verifications(tuple(results), failed, output_format, verbose=verbose)
