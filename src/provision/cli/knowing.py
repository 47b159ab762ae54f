"""facts: what provision knows of the world, where from, and how old that is."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import click

from provision.cli.options import FORM

if TYPE_CHECKING:
    from provision.commands.facts import Nothing
    from provision.facts.consequences import Known
_EXAMPLES = "\b\nExamples:\n  provision facts list\n  provision facts show gpus L4\n  provision facts why torch:2.11.0:cu128"


class Asked(click.Group):
    """A group whose readers often name a thing where a command stands."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; of a word that is none, say which one shows what is known of it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0].startswith("-") or "Did you mean" in error.format_message():
                raise
            ask = f"All that is known of a thing is shown by: provision facts why {shlex.quote(args[0])}"
            raise click.UsageError(f"{error.format_message()} {ask}", ctx) from None


@click.group(cls=Asked, epilog=_EXAMPLES)
def facts() -> None:
    """Show what is known of GPUs, CUDA, torch, packages, images and prices."""


@facts.command("list")
@click.argument("table", required=False)
@FORM
def list_(table: str | None, form: str) -> int:
    """List the tables, or the keys of one TABLE."""
    from provision.cli import terminal
    from provision.commands.facts import Nothing, list_table, list_tables
    from provision.views import facts as view
    from provision.world import Machine

    if table is None:
        found = list_tables(Machine())
        terminal.show(json.dumps(view.tables_document(found), indent=1) if form == "json" else view.tables(found, terminal.colored()))
        return 0
    rows = list_table(table, Machine())
    if isinstance(rows, Nothing):
        return _lacking(rows, form)
    terminal.show(json.dumps(view.rows_document(rows), indent=1) if form == "json" else view.keys(rows))
    return 0


@facts.command()
@click.argument("table")
@click.argument("key")
@FORM
def show(table: str, key: str, form: str) -> int:
    """Show the rows of TABLE that KEY means.

    The first parts of a key are enough.
    """
    from provision.commands import facts as known
    from provision.world import Machine

    return _shown(known.show(table, key, Machine()), form)


@facts.command()
@click.argument("key")
@FORM
def why(key: str, form: str) -> int:
    """Show all that is known of KEY, and what follows.

    As in torch:2.11.0:cu128, gpu:L4 or cuda:12.8.
    """
    from provision.commands import facts as known
    from provision.world import Machine

    return _shown(known.why(key, Machine()), form)


def _shown(found: tuple[Known, ...] | Nothing, form: str) -> int:
    from provision.cli import terminal
    from provision.commands.facts import Nothing
    from provision.views import facts as view

    if isinstance(found, Nothing):
        return _lacking(found, form)
    terminal.show(json.dumps(view.rows_document(found), indent=1) if form == "json" else view.rows(found, terminal.colored(), terminal.width()))
    return 0


def _lacking(nothing: Nothing, form: str) -> int:
    from provision.cli import terminal

    if form == "json":
        terminal.show(json.dumps({"version": 1, "asked": nothing.asked, "rows": [], "nearest": list(nothing.nearest)}, indent=1))
    near = f"; the nearest: {', '.join(nothing.nearest)}" if nothing.nearest else ""
    terminal.note(f"the facts know nothing of {nothing.asked}{near}")
    terminal.note("see what they know with `provision facts list`")
    return 1
