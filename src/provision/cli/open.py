"""`provision open`: the addresses of instances for a browser and a shell."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import OUTPUT_FORMAT, SANDBOX, SPEC, TARGETS, examples

if TYPE_CHECKING:
    from provision.commands.shared.load import LoadedSpec
    from provision.targets.capabilities import InstanceAccess


@click.command(epilog=examples("provision open", "provision open specs/workbench-l4.yaml"))
@SPEC
@TARGETS
@SANDBOX
@OUTPUT_FORMAT
def open(spec: Path, targets: tuple[str, ...], *, sandbox: bool, output_format: str) -> int:  # noqa: A001
    """Show the address of an instance's JupyterLab and the command for a shell."""
    from provision.cli import console
    from provision.cli.session import open_session
    from provision.commands.open import describe_access

    with open_session(spec, sandbox=sandbox) as (loaded, system):
        instances = describe_access(loaded, targets, system)
    if sandbox:
        instances = tuple(
            dataclasses.replace(instance, url="", ssh="", tunnel="") for instance in instances
        )
    if output_format == "json":
        documents = [dataclasses.asdict(instance) for instance in instances]
        console.print_document(sandbox=sandbox, instances=documents)
    else:
        for instance in instances:
            _print_access(instance, loaded)
    return 0 if all(instance.state == "ACTIVE" for instance in instances) else 1


def _print_access(access: InstanceAccess, loaded: LoadedSpec) -> None:
    from provision.cli.console import print_row

    sandbox = loaded.sandbox_sources is not None
    note = ", SANDBOX: nothing to open" if sandbox else ""
    print_row("instance", f"{access.instance}, {access.state}{note}")
    if access.state != "ACTIVE":
        print_row("start it", loaded.command("apply", access.target))
    elif sandbox:
        print_row("disks", f"{loaded.sandbox_folder}/machines/")
        print_row("console", f"{loaded.sandbox_folder}/serial/")
    else:
        address = access.url or "no address: the instance is not registered with the proxy"
        print_row("JupyterLab", address)
        print_row("shell", access.ssh)
        print_row("tunnel", access.tunnel)
