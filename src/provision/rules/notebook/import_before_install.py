"""A package is imported before the cell that installs it.

## What it does

Looks for imports of packages that a later cell installs, if they are not preinstalled where the
notebook runs: on the Colab runtime that saved it, or on the targets of the spec (`--spec`).

## Why

"Run all" on a new machine fails with ModuleNotFoundError. It worked only for the author, whose
kernel had already run the later cell.

## How to fix

Move the installation to the first cell.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import modules_of, order_of, place_without, requests
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    first: dict[str, tuple[int, int]] = {}
    for request in requests(context):
        is_late = request.name not in first and not request.install.is_conditional
        first.setdefault(request.name, order_of(context, request))
        place = place_without(context, request.name)
        if not is_late or place is None:
            continue
        modules = modules_of(request.name, context.facts)
        for found in context.notebook.imports:
            if context.order(found.cell, found.span) > first[request.name]:
                break
            if found.is_conditional or found.module.partition(".")[0].lower() not in modules:
                continue
            yield RULE.diagnostic(
                f"{found.module} is imported before cell {request.install.cell} installs "
                f"{request.name}",
                found.span,
                why=(
                    f"{request.name} is not preinstalled on {place.name}, so in a new kernel the "
                    "import fails with ModuleNotFoundError."
                ),
                help=f"move the installation of {request.name} before this cell",
                related=(RelatedLocation(request.span, "installed here"),),
            )
            break


RULE = Rule(
    id="NTB003",
    name="import-before-install",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/backend-info pip-freeze.txt of each runtime version",
        "Python documentation, ModuleNotFoundError",
    ),
    check=_check,
    bad=(
        notebook_example(
            "«import trl»\n# %%\n%pip install trl==0.24.0\n",
            colab="T4",
        ),
        notebook_example(
            "«import trl»\n# %%\n%pip install trl==0.24.0\n",
            spec=LOCAL_SPEC,
            locked=LOCKED,
        ),
    ),
    good=(
        notebook_example("%pip install trl==0.24.0\n# %%\nimport trl\n", colab="T4"),
        notebook_example("import trl\n# %%\n%pip install trl==0.24.0\n", other_ids=("NTB002",)),
    ),
)
