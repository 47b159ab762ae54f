"""report: the report of a verification, shown or brought home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from provision.cli.options import (
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    OUTPUT_FORMAT_WITH_JUNIT,
    SPEC,
    TARGET,
    VERBOSE,
    examples,
    spec_or_default,
)


class DefaultSubcommandGroup(click.Group):
    """A group whose words are those of `show` where the first is none of its verbs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `show` before words that name no verb and ask for no help."""
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the pieces of the usage line."""
        return [
            (
                "[show] [OPTIONS] [SPEC] | run [OPTIONS] [SPEC] | add [OPTIONS] FILE | repro "
                "[OPTIONS] REPORT CHECK"
            )
        ]


@click.group(
    cls=DefaultSubcommandGroup,
    epilog=examples(
        "provision report",
        "provision report -v",
        "provision report path/to/report.json --html report.html",
        "provision report --output-format junit > junit.xml",
        "provision report add ~/Downloads/report.json",
    ),
)
def report() -> None:
    """Show a verification's report, or file one from elsewhere.

    SPEC may be a report.json.
    """


@report.command()
@SPEC
@TARGET
@click.option(
    "--html", "page", type=click.Path(path_type=Path), help="Write the report as one HTML page."
)
@VERBOSE
@OUTPUT_FORMAT_WITH_JUNIT
def show(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Show the last verification's report, or a report.json."""
    from provision.cli import looking

    return looking.report(spec_or_default(spec), targets, **options)


@report.command(
    epilog=examples(
        "provision report run",
        "provision report run --html run.html",
        "provision report run path/to/record.json",
    )
)
@SPEC
@click.option("--target", "-t", metavar="NAME", help="Target of the spec.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    help="Write the record as one HTML page, with its chart.",
)
@OUTPUT_FORMAT
def run(spec: Path | None, target: str | None, **options: Any) -> int:
    """Show what the last `provision run` took.

    SPEC may be a record of a run.
    """
    from provision.cli import report_run

    return report_run.show_run_record(spec_or_default(spec), target, **options)


@report.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="SPEC",
    help="Spec that it is of; default: the one here whose notebook waits for it.",
)
@click.option("--target", "-t", metavar="NAME", help="Target of the spec.")
@LOCK_TIMEOUT
@VERBOSE
@OUTPUT_FORMAT
def add(file: Path, spec: Path | None, target: str | None, **options: Any) -> int:
    """File the report.json that a notebook offered, or a probe that was carried by hand wrote (-
    reads it from standard input).
    """
    from provision.cli import report_import

    return report_import.add(file, spec, target, **options)


@report.command(
    epilog=examples(
        "provision report repro report.json P02 > repro.py",
        "provision report repro specs/quickstart.yaml H07 --out repro.py",
    )
)
@click.argument("report", type=click.Path(path_type=Path))
@click.argument("check")
@TARGET
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    metavar="SPEC",
    help="Spec that the report.json answers, for what the report leaves out.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write this file instead of to standard output."
)
@OUTPUT_FORMAT
def repro(
    report: Path,
    check: str,
    targets: tuple[str, ...],
    spec: Path | None,
    out: Path | None,
    form: str,
) -> int:
    """Write a failed check as a program that needs no provision.

    REPORT is a report.json, or a spec. The program ends with 1 while the fault is there, with 0
    when it is mended, and with 2 where that cannot be told.
    """
    from provision.cli import report_repro

    return report_repro.repro(report, spec, targets, check, out, form)
