"""`provision parity`: shows what is proven equal across the targets of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import OUTPUT_FORMAT_WITH_MARKDOWN, SANDBOX, examples, spec_or_default

if TYPE_CHECKING:
    from provision.verification.parity_model import Parity


@click.command(
    epilog=examples(
        "provision parity",
        "provision parity specs/hf-trainer.yaml --output-format markdown",
        "provision parity laptop.json colab.json",
    )
)
@click.argument("files", nargs=-1, metavar="[SPEC | A.json B.json]")
@SANDBOX
@OUTPUT_FORMAT_WITH_MARKDOWN
def parity(files: tuple[str, ...], *, sandbox: bool, output_format: str) -> int:
    """Show what is proven equal across all targets, and how to prove what is not.

    Two captures, machine descriptions or reports need no spec. Exit 1 if a difference is
    proven, 3 if something is not proven yet.
    """
    from provision.cli import console
    from provision.views import parity as view

    if len(files) > 1 or (files and files[0].endswith(".json")):
        result = _compare_documents(files, sandbox=sandbox)
    else:
        result = _compare_targets(spec_or_default(Path(files[0]) if files else None), sandbox)
    if output_format == "json":
        console.print_json(view.to_json(result))
    elif output_format == "markdown":
        console.print_view(view.render_markdown(result))
    else:
        console.print_rendered(view.render_text, result)
    return result.exit_code


def _compare_targets(spec: Path, sandbox: bool) -> Parity:
    from provision.cli.session import import_dropped_reports, open_session, print_fit
    from provision.commands import parity as command
    from provision.state_store import LocalStore

    with open_session(spec, sandbox=sandbox) as (loaded, system):
        import_dropped_reports(loaded, system)
        ledger = LocalStore(loaded.folder, system).load_ledger()
        result = command.parity(loaded, ledger, system)
        print_fit(loaded, tuple(loaded.spec.targets), system)
        return result


def _compare_documents(files: tuple[str, ...], *, sandbox: bool) -> Parity:
    from provision.adapters import RealSystem
    from provision.commands import parity as command
    from provision.errors import UsageError

    if sandbox or len(files) != 2 or not all(file.endswith(".json") for file in files):
        raise UsageError(
            "expected one spec, or two .json files",
            why="--sandbox applies to the targets of a spec" if sandbox else "",
            hint="pass two captures, as in: provision parity laptop.json colab.json",
        )
    return command.parity_of_documents(*files, RealSystem())
