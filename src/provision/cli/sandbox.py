"""sandbox: a look-alike of Google's services on this machine, for other clients too."""

from __future__ import annotations

import json
from pathlib import Path

import click

from provision.cli.options import OUTPUT_FORMAT

_EXAMPLES = (
    "\b\nExamples:\n  provision sandbox up\n  provision sandbox up --fault "
    "stockout:us-central1-a --fault busy:2\n  provision sandbox faults"
)


@click.group(epilog=_EXAMPLES)
def sandbox() -> None:
    """Try it without an account: Google's services as a look-alike on this machine."""


@sandbox.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(".provision/sandbox"),
    show_default=True,
    help="Where its store is kept.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:ARGUMENT]",
    help="Something to go wrong; may be given several times.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the REST services; 0 for a free one.",
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the gRPC service; 0 for a free one.",
)
@click.option(
    "--delay",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="How long an operation takes, and an instance until it is ACTIVE.",
)
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How the endpoints are written; json: one line.",
)
def up(
    folder: Path, faults: tuple[str, ...], port: int, grpc_port: int, delay: float, form: str
) -> int:
    """Run it until Ctrl-C, and print where it listens."""
    from threading import Event

    from provision.cli import console
    from provision.cli.session import create_device_booter, silence_grpc
    from provision.errors import ExternalError

    silence_grpc()
    from provision.sandbox.client_environment import client_variables
    from provision.sandbox.lifecycle import Delays
    from provision.sandbox.serve import serve

    with serve(
        folder,
        faults,
        booter=create_device_booter(folder),
        delays=Delays(operation=delay, active=delay),
        ports=(port, grpc_port),
    ) as running:
        if running.store is None:
            why = f"{running.holder}\n{json.dumps(running.endpoints)}"
            raise ExternalError(
                f"{folder}: a sandbox runs there already",
                why=why,
                hint="use that one, or name another --folder",
            )
        variables = client_variables(running.endpoints)
        if form == "json":
            console.print_result(
                json.dumps({"version": 1, "endpoints": running.endpoints, "environment": variables})
            )
        else:
            console.print_result(json.dumps({"endpoints": running.endpoints}, indent=1))
            console.print_result(
                "\n".join(f"export {name}={value}" for name, value in variables.items())
            )
        console.print_note(
            f"SANDBOX: nothing here is real; its store lies in {folder}. Ctrl-C ends it."
        )
        try:
            Event().wait()
        except KeyboardInterrupt:
            console.print_note("the sandbox has ended; its store stays")
    return 0


@sandbox.command("faults")
@OUTPUT_FORMAT
def list_faults(form: str) -> int:
    """List what can be made to go wrong."""
    from provision.cli import console
    from provision.sandbox.faults import FAULT_KINDS

    if form == "json":
        rows = [
            {"name": name, "argument": kind.argument, "meaning": kind.meaning}
            for name, kind in FAULT_KINDS.items()
        ]
        console.print_result(json.dumps({"version": 1, "faults": rows}, indent=1))
        return 0
    words = {
        name: f"{name}:{kind.argument}"
        if kind.argument not in ("", "N")
        else f"{name}[:N]"
        if kind.argument
        else name
        for name, kind in FAULT_KINDS.items()
    }
    width = max(map(len, words.values()))
    console.print_result(
        "\n".join(f"{words[name]:<{width}}  {kind.meaning}" for name, kind in FAULT_KINDS.items())
    )
    return 0
