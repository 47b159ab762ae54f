"""`provision sandbox`: the emulator of Google's services on this machine, for other clients too."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, CommandGroup, examples, output_format_option
from provision.cli.help import NumberWithin

if TYPE_CHECKING:
    from provision.sandbox.serve import Sandbox


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "provision sandbox up",
        "provision sandbox up --fault stockout:us-central1-a --fault busy:2",
        "provision sandbox faults",
    ),
)
def sandbox() -> None:
    """Emulate Google's services on this machine, without an account."""


@sandbox.command()
@click.option(
    "--folder",
    type=FILE,
    default=Path(".provision/sandbox"),
    show_default=True,
    help="Keep the emulator's data in this folder.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:ARGUMENT]",
    help="Simulate one of the faults listed by `provision sandbox faults`; repeatable.",
)
@click.option(
    "--port",
    type=NumberWithin(int, 0, 65535),
    default=0,
    metavar="PORT",
    help="Serve REST on this port; default: 0, which selects a free port.",
)
@click.option(
    "--grpc-port",
    type=NumberWithin(int, 0, 65535),
    default=0,
    metavar="PORT",
    help="Serve gRPC on this port; default: 0, which selects a free port.",
)
@click.option(
    "--delay",
    type=NumberWithin(float, 0),
    default=0.0,
    metavar="SECONDS",
    help="Delay each operation and each instance start by SECONDS; default: 0.",
)
@output_format_option(
    "text", "json", text="Set the output format for the endpoints; json prints one line."
)
def up(
    *,
    folder: Path,
    faults: tuple[str, ...],
    port: int,
    grpc_port: int,
    delay: float,
    output_format: str,
) -> int:
    """Run the emulator until Ctrl-C, and print its endpoints."""
    from provision.cli import console
    from provision.cli.session import silence_grpc

    silence_grpc()
    from provision.sandbox.lifecycle import Delays
    from provision.sandbox.namespace_booter import NamespaceBooter
    from provision.sandbox.serve import serve

    with serve(
        folder,
        faults,
        booter=NamespaceBooter(folder),
        delays=Delays(operation=delay, active=delay),
        ports=(port, grpc_port),
    ) as running:
        _print_endpoints(running, folder, output_format)
        console.print_note(
            f"SANDBOX: nothing here is real; its data is in {folder}. Press Ctrl-C to stop."
        )
        try:
            Event().wait()
        except KeyboardInterrupt:
            console.print_note("the sandbox has stopped; its data is kept")
    return 0


def _print_endpoints(running: Sandbox, folder: Path, output_format: str) -> None:
    from provision.cli import console
    from provision.errors import ExternalError
    from provision.sandbox.client_environment import client_variables

    if running.store is None:
        raise ExternalError(
            f"a sandbox is already running in {folder}",
            why=f"{running.holder}\n{json.dumps(running.endpoints)}",
            hint="use that sandbox, or choose another --folder",
        )
    variables = client_variables(running.endpoints)
    if output_format == "json":
        document = {"version": 1, "endpoints": running.endpoints, "environment": variables}
        console.print_json(document, indent=None)
        return
    console.print_json({"endpoints": running.endpoints})
    for name, value in variables.items():
        console.print_result(f"export {name}={value}")


@sandbox.command()
@OUTPUT_FORMAT
def faults(*, output_format: str) -> int:
    """List the failures that --fault can simulate."""
    from provision.cli import console
    from provision.sandbox.faults import FAULT_KINDS

    if output_format == "json":
        rows = [
            {"name": name, "argument": kind.argument, "meaning": kind.meaning}
            for name, kind in FAULT_KINDS.items()
        ]
        console.print_document(faults=rows)
        return 0
    suffixes = {"": "", "N": "[:N]"}
    forms = {
        name + suffixes.get(kind.argument, f":{kind.argument}"): kind.meaning
        for name, kind in FAULT_KINDS.items()
    }
    width = max(map(len, forms))
    for form, meaning in forms.items():
        console.print_result(f"{form:<{width}}  {meaning}")
    return 0
