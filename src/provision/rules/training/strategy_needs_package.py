"""A strategy needs a package, or a newer torch.

## What it does

For a ZeRO strategy, looks for the deepspeed package, and for FSDP, for a torch that supports it
(2.2; accelerate from 0.25 on refuses it below 2.1).

## Why

Training ends when it starts: "DeepSpeed is not installed", or "FSDP requires PyTorch >= 2.1.0".

## How to fix

Add `{name: deepspeed, build: true}` (it comes as source alone), or raise torch.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_requirements import origin_route, requested_package, set_version_fix
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)

STRATEGY = ("training", "strategy")


def _check(context: LintContext) -> Findings:
    strategy = context.spec.training.strategy
    if strategy.startswith("deepspeed") and not _has_deepspeed(context):
        yield RULE.diagnostic(
            f"strategy: {strategy} needs the package deepspeed, and it is not "
            f"{context.package_list}",
            STRATEGY,
            why="Training ends when it starts, as DeepSpeed is not installed.",
            help="add {name: deepspeed, build: true} to the packages",
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
        why = f"accelerate refuses it below {floor.refused_below}."
        if package.may_be(floor.refused_below):
            severity = Severity.WARNING
            why = f"It is refused below {floor.refused_below} only, but not supported."
        yield RULE.diagnostic(
            f"strategy: {strategy} needs {floor.package}>={floor.version}, and "
            f"{package.description} is {context.chosen}",
            origin_route(context, package, STRATEGY),
            severity=severity,
            why=why,
            help=f"ask for {floor.package}>={floor.version}, or write strategy: ddp",
            related=related_at(STRATEGY, "strategy asked for here"),
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
    bad=(
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch, accelerate]\ntraining: '
            "{strategy: deepspeed-zero3}\n",
            "deepspeed-zero3",
            other_ids=("TRN019",),
        ),
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch==2.0.1, accelerate, '
            '"numpy<2"]\ntraining: {strategy: fsdp}\n',
            "torch==2.0.1",
        ),
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch==2.1.2, accelerate, '
            '"numpy<2"]\ntraining: {strategy: fsdp}\n',
            "torch==2.1.2",
        ),
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: [torch, accelerate]\ntraining: '
            "{strategy: deepspeed-zero2}\n",
            "deepspeed-zero2",
            ResolvedSet({"torch": "2.13.0", "accelerate": "1.15.0"}, "3.11", "cu130"),
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: [torch, {name: deepspeed, build: '
        "true}]\ntraining: {strategy: deepspeed-zero3}\n",
        'gpu: L4:2\npython: "3.11"\npackages: [torch==2.2.0, accelerate, '
        '"numpy<2"]\ntraining: {strategy: fsdp}\n',
        'gpu: L4:2\npython: "3.11"\npackages: [torch==2.0.1, "numpy<2"]\ntraining: '
        "{strategy: ddp}\n",
        'gpu: L4:2\npython: "3.10"\npackages: [torch==2.0.1, accelerate==0.21.0, '
        '"numpy<2"]\ntraining: {strategy: fsdp}\n',
    ),
)
