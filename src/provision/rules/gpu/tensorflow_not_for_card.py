"""The requested TensorFlow has no code for the GPU.

## What it does

Compares the compute capability of each GPU with those that the admitted TensorFlow releases were
compiled for, among the releases with a wheel for the Python of the spec. If a release has only PTX
for the GPU, which the driver compiles at the first start, the finding is a note; a warning for
GPUs for which the driver is known to fail (RTX 50 and RTX PRO Blackwell).

## Why

TensorFlow installs and imports. It then ignores a GPU that is older than its code ("Ignoring
visible gpu device ... with Cuda compute capability 3.7. The minimum required Cuda capability is
6.0.") and computes on the CPU. With only PTX, the first start can take 30 minutes, or kernels fail
with CUDA_ERROR_INVALID_PTX and CUDA_ERROR_INVALID_HANDLE.

## How to fix

Use a release that has code for the GPU: `provision facts list tensorflow` lists them. Some need an
older Python. For RTX 50, no wheel on PyPI has such code up to 2.21: use Keras with the jax or torch
backend, NVIDIA's TensorFlow container, or a wheel that is built for compute capability 12.0.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.lazy_tables import load_tensorflow
from provision.facts.schema_torch import PtxFailure, TensorFlowRelease
from provision.facts.versions import parse_specifiers, require_version
from provision.rules.gpu.framework_builds import admitted_builds, find_unfit_cards
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)


def _check(context: LintContext) -> Findings:
    package = requested_package(context, "tensorflow")
    if package is None or not any(target.card for target in context.targets):
        return
    rows = admitted_builds(context, package, load_tensorflow())
    for unfit in find_unfit_cards(context, rows):
        newest = rows[-1]
        message = (
            f"{package.description} has no code for {unfit.description}: {newest.release} was "
            f"built for {' '.join(newest.sm)} and PTX {newest.ptx}"
        )
        why = "TensorFlow ignores this GPU and computes on the CPU."
        advice = _advice(context, unfit.card)
        severity = newest.evidence.cap_severity(Severity.ERROR)
        source, failure = "", _failure(context, unfit.card, newest)
        if unfit.has_ptx and failure is not None:
            message = f"{package.description} fails on {unfit.description}: it has only PTX for it"
            why = f"The driver cannot compile this PTX: kernels fail with {failure.error}."
            advice = "use Keras with the jax or torch backend, or NVIDIA's TensorFlow container"
            severity, source = Severity.WARNING, failure.evidence.source
        elif unfit.has_ptx:
            message = f"{package.description} has only PTX for {unfit.description}, no machine code"
            why = (
                "The driver compiles the PTX when the program first starts, which can take 30 "
                "minutes, and caches the result in ~/.nv/ComputeCache."
            )
            advice = "keep ~/.nv/ComputeCache, or set CUDA_CACHE_PATH to a persistent folder"
            severity = Severity.INFO
        yield RULE.diagnostic(
            message,
            package.route,
            severity=severity,
            why=why,
            help=advice,
            related=unfit.related,
            evidence=newest.evidence,
            source=source,
        )


def _failure(context: LintContext, card: Card, newest: TensorFlowRelease) -> PtxFailure | None:
    """Return why the driver cannot compile the PTX of a release for a card, if that is known."""
    failure = context.facts.ptx_failures.get(f"tensorflow:{card.cc}")
    if failure is None:
        return None
    fails = parse_specifiers(failure.releases).contains(require_version(newest.release))
    return failure if fails else None


def _advice(context: LintContext, card: Card) -> str:
    """Return the newest release with code for a card, and its newest Python."""
    fitting = [row for row in load_tensorflow() if context.facts.code_for(card, row)]
    if not fitting:
        return "use a newer GPU"
    newest = fitting[-1]
    return f"use a newer GPU, or tensorflow=={newest.release} with Python {newest.pythons[-1]}"


RULE = Rule(
    id="GPU013",
    name="tensorflow-not-for-card",
    severity=Severity.ERROR,
    sources=(
        "build_info.py in the wheels of tensorflow on PyPI: support/remake_tensorflow.py",
        "tensorflow/core/common_runtime/gpu/gpu_device.cc, the messages about compute capability",
        "tensorflow/tensorflow#101746, #99592, #97387, #90291 and #89272: RTX 50",
    ),
    check=_check,
    bad=examples(
        'gpu: K80\npython: "3.12"\npackages: [«"tensorflow[and-cuda]==2.21.*"»]\n',
        'gpu: RTX-PRO-6000\npython: "3.12"\npackages: [«"tensorflow[and-cuda]==2.21.*"»]\n',
        'gpu: RTX-5090\npython: "3.12"\npackages: [«"tensorflow[and-cuda]"»]\n',
        'gpu: B200\npython: "3.12"\npackages: [«"tensorflow[and-cuda]==2.21.*"»]\n',
        example(
            'gpu: K80\npython: "3.11"\npackages: [«"tensorflow[and-cuda]"»]\n',
            ResolvedSet({"tensorflow": "2.15.1", "nvidia-cudnn-cu12": "8.9.4.25"}, "3.11"),
        ),
    ),
    good=examples(
        'gpu: K80\npython: "3.11"\npackages: ["tensorflow[and-cuda]==2.14.*"]\n',
        'gpu: L4\npython: "3.12"\npackages: ["tensorflow[and-cuda]==2.21.*"]\n',
        'gpu: T4\npython: "3.12"\npackages: ["tensorflow[and-cuda]"]\n',
        'gpu: none\npython: "3.12"\npackages: ["tensorflow==2.21.*"]\n',
    ),
)
