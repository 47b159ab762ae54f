"""`provision report`: shows a verification report; its other commands are in report_*.py."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import (
    FILE,
    OUTPUT_FORMAT_WITH_JUNIT,
    SPEC,
    TARGETS,
    VERBOSE,
    CommandGroup,
    examples,
)
from provision.cli.report_add import add
from provision.cli.report_repro import repro
from provision.cli.report_run import run


class DefaultSubcommandGroup(CommandGroup):
    """A group whose default command is `show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `show` before arguments that begin with neither a command nor --help.

        A word that is neither an option nor a path is taken for a mistyped command.
        """
        first = args[0] if args else ""
        is_word = first.replace("-", "").isalpha() and not first.startswith("-")
        is_command = first in self.commands or (is_word and not Path(first).exists())
        if not is_command and first not in ("-h", "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the pieces of the usage line."""
        return ["[OPTIONS] [SPEC] | COMMAND [ARGS]..."]


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
    """Show a verification report, or import one from another machine.

    Without COMMAND, `provision report` shows the last report. SPEC can be a report.json.
    """


@report.command()
@SPEC
@TARGETS
@click.option("--html", type=FILE, help="Write the report to an HTML file.")
@VERBOSE
@OUTPUT_FORMAT_WITH_JUNIT
def show(
    spec: Path,
    targets: tuple[str, ...],
    *,
    html: Path | None,
    verbose: bool,
    output_format: str,
) -> int:
    """Show the report of the last verification, or a report.json."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.report_output import print_report
    from provision.cli.session import import_dropped_reports
    from provision.commands.shared.load import load_spec
    from provision.commands.shared.stored_reports import read_stored_reports, single_report
    from provision.verification.report import find_tampering

    system = RealSystem()
    if spec.suffix != ".json":
        import_dropped_reports(load_spec(spec, system), system)
    reports = read_stored_reports(spec, targets, system)
    for stored in reports:
        if tampering := find_tampering(stored.report):
            console.print_note(
                f"warning: {stored.path} proves nothing: {tampering}; run `provision verify` "
                "for a new report"
            )
    displayed = [stored.report.displayed for stored in reports]
    if html is not None:
        from provision.views.report.html import render_report

        single_report(reports, "an HTML page shows only one report")
        title = displayed[0].spec_name or "report"
        console.write_output_file(html, render_report(displayed[0], title), system)
    elif output_format == "junit":
        from provision.views.report.junit import render_junit

        console.print_result(render_junit(displayed))
    elif output_format == "json" and len(displayed) == 1:
        console.print_json(displayed[0].document, sort_keys=True)
    elif output_format == "json":
        console.print_json(
            {"version": 1, "reports": [report.document for report in displayed]}, sort_keys=True
        )
    else:
        for stored in reports:
            print_report(stored.report, stored.path, verbose=verbose)
    return 0


for _command in (run, add, repro):
    report.add_command(_command)
