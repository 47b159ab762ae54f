"""This version does not support a field on Workbench targets.

## What it does

Finds `cuda_toolkit` in a spec with a Workbench target (a warning if there are targets of other
kinds too), and images that are containers.

## Why

The spec language has both, but this version does not implement them: `plan` refuses the target, so
that every field has an effect.

## How to fix

Remove `cuda_toolkit`: Workbench images include a toolkit. Use a virtual machine image.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import EXAMPLE_IMAGE, example_spec
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.workbench_instances import related_kind, shared_field_severity

_WHY = "`plan` refuses fields that would have no effect."


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if context.spec.cuda_toolkit is not None:
            yield RULE.diagnostic(
                "this version of provision does not support "
                f"`cuda_toolkit: {context.spec.cuda_toolkit}` on an instance",
                ("cuda_toolkit",),
                severity=shared_field_severity(context),
                why=_WHY,
                help="remove it; the image already includes a toolkit",
                related=related_kind(target),
            )
        if (image := fields.image) is not None and ("/" in image or ":" in image):
            yield RULE.diagnostic(
                "this version of provision does not support container images, only virtual "
                "machine images",
                target.route_to("image"),
                why=_WHY,
                help=f"use a virtual machine image, such as {EXAMPLE_IMAGE}",
            )


RULE = Rule(
    id="GCP024",
    name="not-done-yet",
    severity=Severity.ERROR,
    sources=("the spec language: fields without effect are refused",),
    check=_check,
    bad=examples(
        example(example_spec('gpu: L4\ncuda_toolkit: «"13.0"»\n'), other_ids=("CUD012",)),
        example(
            example_spec(
                image="«us-docker.pkg.dev/workbench-images/gcr.io/workbench-container-2606»"
            ),
            other_ids=("IMG001",),
        ),
    ),
    good=examples(example_spec()),
)
