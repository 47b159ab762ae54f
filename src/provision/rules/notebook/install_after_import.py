"""A package is installed after an earlier cell imported it.

## What it does

Looks for an import of a package, or of torch before a package of its family (torchvision,
torchaudio, triton), that runs before the cell that installs a different version of it.

## Why

A kernel imports a module once. After the installation, the new version is on disk and the old one
is in memory, even after a second `import`. Modules that are imported later come from the new
version, and fail with errors such as "cannot import name".

## How to fix

Install everything in the first cell, before any import, and restart the kernel if it has imported
the package already.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.imports.notebook import CellImport
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import (
    RequestedInstall,
    is_loaded_by_runtime,
    may_be_replaced,
    modules_of,
    order_of,
    requests,
)
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.rule import Findings, Rule

_TORCH_FAMILY = frozenset({"torch", "torchvision", "torchaudio", "triton"})


def _check(context: NotebookContext) -> Findings:
    reported: set[str] = set()
    for request in requests(context):
        found = _earlier_import(context, request)
        if (
            found is None
            or request.name in reported
            or request.install.is_conditional
            or is_loaded_by_runtime(context, request)
            or not may_be_replaced(context, request)
        ):
            continue
        reported.add(request.name)
        yield RULE.diagnostic(
            f"{request.name} is installed after cell {found.cell} imported {found.module}",
            request.span,
            why="The kernel keeps the version it imported until it is restarted.",
            help=f"move the installation before cell {found.cell}",
            related=(RelatedLocation(found.span, "imported here"),),
        )


def _earlier_import(context: NotebookContext, request: RequestedInstall) -> CellImport | None:
    modules = modules_of(request.name, context.facts)
    if request.name in _TORCH_FAMILY:
        modules |= {"torch"}
    for found in context.notebook.imports:
        if context.order(found.cell, found.span) > order_of(context, request):
            return None
        if not found.is_conditional and found.module.partition(".")[0].lower() in modules:
            return found
    return None


RULE = Rule(
    id="NTB002",
    name="install-after-import",
    severity=Severity.WARNING,
    sources=(
        "Python documentation, The import system: the module cache",
        "Python documentation, importlib.reload: other references keep the old objects",
    ),
    check=_check,
    bad=(
        notebook_example("import transformers\n# %%\n%pip install «transformers==5.0.0»\n"),
        notebook_example(
            "import torch\n# %%\n%pip install «torchvision==0.26.0»\n",
        ),
        notebook_example(
            "import accelerate\n# %%\n%pip install «accelerate==1.0.0»\n",
            spec=LOCAL_SPEC,
            locked=LOCKED,
        ),
    ),
    good=(
        notebook_example("%pip install transformers==5.0.0\n# %%\nimport transformers\n"),
        notebook_example(
            "import transformers\n# %%\n%pip install transformers==5.0.0\n",
            spec=LOCAL_SPEC,
            locked=LOCKED,
        ),
    ),
)
