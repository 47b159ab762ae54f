"""TensorFlow or JAX is in the same GPU environment as torch.

## What it does

Looks for tensorflow, or jax with its CUDA plugin, listed together with torch for an NVIDIA GPU. The
finding is an error if both pin cuDNN for the same CUDA major and the pins exclude each other.

## Why

TensorFlow takes all GPU memory when it first uses the GPU, and JAX three quarters of it, so torch
runs out of memory. Each framework also pins its CUDA libraries exactly: the environment gets two
CUDA majors, or no set of versions exists.

## How to fix

Use separate environments. If one process needs both, set TF_FORCE_GPU_ALLOW_GROWTH=true or
XLA_PYTHON_CLIENT_PREALLOCATE=false.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.facts import cuda_of
from provision.facts.memory import PREALLOCATION_VARIABLES
from provision.facts.versions import is_satisfiable
from provision.rules.admitted_releases import torch_releases, torch_rows
from provision.rules.edits import unsafe_fix
from provision.rules.framework_packages import JAX_EXTRAS, JAX_PLUGINS
from provision.rules.package_requirements import (
    RequestedPackage,
    declared_specifier,
    possible_releases,
    requested_package,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.source_builds import major_version


def _check(context: LintContext) -> Findings:
    torch = requested_package(context, "torch")
    has_card = any(device.is_nvidia for device in context.devices)
    if torch is None or context.resolved is not None or not has_card:
        return
    related = related_at(torch.route, "torch requested here")
    for name, (variable, value, others) in PREALLOCATION_VARIABLES.items():
        framework = requested_package(context, name)
        if framework is None:
            continue
        extras = JAX_EXTRAS.intersection(framework.extras)
        if name == "jax" and not extras and JAX_PLUGINS.isdisjoint(context.package_names):
            continue
        pins = _conflicting_cudnn_pins(context, framework)
        if pins:
            yield RULE.diagnostic(
                f"{torch.description} requires {pins[0]}, but {framework.description} requires "
                f"{pins[1]}",
                framework.route,
                severity=None
                if all(device.flavour for device in context.devices)
                else Severity.WARNING,
                why="No cuDNN release satisfies both, so the two cannot be installed together.",
                help=f"use a separate environment for {framework.name}, or remove its CUDA extra",
                related=related,
            )
        elif context.spec.env.keys().isdisjoint((variable, *others)):
            edit = Insert((), "env", f'{{{variable}: "{value}"}}')
            if context.spec.env:
                edit = Insert(("env",), variable, f'"{value}"')
            yield RULE.diagnostic(
                f"{framework.name} and torch share a GPU, and {framework.name} allocates most of "
                "the GPU's memory at first use",
                framework.route,
                severity=Severity.INFO,
                why="torch can then run out of GPU memory, even in a different process.",
                help=f"use separate environments, or set {variable}={value} under `env`",
                related=related,
                fix=unsafe_fix(f"set {variable}={value}", edit),
            )


def _conflicting_cudnn_pins(
    context: LintContext, framework: RequestedPackage
) -> tuple[str, str] | None:
    """Return conflicting pins of cuDNN of both frameworks (for torch, of its default build)."""
    releases = torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or releases.includes_newer or len(rows) != 1 or not rows[0].cudnn:
        return None
    (row,) = rows
    flavours = {device.flavour for device in context.devices if device.is_nvidia}
    possible = possible_releases(context.facts, framework.name, framework.specifiers)
    if not framework.specifiers or not possible or not flavours <= {None, row.default}:
        return None
    name = f"nvidia-cudnn-cu{major_version(cuda_of(row.default))}"
    pin = f"=={row.cudnn}"
    declared = [declared_specifier(other, name, framework.extras) for other in possible.rows]
    if not declared or any(
        specifier is None or is_satisfiable(specifier, pin) for specifier in declared
    ):
        return None
    return f"{name}{pin}", f"{name}{declared[0]}"


RULE = Rule(
    id="PKG018",
    name="frameworks-beside-torch",
    severity=Severity.ERROR,
    sources=(
        "METADATA of the tensorflow, jax and torch wheels on PyPI",
        "TensorFlow guide, Use a GPU",
        "JAX documentation, GPU memory allocation",
        "apple/axlearn#858",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\n'
        'packages: [torch==2.8.0, «"tensorflow[and-cuda]==2.19.1"»]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, «tensorflow»]\n',
        'gpu: L4\npython: "3.12"\npackages: [torch, «"jax[cuda12]"»]\nenv: {A: b}\n',
    ),
    good=(
        *examples(
            'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, "tensorflow[and-cuda]==2.20.0"]\n'
            'env: {TF_FORCE_GPU_ALLOW_GROWTH: "true"}\n',
            'gpu: none\npython: "3.11"\npackages: [torch, tensorflow]\n',
            'gpu: L4\npython: "3.12"\npackages: [torch, jax]\n',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch, tensorflow]\n',
            resolved=ResolvedSet({"torch": "2.15.0", "tensorflow": "2.21.0"}, "3.11", "cu132"),
        ),
    ),
)
