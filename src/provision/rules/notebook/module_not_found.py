"""A module is imported that does not exist where the notebook runs.

## What it does

Looks for imports of modules that belong neither to Python nor to a package that is preinstalled
or installed by a cell, and that are not files or folders next to the notebook. They are reported
for the targets of the spec (`--spec`), or for the places that `provision check` names.

Nothing is reported if the modules of the place are not known completely: if a cell clones, writes
or downloads code, changes `sys.path`, runs a script or mounts Drive, if a cell installs a package
whose requirements are not locked, or if the spec has `code`.

## Why

The file was on the machine on which the notebook was written, but only the notebook was moved. Or
the name is misspelled. The import fails with ModuleNotFoundError.

## How to fix

Write the module with `%%writefile`, clone its repository, or install its package in the first
cell. With a spec, declare the folder under `code`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_colab_packages
from provision.rules.notebook.context import NotebookContext, NotebookPlace
from provision.rules.notebook.import_sources import has_other_sources, requested_names
from provision.rules.notebook.module_packages import MODULES
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, notebook_example
from provision.rules.notebook.uninstalled_imports import find_uninstalled_imports
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    if context.neighbors is None or not context.places or _has_code(context):
        return
    place = context.places[0]
    if not _knows_all_modules(context, place) or has_other_sources(context):
        return
    present = set(place.packages or ()) or None
    for found, package in find_uninstalled_imports(context, present):
        if not package:
            name = found.module.partition(".")[0]
            yield RULE.diagnostic(
                f"{name} is imported, but no cell installs or writes it",
                found.span,
                why=(
                    "It is neither in the notebook's folder nor part of a known package, so the "
                    "import fails with ModuleNotFoundError."
                ),
                help=(
                    f"if {name} is your own code, write it with `%%writefile {name}.py` or clone "
                    "its repository in the first cell; otherwise install its package there"
                ),
            )


def _has_code(context: NotebookContext) -> bool:
    return context.spec is not None and context.spec.code is not None


def _knows_all_modules(context: NotebookContext, place: NotebookPlace) -> bool:
    """Return whether the modules of all packages of a place are known."""
    if place.packages is None:
        return not requested_names(context)
    known = {*MODULES, *context.facts.popular}
    for packages in load_colab_packages().values():
        known |= packages.keys()
    return requested_names(context) <= place.packages.keys() <= known


RULE = Rule(
    id="NTB018",
    name="module-not-found",
    severity=Severity.WARNING,
    sources=("Python documentation, ModuleNotFoundError",),
    check=_check,
    bad=(
        notebook_example("«from mytrain import make_model»\n", colab="T4"),
        notebook_example("import torch, cv2\n«import nonexistent_xyz.sub»\n", colab="none"),
        notebook_example("«import mytrain»\n", spec='gpu: L4\npython: "3.12"\npackages: []\n'),
    ),
    good=(
        notebook_example("import torch, json, apt, mpl_toolkits.mplot3d\n", colab="T4"),
        notebook_example("%%writefile mytrain.py\nx = 1\n# %%\nimport mytrain\n", colab="T4"),
        notebook_example("!git clone https://example.org/x x\n# %%\nimport mytrain\n", colab="T4"),
        notebook_example("%pip install some-tools==1.0\n# %%\nimport mytrain\n", colab="T4"),
        notebook_example("import sys\nsys.path.append('x')\nimport mytrain\n", colab="T4"),
        notebook_example("try:\n    import mytrain\nexcept ImportError:\n    pass\n", colab="T4"),
        notebook_example("import mytrain\n", spec=LOCAL_SPEC),
        notebook_example("import mytrain\n"),
    ),
)
