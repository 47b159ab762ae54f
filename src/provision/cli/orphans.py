"""`provision orphans`: labelled instances that no local state tracks."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, SANDBOX, examples, spec_or_default


@click.command(epilog=examples("provision orphans", "provision orphans specs/*.yaml"))
@click.argument("specs", nargs=-1, type=FILE, metavar="[SPEC]...")
@SANDBOX
@OUTPUT_FORMAT
def orphans(specs: tuple[Path, ...], *, sandbox: bool, output_format: str) -> int:
    """List instances with provision's labels that no local state tracks. Exit 1 if any exist."""
    from provision.cli import console, session
    from provision.commands.orphans import list_orphans

    paths = specs or (spec_or_default(None),)
    with session.open_system(paths[0], sandbox=sandbox) as system:
        loaded = [session.load_session_spec(path, system, sandbox=sandbox) for path in paths]
        result = list_orphans(loaded, system)
    console.print_errors(result.failed, kind="project")
    label = delete = ""
    if sandbox:
        label = "SANDBOX: "
        delete = f"rm -r {shlex.quote(loaded[0].sandbox_folder)}   (removes the whole sandbox)"
    if output_format == "json":
        rows = [
            {**dataclasses.asdict(orphan), "delete": delete or orphan.delete}
            for orphan in result.orphans
        ]
        failures = console.failures_to_json(result.failed, kind="project")
        console.print_document(sandbox=sandbox, orphans=rows, **failures)
        return result.exit_code
    for orphan in result.orphans:
        created = orphan.created or "at an unknown time"
        console.print_text(
            f"{label}{orphan.name}\n  {orphan.state}, created {created}, for "
            f"{orphan.spec}/{orphan.target}\n  {delete or orphan.delete}"
        )
    if not result.orphans and result.failed:
        console.print_text(f"{label}no orphans in the projects that could be searched")
    elif not result.orphans:
        console.print_text(
            f"{label}no orphans: a local state tracks every instance with provision's labels"
        )
    return result.exit_code
