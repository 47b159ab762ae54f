"""A package is imported that no cell installs and that is not preinstalled.

## What it does

Looks for imports of packages that are neither under `packages` nor installed by a cell. They are
reported for the targets of the spec (`--spec`), or for the places that `provision check` names:

- on a Colab runtime, much-used packages that are not preinstalled there. It is an error if the
  notebook installs no package and brings no files.
- elsewhere, packages that Colab has preinstalled, and other much-used ones. Packages that are
  often installed with others, such as numpy with torch, are not reported without a lock.

Modules in the notebook's folder are not reported. Of packages that Colab does not have, no import
is reported if the notebook clones, writes or downloads code, changes `sys.path`, or installs a
package that may require them.

## Why

On Colab, some six hundred packages are preinstalled, and the notebook never has to install them.
Elsewhere, the import fails with ModuleNotFoundError. So does the import of any other package on
Colab.

## How to fix

Install the package in the first cell, or add it to `packages`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext, NotebookPlace
from provision.rules.notebook.import_sources import (
    has_other_sources,
    may_be_required,
    requested_names,
)
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.notebook.uninstalled_imports import (
    find_uninstalled_imports,
    is_preinstalled,
)
from provision.rules.rule import Findings, Rule

_HELP = "install {} in the first cell, or add it to `packages`"


def _check(context: NotebookContext) -> Findings:
    clean = next((place for place in context.places if not place.is_runtime), None)
    runtime = next((place for place in context.places if place.is_runtime), None)
    if clean is not None:
        yield from _find_on_clean_place(context, clean)
    elif runtime is not None and runtime.packages:
        yield from _find_on_runtime(context, runtime)


def _find_on_clean_place(context: NotebookContext, place: NotebookPlace) -> Findings:
    locked = None if place.packages is None else set(place.packages)
    is_open = has_other_sources(context)
    for found, package in find_uninstalled_imports(context, locked):
        if not package:
            continue
        if is_preinstalled(package, context.facts):
            why = "The package is preinstalled on Colab. Elsewhere, the import fails with "
        elif is_open or may_be_required(context, package):
            continue
        else:
            why = "The package is not preinstalled, so the import fails with "
        yield RULE.diagnostic(
            f"{found.module} is imported, but no cell installs {package}",
            found.span,
            why=f"{why}ModuleNotFoundError.",
            help=_HELP.format(package),
            severity=Severity.WARNING,
        )


def _find_on_runtime(context: NotebookContext, place: NotebookPlace) -> Findings:
    if has_other_sources(context):
        return
    present = set(place.packages or ())
    is_certain = requested_names(context) <= present
    for found, package in find_uninstalled_imports(context, present):
        if package and not may_be_required(context, package):
            yield RULE.diagnostic(
                f"{found.module} is imported, but no cell installs {package}",
                found.span,
                why=(
                    f"{package} is not preinstalled on {place.name}, so the import fails with "
                    "ModuleNotFoundError."
                ),
                help=_HELP.format(package),
                severity=None if is_certain else Severity.WARNING,
            )


RULE = Rule(
    id="NTB015",
    name="import-without-install",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/backend-info pip-freeze.gpu.txt of each runtime version",
        "Python documentation, ModuleNotFoundError",
    ),
    check=_check,
    bad=(
        notebook_example("«import xgboost»\n", spec=LOCAL_SPEC),
        notebook_example("«import cv2»\n", spec=LOCAL_SPEC, locked=LOCKED),
        notebook_example("«from sklearn import svm»\n", spec=LOCAL_SPEC),
        notebook_example("import torch\n# %%\n«import bitsandbytes as bnb»\n", colab="T4"),
        notebook_example("«import whisper»\n", colab="T4"),
    ),
    good=(
        notebook_example("import xgboost\n", colab="T4"),
        notebook_example("import numpy, torch, our_own_tools, json\n", spec=LOCAL_SPEC),
        notebook_example(
            "%pip install unsloth\n# %%\nimport bitsandbytes\n", colab="T4", other_ids=("NTB001",)
        ),
        notebook_example("!git clone https://example.org/x\n# %%\nimport whisper\n", colab="T4"),
        notebook_example("%pip install xgboost==3.1.0\n# %%\nimport xgboost\n", spec=LOCAL_SPEC),
        notebook_example(
            "try:\n    import xgboost\nexcept ImportError:\n    pass\n", spec=LOCAL_SPEC
        ),
    ),
)
