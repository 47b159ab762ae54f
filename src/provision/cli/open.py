"""`provision open`: the addresses of instances for a browser and a shell."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.options import OUTPUT_FORMAT, SANDBOX, SPEC, TARGETS, examples, spec_or_default

if TYPE_CHECKING:
    from provision.targets.capabilities import InstanceAccess


@click.command("open", epilog=examples("provision open", "provision open specs/workbench-l4.yaml"))
@SPEC
@TARGETS
@SANDBOX
@OUTPUT_FORMAT
def open_(spec: Path | None, targets: tuple[str, ...], *, sandbox: bool, output_format: str) -> int:
    """Show the address of an instance's JupyterLab, and how to get a shell."""
    from provision.cli import console
    from provision.cli.instance_targets import select_instance_targets
    from provision.cli.session import open_session
    from provision.commands.open import describe_access

    path = spec_or_default(spec)
    with open_session(path, sandbox=sandbox) as (loaded, system):
        names = select_instance_targets(loaded, targets, system)
        instances = describe_access(loaded, names, system)
    if sandbox:
        instances = tuple(
            dataclasses.replace(instance, url="", ssh="", tunnel="") for instance in instances
        )
    if output_format == "json":
        documents = [dataclasses.asdict(instance) for instance in instances]
        console.print_json({"version": 1, "sandbox": sandbox, "instances": documents})
    else:
        for instance in instances:
            _print_access(instance, path, sandbox=sandbox)
    return 0 if all(instance.state == "ACTIVE" for instance in instances) else 1


def _print_access(access: InstanceAccess, path: Path, *, sandbox: bool) -> None:
    from provision.cli.console import print_row
    from provision.cli.sandbox_hints import sandbox_folder

    note = ", SANDBOX: there is nothing to open" if sandbox else ""
    print_row("instance", f"{access.instance}, {access.state}{note}")
    if access.state != "ACTIVE":
        arguments = f"{shlex.quote(str(path))} --target {access.target}"
        print_row("start it", f"provision apply {arguments}{' --sandbox' if sandbox else ''}")
    elif sandbox:
        folder = sandbox_folder(path)
        print_row("disks", f"{folder}/machines/")
        print_row("console", f"{folder}/serial/")
    else:
        address = access.url or "no address: the instance is not registered with the proxy"
        print_row("JupyterLab", address)
        print_row("shell", access.ssh)
        print_row("tunnel", access.tunnel)
