"""An instance has a GPU, and no torch to check it with.

## What it does

At Workbench targets with a card, looks for torch: among the packages, among what is known to bring
it, and in the resolved set. In a spec that is not resolved yet this is a warning, as a package that
is not known may bring it.

## Why

The driver reports the card, its memory and its health. Only a program on the card can show that it
computes correctly, and the verification computes with torch. Without torch nothing would show that
the card works, so `plan` refuses.

## How to fix

Add torch to `packages`, or write `gpu: none`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import example_spec
from provision.rules.package_requirements import (
    declared_specifier,
    is_known_dependency,
    release_rows,
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
from provision.rules.workbench_instances import workbench_instances

_IN_CONDA = ("pytorch", "pytorch-gpu")


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        device = instance.facts.gpu_settings
        if instance.facts.card is None or _has_torch(context):
            continue
        sure = context.resolved is not None or not (
            context.spec.packages or context.spec.conda_packages
        )
        yield RULE.diagnostic(
            f"{instance.facts.name} has gpu: {device.gpu}, and torch is "
            f"{'not among the packages' if sure else 'not listed'}",
            device.gpu_route,
            severity=None if sure else Severity.WARNING,
            why="The driver names the card; that it computes is shown by torch only, and plan "
            "refuses a card that nothing computes on.",
            help="add torch to packages, or write gpu: none",
            related=related_at(instance.route("kind"), "kind of place"),
        )


def _has_torch(context: LintContext) -> bool:
    if context.resolved is not None:
        return "torch" in context.resolved.versions
    if is_known_dependency(context, "torch") or is_known_dependency(context, "accelerate"):
        return True
    if any(package.name in _IN_CONDA for package in context.spec.conda_packages):
        return True
    for package in context.spec.packages:
        if package.key in context.facts.torch_family or "torch" in package.extras:
            return True
        for row in release_rows(context.facts, package.key)[-1:]:
            if declared_specifier(row, "torch", package.extras) is not None:
                return True
    return False


RULE = Rule(
    id="GCP022",
    name="gpu-without-torch",
    severity=Severity.ERROR,
    sources=("provision's own verification: the checks of what a card computes run through torch",),
    check=_check,
    bad=(
        Example(example_spec().replace("packages: [torch]", "packages: []"), "L4"),
        Example(example_spec().replace("packages: [torch]", "packages: [numpy]"), "L4"),
        Example(
            example_spec().replace("packages: [torch]", "packages: [numpy]"),
            "L4",
            ResolvedSet({"numpy": "2.4.6"}, "3.12"),
        ),
    ),
    good=(
        *examples(
            example_spec().replace("packages: [torch]", "packages: [torchvision]"),
            example_spec().replace("packages: [torch]", 'packages: ["transformers[torch]"]'),
            example_spec("gpu: none\n", machine_type="n1-standard-4").replace(
                "packages: [torch]", "packages: [numpy]"
            ),
        ),
        Example(
            example_spec().replace("packages: [torch]", "packages: [our-own]"),
            resolved=ResolvedSet({"torch": "2.13.0", "our-own": "1.0"}, "3.12", "cu130"),
        ),
    ),
)
