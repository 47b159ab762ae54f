"""The group of all commands, and the options and arguments that several commands declare.

A command's module imports click alone; what the command needs is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click

from provision import __version__

DEFAULT_SPEC = "provision.yaml"
FILE = click.Path(path_type=Path)

SECTIONS = {
    "start": {"init": "provision.cli.init:init"},
    "check": {
        "lint": "provision.cli.lint:lint",
        "explain": "provision.cli.explain:explain",
        "suggest": "provision.cli.suggest:suggest",
        "why": "provision.cli.why:why",
        "facts": "provision.cli.facts:facts",
        "schema": "provision.cli.schema:schema",
    },
    "make": {
        "lock": "provision.cli.lock:lock",
        "plan": "provision.cli.plan:plan",
        "render": "provision.cli.render:render",
        "apply": "provision.cli.apply:apply",
        "run": "provision.cli.run:run",
        "destroy": "provision.cli.destroy:destroy",
    },
    "look": {
        "status": "provision.cli.status:status",
        "verify": "provision.cli.verify:verify",
        "attach": "provision.cli.attach:attach",
        "open": "provision.cli.open:open_",
        "report": "provision.cli.report:report",
        "diff": "provision.cli.diff:diff",
        "parity": "provision.cli.parity:parity",
        "env": "provision.cli.env:env",
        "probe": "provision.cli.probe:probe",
        "export": "provision.cli.export:export",
    },
    "repair": {
        "orphans": "provision.cli.orphans:orphans",
        "adopt": "provision.cli.adopt:adopt",
    },
    "try": {"sandbox": "provision.cli.sandbox:sandbox"},
    "shell": {"completion": "provision.cli.completion:completion"},
}
"""The commands by purpose, in the order of the help, each with MODULE:OBJECT of its declaration."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A click option or argument, applied to the function of a command."""


class LazyCommands(UserDict[str, Any]):
    """The commands by name; the module of a command is imported when the command is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(self.data[name], str):
            module, _, attribute = self.data[name].partition(":")
            self.data[name] = getattr(import_module(module), attribute)
        return cast("click.Command", self.data[name])


class SectionedGroup(click.Group):
    """A group whose help lists commands by purpose."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, section by section."""
        for title, names in SECTIONS.items():
            with formatter.section(title.capitalize()):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(80)) for name in names]
                )


@click.group(
    cls=SectionedGroup,
    commands=LazyCommands({name: to for names in SECTIONS.values() for name, to in names.items()}),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="provision")
@click.option(
    "--verbose",
    "-v",
    "verbosity",
    count=True,
    help="Log programs, requests and writes to stderr; -vv logs their outcome too.",
)
@click.option(
    "--log-file",
    type=FILE,
    metavar="PATH",
    help="Append the full log to a file.",
)
def app(verbosity: int, log_file: Path | None) -> None:
    """Make machine learning environments from one spec, and prove on the device that they work.

    \b
    provision init             write a first spec, provision.yaml
    provision apply --yes      check it, lock it, make it, verify it

    SPEC is provision.yaml if no other is named.
    """  # noqa: D301
    from provision.adapters.diagnostic_log import configure_logging

    configure_logging(sys.argv[1:], os.environ, verbosity=verbosity, log_file=log_file)


def examples(*lines: str) -> str:
    """Return the examples of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def output_format_option(*formats: str, text: str = "How the result is written.") -> Decorator:
    """Return the option --output-format with the formats of a command; the first is the default."""
    return click.option(
        "--output-format", type=click.Choice(formats), default=formats[0], help=text
    )


def spec_or_default(path: Path | None) -> Path:
    """Return a spec that the command line names, else provision.yaml of this folder.

    Raises:
        UsageError: the command line names no spec, and this folder has no provision.yaml.
    """
    if path is None and not Path(DEFAULT_SPEC).exists():
        raise click.UsageError(
            f"no spec is named, and there is no {DEFAULT_SPEC} here; name one, or write a "
            "first one with `provision init`"
        )
    return path or Path(DEFAULT_SPEC)


OPTIONAL_SPEC = click.argument("spec", type=FILE, required=False)
SPEC = click.argument(
    "spec",
    type=FILE,
    required=False,
    callback=lambda _ctx, _parameter, path: spec_or_default(path),
)
TARGETS = click.option(
    "--target",
    "-t",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Target of the spec; may be given several times.",
)
TARGET = click.option("--target", "-t", metavar="NAME", help="Target of the spec.")
ALL_TARGETS = click.option("--all", "all_targets", is_flag=True, help="All targets of the spec.")
OUT = click.option("--out", type=FILE, help="Write this file instead of to standard output.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
OUTPUT_FORMAT = output_format_option("text", "json")
OUTPUT_FORMAT_WITH_MARKDOWN = output_format_option("text", "json", "markdown")
OUTPUT_FORMAT_WITH_JUNIT = output_format_option(
    "text", "json", "junit", text="How the result is written; junit is XML for CI."
)
ADOPT = click.option(
    "--adopt",
    is_flag=True,
    help="Take over an instance of this name that another state made: where that state is lost.",
)
LOCKED = click.option("--locked", is_flag=True, help="Refuse a missing or stale lock.")
OFFLINE = click.option("--offline", is_flag=True, help="Use only what is in uv's cache.")
LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Wait for another provision at work here.",
)
SANDBOX = click.option(
    "--sandbox",
    is_flag=True,
    help="Google Cloud as a look-alike on this machine: no account, no cost.",
)
FAULTS = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:ARGUMENT]",
    help="In a sandbox: something to go wrong (provision sandbox faults).",
)
VERBOSE = click.option("--verbose", "-v", is_flag=True, help="Show every check.")
