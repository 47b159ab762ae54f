"""A cell is not valid Python, so that its code was not checked.

## What it does

Reports code cells with a syntax error that contain something these rules look for, such as a call
of TrainingArguments. Lines of IPython (`!pip`, `%cd`) are no errors.

## Why

The cell fails when it runs, and a finding that it would have had is not reported.

## How to fix

Correct the line. If it runs in your notebook, its Python is newer than the one that `provision`
runs on.
"""

from __future__ import annotations

import sys

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for cell in context.code.unread:
        yield RULE.diagnostic(
            f"the cell is not valid Python {minor}: {cell.message}",
            cell.span,
            why="Its calls and paths were not checked.",
            help="correct the line",
        )


RULE = Rule(
    id="NTB013",
    name="cell-not-python",
    severity=Severity.WARNING,
    sources=("Python documentation, ast.parse",),
    check=_check,
    bad=(
        notebook_example("from transformers import TrainingArguments\n«def train(:»\n"),
        notebook_example("!pip list\n«args = TrainingArguments(»\n"),
    ),
    good=(
        notebook_example("from transformers import TrainingArguments\n!ls\n%cd /tmp\n"),
        notebook_example("def broken(:\n"),
    ),
)
