"""A cell is not valid Python, so its code was not checked.

## What it does

Reports code cells with a syntax error that contain something these rules look for, such as a call
of TrainingArguments. IPython lines (`!pip`, `%cd`) are not errors. It also reports cells whose
JSON is damaged: without a `cell_type`, or with a source that is not text.

## Why

The cell fails when it runs, and the problems in it are not reported.

## How to fix

Correct the line, or open a damaged notebook in Jupyter and save it again. If a line runs in
your notebook, its Python is newer than the one that `provision` runs on.
"""

from __future__ import annotations

import sys

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    for part in context.notebook.cells:
        if part.is_malformed:
            yield RULE.diagnostic(
                "the cell has no `cell_type`, or its source is not text",
                part.file().span(0, 0),
                why="The cell could not be read, so nothing in it was checked.",
                help="open the notebook in Jupyter and save it again",
            )
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for cell in context.code.unread:
        yield RULE.diagnostic(
            f"the cell is not valid Python: {cell.message}",
            cell.span,
            why="The calls and paths in the cell were not checked. `provision` parses cells with "
            f"the Python that it runs on ({minor}).",
            help="correct the syntax of this line",
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
