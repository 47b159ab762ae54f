"""CUDA_VISIBLE_DEVICES is set after torch was imported.

## What it does

Looks for cells that set CUDA_VISIBLE_DEVICES, with os.environ or `%env`, after an import of torch.

## Why

CUDA reads the variable once, when a program uses it for the first time. If a cell in between calls
`torch.cuda` or moves a model to the GPU, setting the variable later has no effect.

## How to fix

Set it in the first cell, before torch is imported, and restart the kernel.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule

_VARIABLE = "CUDA_VISIBLE_DEVICES"


def _check(context: NotebookContext) -> Findings:
    imports = [
        found
        for found in context.notebook.imports
        if found.module.partition(".")[0] == "torch" and not found.is_conditional
    ]
    for variable in context.notebook.variables:
        if variable.name != _VARIABLE or not imports:
            continue
        first = imports[0]
        if context.order(variable.cell, variable.span) < context.order(first.cell, first.span):
            continue
        yield RULE.diagnostic(
            f"{_VARIABLE} is set after cell {first.cell} imported torch",
            variable.span,
            why=(
                "If the program has already used CUDA, the variable has no effect and there is "
                "no error."
            ),
            help="set it in the first cell, before torch is imported",
            related=(RelatedLocation(first.span, "imported here"),),
        )


RULE = Rule(
    id="NTB012",
    name="devices-hidden-late",
    severity=Severity.WARNING,
    sources=("NVIDIA, CUDA C++ Programming Guide, CUDA environment variables",),
    check=_check,
    bad=(
        notebook_example(
            "import torch\n# %%\nimport os\n«os.environ['CUDA_VISIBLE_DEVICES'] = '0'»\n"
        ),
        notebook_example("import torch\n«%env CUDA_VISIBLE_DEVICES=0»\n"),
    ),
    good=(
        notebook_example("%env CUDA_VISIBLE_DEVICES=0\nimport torch\n"),
        notebook_example("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nimport torch\n"),
    ),
)
