"""A strategy needs a package or a newer torch.

## What it does

For a ZeRO strategy, looks for the deepspeed package, and for FSDP, for a torch that supports it
(2.2; accelerate from 0.25 on refuses FSDP below 2.1).

## Why

Training fails at startup: "DeepSpeed is not installed", or "FSDP requires PyTorch >= 2.1.0".

## How to fix

Add `{name: deepspeed, build: true}` (it is published only as source), or use a newer torch.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_requirements import origin_route, requested_package, set_version_fix
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)

STRATEGY = ("training", "strategy")


def _check(context: LintContext) -> Findings:
    strategy = context.spec.training.strategy
    if strategy.startswith("deepspeed") and not _has_deepspeed(context):
        yield RULE.diagnostic(
            f"`strategy: {strategy}` needs deepspeed, which is not {context.package_list}",
            STRATEGY,
            why="Training fails at startup, because DeepSpeed is not installed.",
            help="add `{name: deepspeed, build: true}` to `packages`",
            fix=unsafe_fix(
                "add deepspeed", Insert(("packages",), None, "{name: deepspeed, build: true}")
            ),
        )
    accelerate = requested_package(context, "accelerate")
    for floor in context.facts.strategy_floors:
        package = requested_package(context, floor.package)
        if floor.strategy != strategy or package is None or package.may_be(floor.version):
            continue
        if accelerate is not None and not accelerate.may_be(floor.since):
            continue  # an older accelerate takes an older torch
        severity = None
        why = f"accelerate refuses releases below {floor.refused_below}."
        if package.may_be(floor.refused_below):
            severity = Severity.WARNING
            why = f"accelerate accepts {floor.refused_below}, but does not support it."
        yield RULE.diagnostic(
            f"`strategy: {strategy}` needs {floor.package}>={floor.version}, but "
            f"{package.description} is {context.chosen}",
            origin_route(context, package, STRATEGY),
            severity=severity,
            why=why,
            help=f"use {floor.package}>={floor.version}, or set `strategy: ddp`",
            related=related_at(STRATEGY, "strategy set here"),
            fix=set_version_fix(context, package, f">={floor.version}"),
        )


def _has_deepspeed(context: LintContext) -> bool:
    if context.resolved is not None or "deepspeed" in context.package_names:
        return "deepspeed" in context.package_names
    extras = (extra for package in context.spec.packages for extra in package.extras)
    return any("deepspeed" in extra.lower() for extra in extras)


RULE = Rule(
    id="TRN009",
    name="strategy-needs-package",
    severity=Severity.ERROR,
    sources=(
        "accelerate/utils/constants.py and accelerator.py in the wheel of accelerate 1.15.0",
        "integrations/deepspeed.py of transformers 5.23.0",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch, accelerate]\n'
            "training: {strategy: «deepspeed-zero3»}\n",
            other_ids=("TRN019",),
        ),
        'gpu: L4:2\npython: "3.11"\npackages: [«torch==2.0.1», accelerate, "numpy<2"]\n'
        "training: {strategy: fsdp}\n",
        'gpu: L4:2\npython: "3.11"\npackages: [«torch==2.1.2», accelerate, "numpy<2"]\n'
        "training: {strategy: fsdp}\n",
        example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch, accelerate]\n'
            "training: {strategy: «deepspeed-zero2»}\n",
            ResolvedSet({"torch": "2.13.0", "accelerate": "1.15.0"}, "3.11", "cu130"),
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: [torch, {name: deepspeed, build: true}]\n'
        "training: {strategy: deepspeed-zero3}\n",
        'gpu: L4:2\npython: "3.11"\npackages: [torch==2.2.0, accelerate, "numpy<2"]\n'
        "training: {strategy: fsdp}\n",
        'gpu: L4:2\npython: "3.11"\npackages: [torch==2.0.1, "numpy<2"]\n'
        "training: {strategy: ddp}\n",
        'gpu: L4:2\npython: "3.10"\npackages: [torch==2.0.1, accelerate==0.21.0, "numpy<2"]\n'
        "training: {strategy: fsdp}\n",
    ),
)
