"""`provision adopt`: binds a state from another machine or folder to this folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    SANDBOX,
    SPEC,
    YES,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.adopt import Adoption


@click.command(epilog=examples("provision adopt", "provision adopt specs/quickstart.yaml --yes"))
@SPEC
@SANDBOX
@LOCK_TIMEOUT
@YES
@OUTPUT_FORMAT
def adopt(spec: Path, *, sandbox: bool, lock_timeout: float, yes: bool, output_format: str) -> int:
    """Bind a state from another machine or folder to this folder.

    Lists the resources in the state first. Removes nothing; from then on, apply and destroy treat
    the resources as created here.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import adopt as command

    def confirm(adoption: Adoption) -> None:
        if output_format == "text" or not yes:
            console.print_stderr(_format_adoption(adoption))
        console.confirm("Adopt this state?", yes=yes, doing="adopt")

    adopted = command.adopt(
        spec,
        RealSystem(),
        confirm,
        console.print_note,
        lock_wait_s=lock_timeout,
        sandbox=sandbox,
    )
    if output_format == "json":
        console.print_document(
            state=str(adopted.path),
            adopted=bool(adopted.foreign_reason),
            because=adopted.foreign_reason,
            resources=[dataclasses.asdict(resource) for resource in adopted.resources],
        )
    else:
        when = "now" if adopted.foreign_reason else "already"
        console.print_result(f"{adopted.path} {when} belongs to this machine and folder")
    return 0


def _format_adoption(adoption: Adoption) -> str:
    from provision.sanitize import escape_line

    lines = [
        f"{adoption.path} records {len(adoption.resources)} resources; {adoption.foreign_reason}"
    ]
    for resource in adoption.resources:
        lines.append(f"  {resource.address} {resource.part}: {resource.title}")
        lines.append(f"    {resource.where}: {resource.becomes}")
    return "\n".join(escape_line(line) for line in lines) + "\n"
