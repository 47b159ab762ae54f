"""The requested CUDA plugin of jax has no code for the GPU.

## What it does

Compares the compute capability of each GPU with those that the admitted releases of
jax-cuda12-plugin or jax-cuda13-plugin were compiled for, among the releases with a wheel for the
Python of the spec. If a release has only PTX for the GPU, which the driver compiles, that is an
info.

## Why

XLA compiles most of a jax program for the GPU that it finds. The kernels for random numbers and
linear algebra come compiled, and so do the CUDA libraries: those of CUDA 13 need compute capability
7.5. `jax.random` then fails on an older GPU.

## How to fix

Use `jax[cuda12]` for a GPU that is older than Turing, a release of jax that has code for the GPU
(`provision facts list jax`), or another GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card
from provision.facts.compatibility import CodeForm
from provision.facts.lazy_tables import load_jax
from provision.rules.framework_packages import JAX_EXTRAS
from provision.rules.gpu.framework_builds import admitted_builds, find_unfit_cards
from provision.rules.package_requirements import RequestedPackage, requested_package
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)


def _check(context: LintContext) -> Findings:
    requested = _requested(context) if any(target.card for target in context.targets) else None
    if requested is None:
        return
    package, cuda = requested
    rows = [row for row in admitted_builds(context, package, load_jax()) if row.cuda == cuda]
    for unfit in find_unfit_cards(context, rows):
        newest = rows[-1]
        message = (
            f"{package.description} has no code for {unfit.description}: jax-cuda{cuda}-plugin "
            f"{newest.release} was built for {', '.join(newest.sm)} and PTX {newest.ptx}"
        )
        why = (
            "jax can be installed and imported. Its kernels for random numbers and linear algebra, "
            "and the CUDA libraries that it uses, do not run on this GPU."
        )
        severity = newest.evidence.cap_severity(Severity.ERROR)
        if unfit.has_ptx:
            message = f"{package.description} has only PTX for {unfit.description}, no machine code"
            why = (
                "The release is older than the GPU. The driver compiles the PTX when the program "
                "first starts; whether XLA compiles for this GPU is not known."
            )
            severity = Severity.INFO
        yield RULE.diagnostic(
            message,
            package.route,
            severity=severity,
            why=why,
            help=_advice(context, unfit.card),
            related=unfit.related,
            evidence=newest.evidence,
        )


def _requested(context: LintContext) -> tuple[RequestedPackage, str] | None:
    """Return the package that decides the release of the plugin, and its CUDA major."""
    package = requested_package(context, "jax")
    for cuda in ("12", "13"):
        plugin = requested_package(context, f"jax-cuda{cuda}-plugin")
        if plugin is not None and plugin.package is None and package is not None:
            return plugin._replace(route=package.route), cuda
        if plugin is not None:
            return plugin, cuda
    extras = JAX_EXTRAS.intersection(package.extras) if package is not None else frozenset()
    if package is None or not extras:
        return None
    return package, "13" if any("13" in extra for extra in extras) else "12"


def _advice(context: LintContext, card: Card) -> str:
    """Return the newest release with machine code for a card, and its newest Python."""
    fitting = []
    for row in load_jax():
        code = context.facts.code_for(card, row)
        if code is not None and code.form is CodeForm.MACHINE:
            fitting.append(row)
    if not fitting:
        return "use a newer GPU"
    newest = fitting[-1]
    return f"use jax[cuda{newest.cuda}]=={newest.release} (Python up to {newest.pythons[-1]})"


RULE = Rule(
    id="GPU014",
    name="jax-not-for-card",
    severity=Severity.ERROR,
    sources=(
        "_prng.so in the wheels of jax-cuda12-plugin and jax-cuda13-plugin: support/remake_jax.py",
        "jax-ml/jax docs/installation.md, NVIDIA GPU; jax-ml/jax .bazelrc, cuda_v12 and cuda_v13",
    ),
    check=_check,
    bad=examples(
        'gpu: V100\npython: "3.12"\npackages: [«"jax[cuda13]"»]\n',
        'gpu: V100\ncuda: "12.8"\npython: "3.11"\npackages: [jax, «{name: jax-cuda13-plugin}»]\n',
        'gpu: K80\npython: "3.12"\npackages: [«"jax[cuda12]"»]\n',
        'gpu: B200\npython: "3.12"\npackages: [«"jax[cuda12]==0.5.*"»]\n',
        example(
            'gpu: V100\npython: "3.12"\npackages: [«"jax[cuda13]"»]\n',
            ResolvedSet({"jax": "0.11.2", "jax-cuda13-plugin": "0.11.2"}, "3.12"),
        ),
    ),
    good=examples(
        'gpu: V100\npython: "3.12"\npackages: ["jax[cuda12]"]\n',
        'gpu: B200\npython: "3.12"\npackages: ["jax[cuda12]==0.6.*"]\n',
        'gpu: T4\npython: "3.12"\npackages: ["jax[cuda13]"]\n',
        'gpu: none\npython: "3.12"\npackages: [jax]\n',
    ),
)
