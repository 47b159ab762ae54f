"""The group of all commands, and the options and arguments that several commands declare.

A command's module imports click alone; what the command needs is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from collections import UserDict
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click

from provision import __version__
from provision.cli.help import HelpContext, NumberWithin

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

DEFAULT_SPEC = "provision.yaml"
FILE = click.Path(path_type=Path)

SECTIONS = {
    "start": ("init", "import"),
    "check": ("lint", "check", "explain", "suggest", "why", "facts", "schema"),
    "create": ("add", "remove", "lock", "plan", "render", "apply", "run", "destroy"),
    "inspect": (
        *("status", "outdated", "verify", "attach", "open", "report"),
        *("diff", "parity", "fit", "capture", "env", "probe", "export"),
    ),
    "repair": ("orphans", "adopt"),
    "try": ("sandbox",),
    "shell": ("completion",),
}
"""The commands by purpose, in the order of the help; each is declared in the module of its name."""

_MODULES = {"import": "import_files"}
"""The modules of commands whose names are keywords of Python."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A click option or argument, applied to the function of a command."""

Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem]]"


class LazyCommands(UserDict[str, click.Command | None]):
    """The commands by name; the module of a command is imported when the command is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        command = self.data[name]
        if command is None:
            module = _MODULES.get(name, name)
            command = getattr(import_module(f"provision.cli.{module}"), module)
            self.data[name] = command
        return cast("click.Command", command)


class CommandGroup(click.Group):
    """A group that names the command that a mistyped one may stand for."""

    context_class = HelpContext

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, whose help has no broken words either."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            command.context_class = HelpContext
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command, the command, and its arguments."""
        name = args[0]
        if name in self.commands or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command '{name}'. {self.suggest(name)}".rstrip(), ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands."""
        self.write_commands(formatter, "Commands", list(self.commands))

    def write_commands(
        self, formatter: click.HelpFormatter, title: str, names: Sequence[str]
    ) -> None:
        """Write commands with the whole first sentence of their help."""
        with formatter.section(title):
            formatter.write_dl([(name, _first_sentence(self.commands[name])) for name in names])

    def suggest(self, name: str) -> str:
        """Return the hint for an unknown command; "" without one."""
        from provision.spelling import did_you_mean

        return did_you_mean(name, self.commands).replace("did", "Did", 1)


class SectionedGroup(CommandGroup):
    """A group whose help lists commands by purpose."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, section by section."""
        for title, names in SECTIONS.items():
            self.write_commands(formatter, title.capitalize(), names)


def _first_sentence(command: click.Command) -> str:
    help_text = command.help or ""
    return command.get_short_help_str(len(help_text))


@click.group(
    cls=SectionedGroup,
    commands=LazyCommands({name: None for names in SECTIONS.values() for name in names}),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="provision")
@click.option(
    "--verbose",
    "-v",
    "verbosity",
    count=True,
    help="Log subprocesses, requests and file writes to standard error; -vv also logs results.",
)
@click.option(
    "--log-file",
    type=FILE,
    metavar="PATH",
    help="Append the full log to a file.",
)
def app(verbosity: int, log_file: Path | None) -> None:
    """Create machine learning environments from one spec, and prove on the device that they work.

    \b
    provision init             write a starter spec, provision.yaml
    provision apply --yes      check it, lock it, create it, verify it

    SPEC defaults to provision.yaml.
    """  # noqa: D301
    from provision.adapters.diagnostic_log import configure_logging

    configure_logging(sys.argv[1:], os.environ, verbosity=verbosity, log_file=log_file)


def completed_by(subject: str) -> Completer:
    """Return a completion function with the words of a subject (`completers.LISTS`)."""

    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from provision.cli.completers import complete_word

        return complete_word(subject, context, incomplete, DEFAULT_SPEC)

    return complete


def examples(*lines: str) -> str:
    """Return the examples of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def output_format_option(*formats: str, text: str = "Set the output format.") -> Decorator:
    """Return the option --output-format with the formats of a command; the first is the default."""
    return click.option(
        "--output-format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=text,
    )


def spec_or_default(path: Path | None) -> Path:
    """Return the spec on the command line, else provision.yaml of this folder.

    Raises:
        UsageError: there is no spec on the command line and no provision.yaml in this folder.
    """
    if path is None and not Path(DEFAULT_SPEC).exists():
        raise click.UsageError(
            f"there is no {DEFAULT_SPEC} in this folder; pass a spec, or create one with "
            "`provision init`"
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
    shell_complete=completed_by("targets"),
    help="Select a target in the spec; repeatable.",
)


def target_option(text: str = "Select a target in the spec.") -> Decorator:
    """Return the option --target of a command for one target."""
    complete = completed_by("targets")
    return click.option("--target", "-t", metavar="NAME", shell_complete=complete, help=text)


TARGET = target_option()
ALL_TARGETS = click.option(
    "--all",
    "all_targets",
    is_flag=True,
    help="Select all targets in the spec, or in every spec in a folder.",
)
PARALLEL = click.option(
    "--parallel",
    type=NumberWithin(int, 1, 64),
    default=8,
    metavar="N",
    help="Work on up to N targets at a time; default: 8.",
)
KEEP_GOING = click.option(
    "--keep-going",
    is_flag=True,
    help="When given a folder, skip specs that have errors and start the rest; without this "
    "option, an error in one spec prevents all of them from starting.",
)
OUT = click.option("--out", type=FILE, help="Write to this file instead of standard output.")
YES = click.option("--yes", "-y", is_flag=True, help="Skip the confirmation.")
OUTPUT_FORMAT = output_format_option("text", "json")
OUTPUT_FORMAT_WITH_MARKDOWN = output_format_option("text", "json", "markdown")
OUTPUT_FORMAT_WITH_JUNIT = output_format_option(
    "text", "json", "junit", text="Set the output format; junit is an XML format for CI."
)
ADOPT = click.option(
    "--adopt",
    is_flag=True,
    help="Adopt an existing instance with this name if provision has lost its state.",
)
LOCKED = click.option("--locked", is_flag=True, help="Fail if the lock is missing or stale.")
OFFLINE = click.option("--offline", is_flag=True, help="Use only the files in uv's cache.")
LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=NumberWithin(float, 0),
    default=0.0,
    metavar="SECONDS",
    help="Wait up to SECONDS for another provision process to finish; default: 0.",
)
SANDBOX = click.option(
    "--sandbox",
    is_flag=True,
    help="Emulate Google Cloud on this machine; needs no account and costs nothing.",
)
FAULTS = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:ARGUMENT]",
    help="Sandbox only: simulate one of the faults listed by `provision sandbox faults`; "
    "repeatable.",
)
RANK = click.option(
    "--rank",
    default="",
    metavar="K|all",
    help="Show the output of machine K of a job, or of all machines; default: 0.",
)
VERBOSE = click.option("--verbose", "-v", is_flag=True, help="Show every check.")
