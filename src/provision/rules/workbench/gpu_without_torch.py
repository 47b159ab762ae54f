"""An instance has a GPU, but no package to test it with.

## What it does

On Workbench targets with a GPU, looks for torch, or the jax or TensorFlow of `training.framework`,
among the packages, among their known dependencies, and in the resolved set. In a spec that is not
resolved yet this is a warning, as an unknown package may depend on one of them.

## Why

The driver reports the GPU, its memory and its health. Only a program that runs on the GPU can show
that it computes correctly, and the verification computes with torch, jax or TensorFlow. Without one
of them nothing would show that the GPU works, so `plan` refuses.

## How to fix

Add the framework you train with to `packages`, or set `gpu: none`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
)
from provision.rules.torch_presence import can_test_gpu
from provision.rules.workbench_instances import related_kind


def _check(context: LintContext) -> Findings:
    for target, _ in context.targets_of(WorkbenchTarget):
        device = target.gpu_settings
        if target.card is None or can_test_gpu(context):
            continue
        # An unknown package may depend on torch: only a resolved set shows that.
        is_certain = context.resolved is not None or not (
            context.spec.packages or context.spec.conda_packages
        )
        why = "Only a computation on the GPU proves that the GPU works, so "
        if is_certain:
            why += "`lock` and `plan` refuse a GPU that cannot be tested."
        else:
            why += (
                "`lock` and `plan` refuse a GPU that cannot be tested. This is an error unless a "
                "listed package depends on one of them, which the lock shows."
            )
        yield RULE.diagnostic(
            f"target `{target.name}` has `gpu: {device.gpu}`, but none of torch, jax or "
            f"TensorFlow is {context.package_list}",
            device.gpu_route,
            severity=None if is_certain else Severity.WARNING,
            why=why,
            help="add the framework you train with to `packages`, or set `gpu: none`",
            related=related_kind(target),
        )


RULE = Rule(
    id="GCP022",
    name="gpu-without-torch",
    severity=Severity.ERROR,
    sources=("provision's own verification: it tests a GPU with torch, jax or TensorFlow",),
    check=_check,
    reads_settings=True,
    bad=(
        Example(example_spec(packages="[]"), "L4"),
        Example(example_spec(packages="[numpy]"), "L4"),
        Example(
            example_spec(packages="[numpy]"),
            "L4",
            ResolvedSet({"numpy": "2.4.6"}, "3.12"),
        ),
    ),
    good=examples(
        example_spec(packages="[torchvision]"),
        example_spec(packages='["jax[cuda13]"]'),
        example_spec(packages='["transformers[torch]"]'),
        example_spec("gpu: none\n", "[numpy]", machine_type="n1-standard-4"),
        Example(
            example_spec(packages="[our-own]"),
            resolved=ResolvedSet({"torch": "2.13.0", "our-own": "1.0"}, "3.12", "cu130"),
        ),
    ),
)
