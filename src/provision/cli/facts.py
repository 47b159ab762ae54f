"""`provision facts`: tables of knowledge, their sources, and their age."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from provision.cli.options import OUTPUT_FORMAT, examples

if TYPE_CHECKING:
    from provision.commands.facts import UnknownFact
    from provision.facts.consequences import ExplainedRow


class FactsGroup(click.Group):
    """A group that explains itself to readers who name a fact in place of a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; for another word, name the command that shows what is known of it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            message = error.format_message()
            if args[0].startswith("-") or "Did you mean" in message:
                raise
            raise click.UsageError(
                f"{message} All that is known of a thing is shown by: provision facts why "
                f"{shlex.quote(args[0])}",
                ctx,
            ) from None


@click.group(
    cls=FactsGroup,
    epilog=examples(
        "provision facts list",
        "provision facts show gpus L4",
        "provision facts why torch:2.11.0:cu128",
    ),
)
def facts() -> None:
    """Show what is known of GPUs, CUDA, torch, packages, images and prices."""


@facts.command("list")
@click.argument("table", required=False)
@OUTPUT_FORMAT
def list_(table: str | None, *, output_format: str) -> int:
    """List the tables, or the keys of one TABLE."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.facts import UnknownFact, list_table, list_tables
    from provision.views import facts as view

    if table is None:
        tables = list_tables(RealSystem())
        if output_format == "json":
            console.print_json(view.tables_to_json(tables))
        else:
            console.print_result(view.render_tables(tables, console.supports_color()))
        return 0
    rows = list_table(table, RealSystem())
    if isinstance(rows, UnknownFact):
        return _print_unknown_fact(rows, output_format)
    if output_format == "json":
        console.print_json(view.rows_to_json(rows))
    else:
        console.print_result(view.render_keys(rows))
    return 0


@facts.command()
@click.argument("table")
@click.argument("key")
@OUTPUT_FORMAT
def show(table: str, key: str, *, output_format: str) -> int:
    """Show the rows of TABLE that KEY means.

    The first parts of a key are enough.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as command

    return _print_rows(command.show(table, key, RealSystem()), output_format)


@facts.command()
@click.argument("key")
@OUTPUT_FORMAT
def why(key: str, *, output_format: str) -> int:
    """Show all that is known of KEY, and what follows.

    As in torch:2.11.0:cu128, gpu:L4 or cuda:12.8.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as command

    return _print_rows(command.why(key, RealSystem()), output_format)


def _print_rows(rows: tuple[ExplainedRow, ...] | UnknownFact, output_format: str) -> int:
    from provision.cli import console
    from provision.commands.facts import UnknownFact
    from provision.views import facts as view

    if isinstance(rows, UnknownFact):
        return _print_unknown_fact(rows, output_format)
    if output_format == "json":
        console.print_json(view.rows_to_json(rows))
    else:
        console.print_result(view.render_rows(rows, console.supports_color(), console.width()))
    return 0


def _print_unknown_fact(unknown: UnknownFact, output_format: str) -> int:
    from provision.cli import console

    if output_format == "json":
        nearest = list(unknown.nearest)
        console.print_json({"version": 1, "asked": unknown.query, "rows": [], "nearest": nearest})
    near = f"; the nearest: {', '.join(unknown.nearest)}" if unknown.nearest else ""
    console.print_note(f"the facts know nothing of {unknown.query}{near}")
    console.print_note("see what they know with `provision facts list`")
    return 1
