"""`provision facts`: tables of knowledge, their sources, and their age."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from provision.cli.app import OUTPUT_FORMAT, examples

if TYPE_CHECKING:
    from collections.abc import Callable

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
    from provision.commands import facts as command
    from provision.views import facts as view

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
@click.argument("table")
@click.argument("key")
@OUTPUT_FORMAT
def show(table: str, key: str, *, output_format: str) -> int:
    """Show the rows of TABLE that KEY means.

    The first parts of a key are enough.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as command
    from provision.views.facts import render_rows

    return _print_rows(command.show(table, key, RealSystem()), output_format, render_rows)


@facts.command()
@click.argument("key")
@OUTPUT_FORMAT
def why(key: str, *, output_format: str) -> int:
    """Show all that is known of KEY, and what follows.

    As in torch:2.11.0:cu128, gpu:L4 or cuda:12.8.
    """
    from provision.adapters import RealSystem
    from provision.commands import facts as command
    from provision.views.facts import render_rows

    return _print_rows(command.why(key, RealSystem()), output_format, render_rows)


def _print_rows(
    rows: tuple[ExplainedRow, ...] | UnknownFact, output_format: str, render: Callable[..., str]
) -> int:
    """Print rows, or the nearest keys of an unknown one; return the exit code."""
    from provision.cli import console
    from provision.commands.facts import UnknownFact
    from provision.views.facts import rows_to_json

    if not isinstance(rows, UnknownFact):
        if output_format == "json":
            console.print_json(rows_to_json(rows))
        else:
            console.print_rendered(render, rows)
        return 0
    if output_format == "json":
        console.print_document(asked=rows.query, rows=[], nearest=rows.nearest)
    near = f"; the nearest: {', '.join(rows.nearest)}" if rows.nearest else ""
    console.print_note(f"the facts know nothing of {rows.query}{near}")
    console.print_note("see what they know with `provision facts list`")
    return 1
