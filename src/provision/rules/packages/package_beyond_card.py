"""A package's CUDA code does not run on the card.

## What it does

Compares the compute capability of each card with what packages need: flash-attn Ampere (8.0;
Blackwell from 2.7.3), flash-attn-3 Hopper alone, bitsandbytes 6.0 (7.0 and 7.5 for its binaries for
CUDA 12.8 and 13), vllm 7.0, the CUDA 13 plugin of jax 7.5.

## Why

Installing and importing work; the first use ends in "FlashAttention only supports Ampere GPUs or
newer" or "no kernel image is available".

## How to fix

Take a newer card, or leave the package out for that target.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Severity
from provision.facts import Card, cuda_of
from provision.facts.schema_packages import CapabilityFloor
from provision.facts.versions import (
    has_version_in_range,
    next_version,
    parse_specifiers,
    require_version,
)
from provision.kinds.base import TargetFacts
from provision.rules.package_lines import find_line
from provision.rules.package_requirements import RequestedPackage, origin_route, requested_packages
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)

ALWAYS = ("kernels", "older kernels", "any", "cutlass")
"""Uses of a package without which it is of no use."""


def _check(context: LintContext) -> Findings:
    cards = {
        target.gpu_settings.gpu_route: (target, target.card)
        for target in context.targets
        if target.card is not None
    }
    names = {floor.package for floor in context.facts.capability_floors} if cards else set()
    if cards:
        packages = {
            name: package for name, package in requested_packages(context).items() if name in names
        }
    else:
        packages = {}
    for target, card in cards.values():
        worst: dict[str, CapabilityFloor] = {}
        for floor in context.facts.capability_floors:
            if (
                floor.package in packages
                and _applies(context, floor, packages[floor.package], target)
                and not _is_supported(card, floor)
            ):
                worst[floor.package] = max(
                    worst.get(floor.package, floor),
                    floor,
                    key=lambda package: require_version(package.cc_min),
                )
        for name, floor in worst.items():
            yield _finding(context, packages[name], floor, target, card)


def _applies(
    context: LintContext, floor: CapabilityFloor, package: RequestedPackage, target: TargetFacts
) -> bool:
    flavour = (context.resolved.flavour if context.resolved else target.gpu_settings.flavour) or ""
    if floor.use.startswith("CUDA ") and flavour.startswith("cu"):
        wanted = floor.use.removeprefix("CUDA ")
        cuda = cuda_of(flavour)
        same_major = cuda.partition(".")[0] == wanted.partition(".")[0]
        return same_major and (
            "." not in wanted or require_version(cuda) >= require_version(wanted)
        )
    if floor.use == "cuda13":
        return (package.package is not None and floor.use in package.package.extras) or find_line(
            context, "jax-cuda13-plugin"
        ) is not None
    newer = floor.last and (
        not package.specifiers
        or has_version_in_range(parse_specifiers(package.specifiers), next_version(floor.last))
    )
    return floor.use in ALWAYS and not newer


def _is_supported(card: Card, floor: CapabilityFloor) -> bool:
    return require_version(floor.cc_min) <= require_version(card.cc) and (
        not floor.cc_max or require_version(card.cc).major <= require_version(floor.cc_max).major
    )


def _finding(
    context: LintContext,
    package: RequestedPackage,
    floor: CapabilityFloor,
    target: TargetFacts,
    card: Card,
) -> Diagnostic:
    most = f"{floor.cc_min} to {floor.cc_max}" if floor.cc_max else f"{floor.cc_min} or more"
    wanted = f"{floor.cc_min} alone" if floor.cc_max == floor.cc_min else most
    on = f" in its build for {floor.use}" if floor.use.startswith("CUDA ") else ""
    return RULE.diagnostic(
        f"{package.description} needs compute capability {wanted}{on}, and "
        f"{target.gpu_settings.gpu.type} has {card.cc}",
        origin_route(context, package, target.gpu_settings.gpu_route),
        evidence=floor.evidence,
        why="It installs and imports, and fails when it is used"
        + (f" ({floor.what})." if floor.what else "."),
        help=f"take {_newer_card(context, floor)}, or leave {package.name} out",
        related=related_at(target.gpu_settings.gpu_route, "card asked for here"),
    )


def _newer_card(context: LintContext, floor: CapabilityFloor) -> str:
    names = [
        card.name
        for card in context.facts.cards
        if _is_supported(card, floor) and card.status == "offered"
    ]
    if names:
        return f"a card such as {', '.join(names[:3])}"
    return "a newer card"


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
    bad=(
        Example(
            'gpu: T4\npython: "3.11"\npackages: [torch==2.8.0, {name: flash-attn, build: true}]\n',
            "{name: flash-attn, build: true}",
            other_ids=("CUD011",),
        ),
        Example(
            'gpu: V100\ncuda: "12.8"\npython: "3.11"\npackages: [jax, {name: jax-cuda13-plugin}]\n',
            "jax",
        ),
        Example('gpu: P100\npython: "3.11"\npackages: [vllm==0.19.1]\n', "vllm==0.19.1"),
        Example(
            'gpu: RTX-5090\npython: "3.11"\npackages: [torch, {name: flash-attn, version: '
            '"<2.7", build: true}]\n',
            '{name: flash-attn, version: "<2.7", build: true}',
            other_ids=("CUD011",),
        ),
    ),
    good=(
        *examples(
            'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, {name: flash-attn, build: true}]\n',
            'gpu: V100\npython: "3.11"\npackages: [vllm==0.19.1]\n',
            'gpu: T4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
        ),
        Example(
            'gpu: T4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
            resolved=ResolvedSet({"torch": "2.13.0", "bitsandbytes": "0.49.2"}, "3.11", "cu130"),
        ),
    ),
)
