"""report: the report of a verification, shown or brought home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_DEFAULT = "provision.yaml"
_EXAMPLES = (
    "\b\nExamples:\n  provision report\n  provision report -v\n  provision report path/to/report.json --html report.html\n"
    "  provision report add ~/Downloads/report.json"
)


class Shown(click.Group):
    """A group whose words are those of `show` where the first is none of its verbs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `show` before words that name no verb and ask for no help."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click asks it
        """Return the pieces of the usage line."""
        return ["[show] [OPTIONS] [SPEC] | add [OPTIONS] FILE"]


@click.group(cls=Shown, epilog=_EXAMPLES)
def report() -> None:
    """Show a verification's report, or file one from Colab.

    SPEC may be a report.json.
    """


_form = click.option("--output-format", "form", type=click.Choice(["text", "json"]), default="text", help="How the result is written.")
_verbose = click.option("--verbose", "-v", is_flag=True, help="Show every check.")


@report.command()
@click.argument("spec", type=click.Path(path_type=Path), required=False)
@click.option("--target", "-t", "targets", multiple=True, metavar="NAME", help="Target of the spec; may be given several times.")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write the report as one HTML page.")
@_verbose
@_form
def show(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Show the last verification's report, or a report.json."""
    from provision.cli import looking

    if spec is None and not Path(_DEFAULT).exists():
        raise click.UsageError(f"no spec is named, and there is no {_DEFAULT} here; name one, or write a first one with `provision init`")
    return looking.report(spec or Path(_DEFAULT), targets, **options)


@report.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--spec", type=click.Path(path_type=Path), metavar="SPEC", help="Spec that it is of; default: the one here whose notebook waits for it.")
@click.option("--target", "-t", metavar="NAME", help="Target of the spec.")
@click.option("--lock-timeout", "wait", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Wait for another provision at work here.")
@_verbose
@_form
def add(file: Path, spec: Path | None, target: str | None, **options: Any) -> int:
    """File the report.json that a notebook offered (- reads it from standard input)."""
    from provision.cli import homecoming

    return homecoming.add(file, spec, target, **options)
