"""`!cd`, `!export` and `!source` have no effect after their line.

## What it does

Looks for lines of a cell that only change the state of the shell that `!` starts.

## Why

Each line with `!` runs in a new shell. The next line is in the old folder again, without the
variable.

## How to fix

Use `%cd FOLDER` and `%env NAME=VALUE`, or put the commands on one line: `!cd FOLDER && make`.
"""

from __future__ import annotations

import re
from itertools import zip_longest

from provision.diagnostics import Applicability, Fix, Replace, Severity
from provision.imports.notebook import CellCommand
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule

_INSTEAD = {"cd": "%cd", "export": "%env", "source": "", ".": ""}
_SIMPLE = re.compile(r"[ \t]*(![ \t]*(cd|export))[ \t]+[^\s;&|<>$`\\'\"{}]+[ \t]*")


def _check(context: NotebookContext) -> Findings:
    commands = [command for command in context.notebook.commands if command.origin == "!"]
    for command, following in zip_longest(commands, commands[1:]):
        name = command.command.words[0].text
        if name not in _INSTEAD or _is_same_line(context, command, following):
            continue
        instead = _INSTEAD[name]
        yield RULE.diagnostic(
            f"!{name} has no effect on later lines",
            command.span,
            why="Each line that begins with ! runs in a new shell.",
            help=f"use {instead}" if instead else "put the commands that need it on the same line",
            fix=_fix(context, command),
        )


def _is_same_line(
    context: NotebookContext, command: CellCommand, following: CellCommand | None
) -> bool:
    """Return whether another command follows in the same shell."""
    if following is None or following.cell != command.cell:
        return False
    source = context.notebook.cell(command.cell).source
    between = source[command.span.end.offset : following.span.start.offset]
    return re.search(r"(?<!\\)\n", between.replace("\r", "")) is None


def _fix(context: NotebookContext, command: CellCommand) -> Fix | None:
    file = context.notebook.cell(command.cell).file()
    start = file.start_of_line(command.span.start.offset)
    match = _SIMPLE.fullmatch(file.content, start, file.end_of_line(start))
    if match is None:
        return None
    instead = _INSTEAD[match[2]]
    where = file.span(*match.span(1))
    return Fix(f"use {instead}", (Replace(where, instead),), Applicability.UNSAFE)


RULE = Rule(
    id="NTB011",
    name="shell-state-lost",
    severity=Severity.INFO,
    sources=(
        "IPython documentation, Python vs IPython: System shell access (!cd has no effect)",
        "IPython documentation, Built-in magic commands: %cd, %env",
    ),
    check=_check,
    bad=(
        notebook_example("!«cd data»\n!ls\n"),
        notebook_example("!«export WANDB_MODE=offline»\n"),
        notebook_example("!«source .venv/bin/activate»\n# %%\n!python train.py\n"),
    ),
    good=(
        notebook_example("!cd data && ls\n!WANDB_MODE=offline python train.py\n"),
        notebook_example("%cd data\n%env WANDB_MODE=offline\n"),
    ),
)
