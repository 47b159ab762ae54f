"""`provision facts`: the tables of facts, their sources, and their age."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import FILE, OUTPUT_FORMAT, CommandGroup, completed_by, examples
from provision.cli.help import NumberWithin

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.commands.facts import UnknownFact
    from provision.facts.consequences import ExplainedRow


class FactsGroup(CommandGroup):
    """A group that points to `facts why` if a fact is named instead of a command."""

    def suggest(self, name: str) -> str:
        """Return the hint for an unknown command."""
        return super().suggest(name) or (
            f"To look up a fact, run: provision facts why {shlex.quote(name)}"
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the hint names the key of `facts gpu T4`, which is T4."""
        words = [word for word in args if not word.startswith("-")]
        if args[0] not in self.commands and len(words) > 1 and not super().suggest(args[0]):
            raise click.UsageError(f"No such command '{args[0]}'. {self.suggest(words[-1])}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=FactsGroup,
    epilog=examples(
        "provision facts list",
        "provision facts list places",
        "provision facts show gpus L4",
        "provision facts why torch:2.11.0:cu128",
        "provision facts diff old/compiled.json",
        "provision facts stale --days 90",
        "provision facts fetch",
    ),
)
def facts() -> None:
    """Show facts about GPUs, CUDA, torch, packages, images and prices."""


@facts.command("list")
@click.argument("table", required=False, shell_complete=completed_by("fact lists"))
@OUTPUT_FORMAT
def list_(table: str | None, *, output_format: str) -> int:
    """List the tables, the keys of TABLE, or the places of `provision check` (places)."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import facts as command
    from provision.views import facts as view

    if table == "places":
        return _print_places(output_format)
    if table is not None:
        rows = command.list_table(table, RealSystem())
        return _print_rows(rows, output_format, lambda rows, _color, _width: view.render_keys(rows))
    tables = command.list_tables(RealSystem())
    if output_format == "json":
        console.print_json(view.tables_to_json(tables))
    else:
        console.print_result(view.render_tables(tables, console.supports_color()))
    return 0


@facts.command()
@click.argument("table", shell_complete=completed_by("fact tables"))
@click.argument("key", shell_complete=completed_by("fact keys"))
@OUTPUT_FORMAT
def show(table: str, key: str, *, output_format: str) -> int:
    """Show the rows of TABLE that match KEY.

    The first parts of a key are sufficient.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as command
    from provision.views.facts import render_rows

    return _print_rows(command.show(table, key, RealSystem()), output_format, render_rows)


@facts.command()
@click.argument("key", shell_complete=completed_by("fact keys"))
@OUTPUT_FORMAT
def why(key: str, *, output_format: str) -> int:
    """Show every fact about KEY, and its consequences.

    Examples of KEY: torch:2.11.0:cu128, gpu:L4, cuda:12.8.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as command
    from provision.views.facts import render_rows

    return _print_rows(command.why(key, RealSystem()), output_format, render_rows)


@facts.command()
@click.argument("old", type=FILE)
@OUTPUT_FORMAT
def diff(old: Path, *, output_format: str) -> int:
    """Show the rows that differ from those in OLD, an older compiled.json.

    The tables in the `on_demand` folder next to OLD are compared too.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import facts as command
    from provision.views import facts as view

    changes = command.diff(old, RealSystem())
    if output_format == "json":
        console.print_document(old=str(old), rows=view.changes_to_json(changes))
    else:
        console.print_result(view.render_changes(changes))
    return 0


@facts.command()
@click.option(
    "--days",
    type=NumberWithin(int, 0),
    default=180,
    show_default=True,
    help="List the rows whose sources were last read more than this many days ago.",
)
@OUTPUT_FORMAT
def stale(days: int, *, output_format: str) -> int:
    """List the tables that have rows with old sources, and the oldest source of each."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import facts as command
    from provision.views import facts as view

    tables = command.find_stale(days, RealSystem())
    if output_format == "json":
        console.print_document(days=days, tables=view.stale_to_json(tables))
    else:
        console.print_result(view.render_stale(tables, days))
    return 0


@facts.command()
@OUTPUT_FORMAT
def fetch(*, output_format: str) -> int:
    """Fetch the facts that provision.toml pins, and check their hash and their tables.

    [facts] has the sha256 of a zip file or wheel with compiled.json, and either `file`, or `index`
    and `name`. No other command downloads facts.
    """
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands.facts_fetch import fetch as command

    with show_progress() as progress:
        pin, is_new = command(Path(), RealSystem(), progress)
    if output_format == "json":
        console.print_document(sha256=pin.sha256, source=pin.label, fetched=is_new)
    elif is_new:
        console.print_result(f"fetched the facts {pin.sha256[:12]} from {pin.label}")
    else:
        console.print_result(f"the facts {pin.sha256[:12]} are on this machine")
    return 0


def _print_places(output_format: str) -> int:
    from provision.cli import console
    from provision.commands.shared.places import list_places
    from provision.facts import load_facts
    from provision.views import checked_places as view

    places = list_places(load_facts())
    if output_format == "json":
        console.print_document(places=view.places_to_json(places))
    else:
        console.print_result(view.render_place_list(places, console.supports_color()))
    return 0


def _print_rows(
    rows: tuple[ExplainedRow, ...] | UnknownFact, output_format: str, render: Callable[..., str]
) -> int:
    """Print rows, or the nearest keys of an unknown one; return the exit code."""
    from provision.cli import console
    from provision.commands.facts import UnknownFact
    from provision.errors import CheckFailed
    from provision.views.facts import rows_to_json

    if not isinstance(rows, UnknownFact):
        if output_format == "json":
            console.print_json(rows_to_json(rows))
        else:
            console.print_rendered(render, rows)
        return 0
    near = f"; similar keys: {', '.join(rows.nearest)}" if rows.nearest else ""
    error = CheckFailed(
        f"there are no facts about {rows.query}{near}",
        hint="list the tables with `provision facts list`",
    )
    console.print_error(error)
    if output_format == "json":
        errors = console.list_errors(error)
        console.print_document(asked=rows.query, rows=[], nearest=rows.nearest, errors=errors)
    return error.exit_code
