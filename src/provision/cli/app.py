"""The group of all commands: sections of its help, and where each command is declared.

A command's module imports click alone; what the command needs is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from pathlib import Path

import click

from provision import __version__
from provision.cli.logging_options import LOG_FILE, VERBOSITY, start_log

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


class LazyCommands(MutableMapping[str, click.Command]):
    """The commands by name; the module of a command is imported when the command is looked up."""

    def __init__(self, declarations: dict[str, str]) -> None:
        self._commands: dict[str, str | click.Command] = {**declarations}

    def __getitem__(self, name: str) -> click.Command:
        command = self._commands[name]
        if isinstance(command, str):
            module, _, attribute = command.partition(":")
            command = self._commands[name] = getattr(import_module(module), attribute)
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        del self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


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
@VERBOSITY
@LOG_FILE
def app(verbosity: int, log_file: Path | None) -> None:
    """Make machine learning environments from one spec, and prove on the device that they work.

    \b
    provision init             write a first spec, provision.yaml
    provision apply --yes      check it, lock it, make it, verify it

    SPEC is provision.yaml where none is named.
    """  # noqa: D301
    start_log(verbosity, log_file)
