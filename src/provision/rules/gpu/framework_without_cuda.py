"""jax or TensorFlow is requested without its CUDA packages, for a target with a GPU.

## What it does

If training uses jax, or Keras with jax or tensorflow, and a target has an NVIDIA GPU, looks for the
package's CUDA extra: `jax[cuda13]` or `jax[cuda12]` or their plugins, `tensorflow[and-cuda]`.
tensorflow-cpu has no code for GPUs at all, which is an error. The others are warnings: an image may
have the CUDA libraries, and Colab's own packages include the plugin of jax. Packages of conda are
not checked.

## Why

The plain packages install and import. They then compute on the CPU: jax prints "An NVIDIA GPU may
be present on this machine, but a CUDA-enabled jaxlib is not installed", TensorFlow "Could not find
cuda drivers" or "Cannot dlopen some GPU libraries", and training is many times slower.

## How to fix

Use `jax[cuda13]` (driver 580 or newer, compute capability 7.5), else `jax[cuda12]`, or
`tensorflow[and-cuda]`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.framework_packages import JAX_EXTRAS, JAX_PLUGINS
from provision.rules.package_lines import find_line
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)

CUDA_LIBRARIES = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
"""Packages that tensorflow[and-cuda] installs: without cuDNN, TensorFlow uses no GPU."""


def _check(context: LintContext) -> Findings:
    route = next((d.gpu_route for d in context.devices if d.is_nvidia), None)
    spec = context.spec
    library = {"jax": "jax", "keras": spec.backend()}.get(spec.framework())
    if route is None or library not in ("jax", "tensorflow"):
        return
    listed = find_line(context, "tensorflow-cpu") if library == "tensorflow" else None
    line = listed or find_line(context, library)
    if line is None or line[1].source == "conda" or _has_cuda(context, library):
        return
    advice = "jax[cuda13] or jax[cuda12]" if library == "jax" else "tensorflow[and-cuda]"
    package = line[1]
    yield RULE.diagnostic(
        f"{package.requirement} is requested without its CUDA packages, but a target has a GPU",
        line[0],
        severity=None if listed else Severity.WARNING,
        why="The package can be installed and imported, but it uses only the CPU.",
        help=f"use {advice}",
        related=related_at(route, "GPU requested here"),
    )


def _has_cuda(context: LintContext, library: str) -> bool:
    names = context.package_names
    line = find_line(context, library)
    extras = set(line[1].extras) if line else set()
    if library == "jax":
        return not (JAX_PLUGINS.isdisjoint(names) and JAX_EXTRAS.isdisjoint(extras))
    if "tensorflow" not in names:  # tensorflow-cpu
        return False
    return "and-cuda" in extras or not names.isdisjoint(CUDA_LIBRARIES)


RULE = Rule(
    id="GPU012",
    name="framework-without-cuda",
    severity=Severity.ERROR,
    sources=(
        "JAX documentation, Installation; jax/_src/xla_bridge.py in the wheels of jax",
        "TensorFlow documentation, Install TensorFlow with pip",
        "METADATA of the tensorflow, tensorflow-cpu and jax wheels on PyPI",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: [«jax»]\n',
        'gpu: L4\npython: "3.12"\npackages: [«tensorflow»]\n',
        'gpu: L4\npython: "3.12"\npackages: [keras, «tensorflow-cpu»]\n',
        'gpu: none\npython: "3.12"\npackages: [keras, «"jax>=0.6"»]\n'
        "targets: {a: {kind: local, gpu: L4}}\n",
        example(
            'gpu: L4\npython: "3.12"\npackages: [«jax»]\n',
            ResolvedSet({"jax": "0.11.2", "jaxlib": "0.11.2"}, "3.12"),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.12"\npackages: ["jax[cuda13]"]\n',
        'gpu: L4\npython: "3.12"\npackages: [jax, jax-cuda12-plugin]\n',
        'gpu: L4\npython: "3.12"\npackages: ["tensorflow[and-cuda]"]\n',
        'gpu: none\npython: "3.12"\npackages: [jax]\n',
        'gpu: L4\npython: "3.12"\npackages: [torch, jax]\n',
        example(
            'gpu: L4\npython: "3.12"\npackages: [jax]\n',
            ResolvedSet({"jax": "0.11.2", "jax-cuda13-plugin": "0.11.2"}, "3.12"),
        ),
    ),
)
