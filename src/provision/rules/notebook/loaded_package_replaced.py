"""A package that Colab's kernel has already loaded is replaced.

## What it does

Compares the installed versions of numpy and Pillow with those of the Colab runtime. The runtime is
the one in the notebook's metadata, otherwise the newest one, or that of a Colab target in the spec.

## Why

Colab's kernel imports both when it starts. A version that a cell installs is on disk while the old
one stays in memory: "numpy.dtype size changed, may indicate binary incompatibility". pip prints
"You must restart the runtime", but "Run all" continues without a restart.

## How to fix

Use the version in the runtime, or restart the kernel once after the installation.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import loaded_version, order_of, requests
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.rule import Findings, Rule

_RESTARTS = frozenset({"os.kill", "os._exit", "exit", "quit"})


def _check(context: NotebookContext) -> Findings:
    restarts = [
        call.cell
        for call in context.code.calls
        if call.function in _RESTARTS or call.name == "do_shutdown"
    ]
    for request in requests(context):
        cell, _ = order_of(context, request)
        for place in context.places:
            installed = loaded_version(context, request, place)
            if installed is None or any(restart >= cell for restart in restarts):
                continue
            yield RULE.diagnostic(
                f"{request.package.requirement} replaces {request.name} {installed}, which the "
                f"kernel on {place.name} has already loaded",
                request.span,
                why=(
                    "Until the kernel is restarted, the old version is in memory and the new "
                    "one is on disk, which causes errors such as `numpy.dtype size changed`."
                ),
                help=f"use {request.name}=={installed}, or restart the kernel after this cell",
            )
            break


RULE = Rule(
    id="NTB004",
    name="loaded-package-replaced",
    severity=Severity.WARNING,
    sources=(
        "googlecolab/colabtools#5238",
        "googlecolab/colabtools#5204",
        "googlecolab/colabtools at 3c07d776, _reprs.py: the kernel's imports",
    ),
    check=_check,
    bad=(
        notebook_example("%pip install «numpy==1.26.4»\n", colab="T4"),
        notebook_example(
            "%pip install «pillow==10.0.0»\n",
            spec='gpu: T4\npython: "3.12"\npackages: [torch]\n'
            'targets:\n  colab: {kind: colab, runtime: "2026.07"}\n',
        ),
    ),
    good=(
        notebook_example("%pip install numpy==1.26.4\n"),
        notebook_example(
            "%pip install numpy==1.26.4\nimport os\nos.kill(os.getpid(), 9)\n", colab="T4"
        ),
    ),
)
