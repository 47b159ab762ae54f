"""`provision outdated`: what of a lock was withdrawn, ends soon, is behind or vulnerable."""

from __future__ import annotations

import os
from pathlib import Path

import click

from provision.cli.app import OUTPUT_FORMAT, SPEC, examples


@click.command(
    epilog=examples(
        "provision outdated",
        "provision outdated specs/quickstart.yaml --output-format json",
        "provision outdated --osv-url http://127.0.0.1:8080",
    )
)
@SPEC
@click.option(
    "--osv-url",
    metavar="URL",
    help="Query this vulnerability service; default: $PROVISION_OSV_URL, or OSV if it is not set. "
    'Use "" to disable the query.',
)
@OUTPUT_FORMAT
def outdated(spec: Path, *, osv_url: str | None, output_format: str) -> int:
    """List locked versions that are withdrawn, outdated, vulnerable or near their end of support.

    Exit 1 if a locked version was yanked or removed from its index, 3 if something could not be
    checked. Sends the names and versions of the locked packages to the service.

    Outdated versions are those with a newer patch release: one that has the same first two numbers
    and that the spec admits. `provision lock --upgrade` also chooses newer minor and major
    releases.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands import outdated as command

    # Not click's `envvar`, for which an empty variable is not set: it would query OSV.
    default = os.environ.get("PROVISION_OSV_URL", command.DEFAULT_OSV_URL)
    address = default if osv_url is None else osv_url
    if address and not address.startswith(("https://", "http://")):
        origin = "PROVISION_OSV_URL=" if osv_url is None else "--osv-url "
        raise click.UsageError(
            f"{origin}{address}: expected an address that starts with https:// or http://"
        )
    with show_progress() as progress:
        result = command.find_outdated(spec, address, RealSystem(), progress)
    if output_format == "json":
        console.print_document(
            lock=str(result.lock),
            outdated=[
                {"kind": item.kind.value, "name": item.name, "what": item.what, "help": item.help}
                for item in result.items
            ],
            unchecked=list(result.unchecked),
            not_found=[kind.value for kind in result.not_found],
        )
        return result.exit_code
    lines = []
    for item in result.items:
        lines.append(f"{item.kind}: {item.name}: {item.what}")
        if item.help:
            lines.append(f"  help: {item.help}")
    lines += [f"not checked: {reason}" for reason in result.unchecked]
    if result.not_found:
        kinds = "; ".join(kind.value for kind in result.not_found)
        lines.append(f"not found in {result.lock}: {kinds}")
    console.print_text("\n".join(lines))
    return result.exit_code
