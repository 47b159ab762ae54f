"""facts: what provision knows of the world, where from, and how old that is."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import click

from provision.cli.options import OUTPUT_FORMAT

if TYPE_CHECKING:
    from provision.commands.facts import UnknownFact
    from provision.facts.consequences import ExplainedRow
_EXAMPLES = (
    "\b\nExamples:\n  provision facts list\n  provision facts show gpus L4\n  provision facts "
    "why torch:2.11.0:cu128"
)


class FactsGroup(click.Group):
    """A group whose readers often name a thing where a command stands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; of a word that is none, say which one shows what is known of it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0].startswith("-") or "Did you mean" in error.format_message():
                raise
            ask = (
                "All that is known of a thing is shown by: provision facts why "
                f"{shlex.quote(args[0])}"
            )
            raise click.UsageError(f"{error.format_message()} {ask}", ctx) from None


@click.group(cls=FactsGroup, epilog=_EXAMPLES)
def facts() -> None:
    """Show what is known of GPUs, CUDA, torch, packages, images and prices."""


@facts.command("list")
@click.argument("table", required=False)
@OUTPUT_FORMAT
def list_(table: str | None, form: str) -> int:
    """List the tables, or the keys of one TABLE."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.facts import UnknownFact, list_table, list_tables
    from provision.views import facts as view

    if table is None:
        found = list_tables(RealSystem())
        console.print_result(
            json.dumps(view.tables_to_json(found), indent=1)
            if form == "json"
            else view.render_tables(found, console.supports_color())
        )
        return 0
    rows = list_table(table, RealSystem())
    if isinstance(rows, UnknownFact):
        return _show_unknown(rows, form)
    console.print_result(
        json.dumps(view.rows_to_json(rows), indent=1) if form == "json" else view.render_keys(rows)
    )
    return 0


@facts.command()
@click.argument("table")
@click.argument("key")
@OUTPUT_FORMAT
def show(table: str, key: str, form: str) -> int:
    """Show the rows of TABLE that KEY means.

    The first parts of a key are enough.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as known

    return _show_rows(known.show(table, key, RealSystem()), form)


@facts.command()
@click.argument("key")
@OUTPUT_FORMAT
def why(key: str, form: str) -> int:
    """Show all that is known of KEY, and what follows.

    As in torch:2.11.0:cu128, gpu:L4 or cuda:12.8.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as known

    return _show_rows(known.why(key, RealSystem()), form)


def _show_rows(found: tuple[ExplainedRow, ...] | UnknownFact, form: str) -> int:
    from provision.cli import console
    from provision.commands.facts import UnknownFact
    from provision.views import facts as view

    if isinstance(found, UnknownFact):
        return _show_unknown(found, form)
    console.print_result(
        json.dumps(view.rows_to_json(found), indent=1)
        if form == "json"
        else view.render_rows(found, console.supports_color(), console.width())
    )
    return 0


def _show_unknown(nothing: UnknownFact, form: str) -> int:
    from provision.cli import console

    if form == "json":
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    "asked": nothing.query,
                    "rows": [],
                    "nearest": list(nothing.nearest),
                },
                indent=1,
            )
        )
    near = f"; the nearest: {', '.join(nothing.nearest)}" if nothing.nearest else ""
    console.print_note(f"the facts know nothing of {nothing.query}{near}")
    console.print_note("see what they know with `provision facts list`")
    return 1
