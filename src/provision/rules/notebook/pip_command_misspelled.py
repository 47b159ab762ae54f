"""A cell calls pip with a misspelled `install`, so nothing is installed.

## What it does

Looks in code cells for pip and uv commands that do not exist, and whose name differs from
`install` by one or two letters, such as `!pip instal torch`.

## Why

pip prints an error, the cell continues, and the import fails later. The packages on the line are
not checked and not imported.

## How to fix

Write `install`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.imports.install_commands import RefusedCommand, read_command
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    for found in context.notebook.commands:
        read = read_command(found.command)
        if not isinstance(read, RefusedCommand) or not read.is_misspelled:
            continue
        words = read.command.words
        file = context.notebook.cell(found.cell).file()
        yield RULE.diagnostic(
            read.why,
            file.span(words[0].start, words[-1].end),
            why="Nothing is installed, and the packages on this line were not checked.",
            help=read.help,
        )


RULE = Rule(
    id="NTB014",
    name="pip-command-misspelled",
    severity=Severity.ERROR,
    sources=("pip documentation, Commands",),
    check=_check,
    bad=(
        notebook_example("!«pip instal einops==0.8.0»\n"),
        notebook_example("%«pip instal einops==0.8.0»\n"),
    ),
    good=(
        notebook_example("!pip install einops==0.8.0\n"),
        notebook_example("!pip list\n"),
    ),
)
