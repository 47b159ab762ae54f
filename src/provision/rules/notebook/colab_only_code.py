"""A cell uses what only Colab has: the module google.colab, or the folder /content.

## What it does

Looks for imports of google.colab and for paths below /content. With a spec (`--spec`), it names the
targets that are not on Colab. Code in `if "google.colab" in sys.modules`, or after a `try` that
imports google.colab, is accepted.

## Why

On another machine the import fails with ModuleNotFoundError, and /content does not exist.

## How to fix

Put the import into a condition, and read paths from a variable: in a spec, `paths` gives each
target its own folders, as in `os.environ["DATA"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.diagnostics import Severity, Span
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, notebook_example
from provision.rules.rule import Findings, Rule

_PATH = re.compile(r"(?<![\w./-])/content(?=/|$|[\s'\"])")


def _check(context: NotebookContext) -> Findings:
    elsewhere = [place.name for place in context.places if not place.is_colab]
    if context.places and not elsewhere and context.spec is not None:
        return
    problem = "exists only on Colab"
    if context.spec is not None:
        problem = f"does not exist on {' and '.join(elsewhere)}"
    for subject, span in (*_imports(context), *_paths(context)):
        yield RULE.diagnostic(
            f"{subject} {problem}",
            span,
            severity=None if context.spec is not None else Severity.INFO,
            why="Only Colab runtimes provide it, so the cell fails elsewhere.",
            help=(
                'use it only if the notebook runs on Colab (`if "google.colab" in '
                "sys.modules:`), or read the path from a variable"
            ),
        )


def _imports(context: NotebookContext) -> Iterator[tuple[str, Span]]:
    for found in context.notebook.imports:
        if found.module.startswith("google.colab") and not found.is_conditional:
            yield f"the module {found.module}", found.span


def _paths(context: NotebookContext) -> Iterator[tuple[str, Span]]:
    """Yield the first path of each cell."""
    cells: set[int] = set()
    for found in context.code.strings:
        is_path = found.text.startswith(("/content", "%", "!")) and _PATH.search(found.text)
        if is_path and found.on_colab is not True and found.cell not in cells:
            cells.add(found.cell)
            yield "the folder /content", found.span


RULE = Rule(
    id="NTB006",
    name="colab-only-code",
    severity=Severity.WARNING,
    sources=(
        "googlecolab/colabtools, README: the package google-colab is part of the runtime",
        "Colab, sample notebook External data: Local Files, Drive, Sheets, and Cloud Storage",
    ),
    check=_check,
    bad=(
        notebook_example(
            "«from google.colab import drive»\ndrive.mount('/drive')\n", spec=LOCAL_SPEC
        ),
        notebook_example("data = «'/content/data.csv'»\n"),
        notebook_example("«%cd /content/project»\n", spec=LOCAL_SPEC),
    ),
    good=(
        notebook_example(
            "from google.colab import drive\n".replace("from", "try:\n    from")
            + "except ImportError:\n    drive = None\n",
            spec=LOCAL_SPEC,
        ),
        notebook_example(
            "import sys\nif 'google.colab' in sys.modules:\n    root = '/content'\n",
            spec=LOCAL_SPEC,
        ),
        notebook_example(
            "root = '/content'\n",
            spec='gpu: T4\npython: "3.12"\npackages: [torch]\n'
            'targets:\n  colab: {kind: colab, runtime: "2026.07"}\n',
        ),
    ),
)
