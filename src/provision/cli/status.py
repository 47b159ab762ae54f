"""`provision status`: shows what exists, whether it is current, and its last verdict."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import ALL_TARGETS, OUTPUT_FORMAT, PARALLEL, SANDBOX, SPEC, examples

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec
    from provision.commands.status import SpecStatus, TargetStatus


@click.command(epilog=examples("provision status", "provision status --output-format json"))
@SPEC
@ALL_TARGETS
@PARALLEL
@SANDBOX
@OUTPUT_FORMAT
def status(
    spec: Path,
    *,
    all_targets: bool,  # noqa: ARG001 (status shows all targets anyway)
    parallel: int,
    sandbox: bool,
    output_format: str,
) -> int:
    """Show what exists, whether it is up to date, and its last verdict."""
    from provision.cli import console
    from provision.cli.session import import_dropped_reports, open_session, print_fit
    from provision.commands import status as command
    from provision.state_store import LocalStore

    if spec.is_dir():
        from provision.cli.fleet import FleetOptions
        from provision.cli.fleet_inspect import status_of_folder

        options = FleetOptions(parallel, sandbox=sandbox, apart=True)
        return status_of_folder(spec, options, as_json=output_format == "json")
    with open_session(spec, sandbox=sandbox, apart=True) as (loaded, system):
        import_dropped_reports(loaded, system)
        ledger = LocalStore(loaded.folder, system).load_ledger()
        result = command.status(loaded, ledger, system)
        if output_format == "json":
            _print_as_json(result)
        else:
            _print_as_text(result, loaded)
        print_fit(loaded, tuple(loaded.spec.targets), system)
    console.print_errors(result.failed)
    return result.exit_code


def _print_as_json(result: SpecStatus) -> None:
    from provision.cli import console

    console.print_document(
        lock_moved=result.lock_differences,
        targets=[dataclasses.asdict(target) for target in result.targets],
        state_foreign=result.foreign_reason,
        **console.failures_to_json(result.failed),
    )


def _print_as_text(result: SpecStatus, loaded: LoadedSpec) -> None:
    from provision.cli.console import print_prose_row, print_row

    if result.lock_differences is None:
        print_row("lock", f"missing; create it with {loaded.command('lock')}")
    elif result.lock_differences:
        print_prose_row("lock", "stale: " + "; ".join(result.lock_differences))
    else:
        print_row("lock", "up to date")
    if result.foreign_reason:
        adopt = f"bind it to this folder with {loaded.command('adopt')}"
        print_prose_row("state", f"foreign: {result.foreign_reason}; {adopt}")
    for target in result.targets:
        print_row(target.target, f"{target.kind}, {target.condition}{_location(target)}")
        print_prose_row("", _verdict(target, loaded))


def _location(target: TargetStatus) -> str:
    """Return where a target exists, after a comma; "" if it does not."""
    if not target.path or target.condition == "absent":
        return ""
    is_local = target.path.startswith("/")
    return f", {os.path.relpath(target.path) if is_local else target.path}"


def _verdict(target: TargetStatus, loaded: LoadedSpec) -> str:
    """Return the last verdict of a target, and why it no longer counts."""
    verdict = "not verified"
    if target.verdict:
        earlier = " (earlier probe)" if target.earlier_probe else ""
        verdict = f"{target.verdict}{earlier} at {target.verified_at}"
        return f"{verdict}, but {target.outdated}" if target.outdated else verdict
    if target.outdated:
        return f"{verdict}: {target.outdated}"
    if target.condition == "rendered" and target.report_arrival:
        verdict += f": run the notebook; {target.report_arrival}"
    elif target.condition == "rendered":
        spec = shlex.quote(str(loaded.path))
        verdict += f": run the notebook, then provision report add FILE --spec {spec}"
    return verdict
