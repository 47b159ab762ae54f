"""A cell replaces the torch that is already installed.

## What it does

Compares the version and the CUDA build of torch in install commands with the torch of the Colab
runtime, or with that of the spec's lock (`--spec`).

## Why

torchvision and other packages with compiled code were built for the torch that is there. With a
different one, their import fails ("operator torchvision::nms does not exist", "undefined symbol").
A build for a newer CUDA than the driver supports does not find the GPU. The download takes
gigabytes.

## How to fix

Keep the installed torch: remove it from the command. Or choose torch and its companions in a spec,
and lock them together.
"""

from __future__ import annotations

from packaging.version import Version

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import requests
from provision.rules.notebook.notebook_examples import LOCAL_SPEC, LOCKED, notebook_example
from provision.rules.rule import Findings, Rule


def _check(context: NotebookContext) -> Findings:
    for request in requests(context):
        if request.name != "torch":
            continue
        for place in context.places:
            installed = (place.packages or {}).get("torch")
            if installed is None or not request.replaces(installed):
                continue
            requested = request.package.requirement
            if request.local:
                requested += f" (build {request.local})"
            yield RULE.diagnostic(
                f"{requested} replaces torch {Version(installed)}, which is preinstalled on "
                f"{place.name}",
                request.span,
                why=(
                    "Packages built against the preinstalled torch fail to import with a different "
                    "build."
                ),
                help="remove torch from the command to keep the preinstalled version, or use "
                "a spec to pin torch and the packages built for it",
            )
            break


RULE = Rule(
    id="NTB010",
    name="installed-torch-replaced",
    severity=Severity.WARNING,
    sources=(
        "pytorch/vision#8985",
        "torchvision/extension.py",
        "googlecolab/backend-info pip-freeze.gpu.txt of each runtime version",
    ),
    check=_check,
    bad=(
        notebook_example("%pip install «torch==2.0.1+cu118»\n", colab="T4", other_ids=("NTB017",)),
        notebook_example("%pip install «torch==2.5.0»\n", spec=LOCAL_SPEC, locked=LOCKED),
        notebook_example("%pip install -U «torch»\n", colab="T4", other_ids=("NTB001",)),
    ),
    good=(
        notebook_example("%pip install torch==2.11.0\n", spec=LOCAL_SPEC, locked=LOCKED),
        notebook_example("%pip install torch==2.0.1+cu118\n"),
        notebook_example("%pip install torch>=2\n", colab="T4", other_ids=("NTB001",)),
    ),
)
