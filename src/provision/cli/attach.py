"""`provision attach`: waits for reports, and follows programs, that were started earlier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    FAULTS,
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    RANK,
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
@RANK
@VERBOSE
@OUTPUT_FORMAT
def attach(
    spec: Path,
    targets: tuple[str, ...],
    *,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
    rank: str,
    verbose: bool,
    output_format: str,
) -> int:
    """Wait for the report from an instance, or follow a program, started earlier.

    A program that runs as a job is shown from the beginning of its output; the exit code is its
    own.
    """
    from provision.cli.progress import show_progress
    from provision.cli.report_output import print_verifications
    from provision.cli.run import finish_run, show_program_progress
    from provision.cli.session import open_session
    from provision.commands import attach as command
    from provision.commands.run import attach_job, find_running_job

    failed: ErrorsByTarget = {}
    with open_session(spec, sandbox=sandbox, faults=faults) as (loaded, system):
        names = command.select_instance_targets(loaded, targets, system)
        if running := find_running_job(loaded, names, system):
            program = attach_job(loaded, running, system, show_program_progress, rank)
            return finish_run(loaded, running, program, system)
        with show_progress() as progress:
            results = command.attach(
                loaded, names, system, progress, lock_wait_s=lock_timeout, failed=failed
            )
    return print_verifications(results, failed, output_format, verbose=verbose)
