"""sandbox: a look-alike of Google's services on this machine, for other clients too."""

from __future__ import annotations

import json
from pathlib import Path

import click

from provision.cli.options import FORM

_EXAMPLES = "\b\nExamples:\n  provision sandbox up\n  provision sandbox up --fault stockout:us-central1-a --fault busy:2\n  provision sandbox faults"


@click.group(epilog=_EXAMPLES)
def sandbox() -> None:
    """Try it without an account: Google's services as a look-alike on this machine."""


@sandbox.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path(".provision/sandbox"), show_default=True, help="Where its store is kept.")
@click.option("--fault", "faults", multiple=True, metavar="NAME[:ARGUMENT]", help="Something to go wrong; may be given several times.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the REST services; 0 for a free one.")
@click.option("--grpc-port", type=click.IntRange(0, 65535), default=0, help="Port of the gRPC service; 0 for a free one.")
@click.option("--delay", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="How long an operation takes, and an instance until it is ACTIVE.")
@click.option("--output-format", "form", type=click.Choice(["text", "json"]), default="text", help="How the endpoints are written; json: one line.")
def up(folder: Path, faults: tuple[str, ...], port: int, grpc_port: int, delay: float, form: str) -> int:
    """Run it until Ctrl-C, and print where it listens."""
    from threading import Event

    from provision.cli import terminal
    from provision.cli.worlds import booter, quieten
    from provision.errors import WorldError

    quieten()
    from provision.sandbox import Delays, serve
    from provision.sandbox.clients import environment

    with serve(folder, faults, booter=booter(folder), delays=Delays(operation=delay, active=delay), ports=(port, grpc_port)) as running:
        if running.store is None:
            why = f"{running.holder}\n{json.dumps(running.endpoints)}"
            raise WorldError(f"{folder}: a sandbox runs there already", why=why, hint="use that one, or name another --folder")
        variables = environment(running.endpoints)
        if form == "json":
            terminal.show(json.dumps({"version": 1, "endpoints": running.endpoints, "environment": variables}))
        else:
            terminal.show(json.dumps({"endpoints": running.endpoints}, indent=1))
            terminal.show("\n".join(f"export {name}={value}" for name, value in variables.items()))
        terminal.note(f"SANDBOX: nothing here is real; its store lies in {folder}. Ctrl-C ends it.")
        try:
            Event().wait()
        except KeyboardInterrupt:
            terminal.note("the sandbox has ended; its store stays")
    return 0


@sandbox.command("faults")
@FORM
def faults_(form: str) -> int:
    """List what can be made to go wrong."""
    from provision.cli import terminal
    from provision.sandbox.faults import KNOWN

    if form == "json":
        rows = [{"name": name, "argument": kind.argument, "meaning": kind.meaning} for name, kind in KNOWN.items()]
        terminal.show(json.dumps({"version": 1, "faults": rows}, indent=1))
        return 0
    words = {name: f"{name}:{kind.argument}" if kind.argument not in ("", "N") else f"{name}[:N]" if kind.argument else name for name, kind in KNOWN.items()}
    width = max(map(len, words.values()))
    terminal.show("\n".join(f"{words[name]:<{width}}  {kind.meaning}" for name, kind in KNOWN.items()))
    return 0
