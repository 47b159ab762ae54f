"""A package's CUDA code does not run on the GPU.

## What it does

Compares the compute capability of each GPU with what packages need: flash-attn needs Ampere (8.0;
Blackwell from 2.7.3), flash-attn-3 only runs on Hopper, bitsandbytes needs 6.0 (7.0 and 7.5 for its
binaries for CUDA 12.8 and 13), vllm 7.0.

## Why

The package installs and imports. Its first use fails with "FlashAttention only supports Ampere GPUs
or newer" or "no kernel image is available".

## How to fix

Use a newer GPU, or remove the package for that target.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import Card, cuda_of
from provision.facts.schema_packages import CapabilityFloor
from provision.facts.versions import (
    next_version,
    require_version,
)
from provision.kinds.base import TargetFacts
from provision.rules.package_requirements import RequestedPackage, origin_route, requested_packages
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)
from provision.rules.source_builds import major_version

ALWAYS = ("kernels", "older kernels", "any", "cutlass")
"""The main uses of a package: without them the package is useless."""


def _check(context: LintContext) -> Findings:
    if not any(target.card for target in context.targets):
        return
    packages = requested_packages(context)
    for route, target in context.targets_by_gpu.items():
        if target.card is None:
            continue
        worst: dict[str, CapabilityFloor] = {}
        for floor in context.facts.capability_floors:
            package = packages.get(floor.package)
            if package is None or _is_supported(target.card, floor):
                continue
            known = worst.get(package.name)
            is_worse = known is None or require_version(floor.cc_min) > require_version(
                known.cc_min
            )
            if is_worse and _applies(context, floor, package, target):
                worst[package.name] = floor
        for name, floor in worst.items():
            needed = f"{floor.cc_min} or higher"
            if floor.cc_max == floor.cc_min:
                needed = f"exactly {floor.cc_min}"
            elif floor.cc_max:
                needed = f"{floor.cc_min} to {floor.cc_max}"
            on = f" in its build for {floor.use}" if floor.use.startswith("CUDA ") else ""
            newer = [
                card.name
                for card in context.facts.cards
                if card.status == "offered" and _is_supported(card, floor)
            ]
            advice = f"a GPU such as {' or '.join(newer[:2])}" if newer else "a newer GPU"
            yield RULE.diagnostic(
                f"{packages[name].description} needs compute capability {needed}{on}, but "
                f"{target.gpu_settings.gpu.type} has {target.card.cc}",
                origin_route(context, packages[name], route),
                evidence=floor.evidence,
                why="The package can be installed and imported, but fails when it is used"
                + (f" ({floor.what})." if floor.what else "."),
                help=f"use {advice}, or remove {name}",
                related=related_at(route, "GPU requested here"),
            )


def _applies(
    context: LintContext, floor: CapabilityFloor, package: RequestedPackage, target: TargetFacts
) -> bool:
    flavour = context.flavour_of(target.gpu_settings) or "cpu"
    if floor.use.startswith("CUDA ") and flavour != "cpu":
        needed = floor.use.removeprefix("CUDA ")
        cuda = cuda_of(flavour)
        return major_version(cuda) == major_version(needed) and (
            "." not in needed or require_version(cuda) >= require_version(needed)
        )
    is_newer = floor.last and package.may_be(next_version(floor.last))
    return floor.use in ALWAYS and not is_newer


def _is_supported(card: Card, floor: CapabilityFloor) -> bool:
    return require_version(floor.cc_min) <= require_version(card.cc) and (
        not floor.cc_max or require_version(card.cc).major <= require_version(floor.cc_max).major
    )


RULE = Rule(
    id="PKG017",
    name="package-beyond-card",
    severity=Severity.ERROR,
    sources=(
        "Dao-AILab/flash-attention README.md",
        "bitsandbytes-foundation/bitsandbytes docs/source/installation.mdx",
        "Dao-AILab/flash-attention#762",
        "huggingface/transformers#28188",
    ),
    check=_check,
    bad=examples(
        example(
            'gpu: T4\npython: "3.11"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            "torch==2.8.0, «{name: flash-attn, build: true}»]\n",
            other_ids=("CUD011",),
        ),
        'gpu: P100\npython: "3.11"\npackages: [«vllm==0.19.1»]\n',
        Example(
            'gpu: RTX-5090\npython: "3.11"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            'torch, {name: flash-attn, version: "<2.7", build: true}]\n',
            '{name: flash-attn, version: "<2.7", build: true}',
            other_ids=("CUD011",),
        ),
    ),
    good=(
        *examples(
            'gpu: L4\npython: "3.11"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
            "torch==2.8.0, {name: flash-attn, build: true}]\n",
            'gpu: V100\npython: "3.11"\npackages: [vllm==0.19.1]\n',
            'gpu: T4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
        ),
        Example(
            'gpu: T4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
            resolved=ResolvedSet({"torch": "2.13.0", "bitsandbytes": "0.49.2"}, "3.11", "cu130"),
        ),
    ),
)
