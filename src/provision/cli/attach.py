"""`provision attach`: waits for the reports of instances that were created earlier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    FAULTS,
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    SANDBOX,
    SPEC,
    TARGETS,
    VERBOSE,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.shared.target_plans import ErrorsByTarget


@click.command(epilog=examples("provision attach", "provision attach specs/workbench-l4.yaml"))
@SPEC
@TARGETS
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@VERBOSE
@OUTPUT_FORMAT
def attach(
    spec: Path,
    targets: tuple[str, ...],
    *,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    verbose: bool,
    output_format: str,
) -> int:
    """Wait for the report from an instance that was created earlier."""
    from provision.cli.progress import show_progress
    from provision.cli.report_output import print_verifications
    from provision.cli.session import open_session
    from provision.commands import attach as command

    failed: ErrorsByTarget = {}
    with open_session(spec, sandbox=sandbox, faults=faults) as (loaded, system):
        names = command.select_instance_targets(loaded, targets, system)
        with show_progress() as progress:
            results = command.attach(
                loaded, names, system, progress, lock_wait_s=lock_timeout, failed=failed
            )
    return print_verifications(results, failed, output_format, verbose=verbose)
