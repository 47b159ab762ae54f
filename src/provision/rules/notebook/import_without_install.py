"""A package is imported that no cell installs and that is not preinstalled.

## What it does

Looks for imports of packages that every Colab runtime has, and that are neither under `packages`
nor installed by a cell. They are reported for the targets of the spec (`--spec`), or for the places
that `provision check` names, in which nothing is preinstalled. Packages that are often installed
with others, such as numpy with torch, are not reported without a lock.

## Why

On Colab, some six hundred packages are preinstalled, and the notebook never has to install them.
Elsewhere, the import fails with ModuleNotFoundError.

## How to fix

Install the package in the first cell, or add it to `packages`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.notebook.uninstalled_imports import find_uninstalled_imports
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    clean = next((place for place in context.places if not place.is_runtime), None)
    if clean is None:
        return
    locked = None if clean.packages is None else set(clean.packages)
    for found, package in find_uninstalled_imports(context, locked):
        yield RULE.diagnostic(
            f"{found.module} is imported, but no cell installs {package}",
            found.span,
            why=(
                "The package is preinstalled on Colab. Elsewhere, the import fails with "
                "ModuleNotFoundError."
            ),
            help=f"install {package} in the first cell, or add it to `packages`",
        )


RULE = Rule(
    id="NTB015",
    name="import-without-install",
    severity=Severity.WARNING,
    sources=(
        "googlecolab/backend-info pip-freeze.gpu.txt of each runtime version",
        "Python documentation, ModuleNotFoundError",
    ),
    check=_check,
    bad=(
        notebook_example("«import xgboost»\n", spec=LOCAL_SPEC),
        notebook_example("«import cv2»\n", spec=LOCAL_SPEC, locked=LOCKED),
        notebook_example("«from sklearn import svm»\n", spec=LOCAL_SPEC),
    ),
    good=(
        notebook_example("import xgboost\n", colab="T4"),
        notebook_example("import numpy, torch, our_own_tools, json\n", spec=LOCAL_SPEC),
        notebook_example("%pip install xgboost==3.1.0\n# %%\nimport xgboost\n", spec=LOCAL_SPEC),
        notebook_example(
            "try:\n    import xgboost\nexcept ImportError:\n    pass\n", spec=LOCAL_SPEC
        ),
    ),
)
