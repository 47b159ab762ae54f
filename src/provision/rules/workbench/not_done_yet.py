"""A target requests what this version does not do on an instance.

## What it does

Finds `cuda_toolkit` in a spec with a Workbench target (a warning if there are targets of other
kinds too), and images that are containers.

## Why

The spec language has both, and this version does not implement them: `plan` refuses the target, so
that no field is without effect.

## How to fix

Leave `cuda_toolkit` out: Workbench images include a toolkit. Name an image of a virtual machine.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import EXAMPLE_IMAGE, example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    softer = None
    if any(not isinstance(target.target, WorkbenchTarget) for target in context.targets):
        softer = Severity.WARNING
    for instance in workbench_instances(context):
        if context.spec.cuda_toolkit is not None:
            yield RULE.diagnostic(
                f"cuda_toolkit: {context.spec.cuda_toolkit} is not installed on an instance "
                "by this version",
                ("cuda_toolkit",),
                severity=softer,
                why="plan refuses what would be without effect.",
                help="leave it out: the image brings its own toolkit",
                related=related_at(instance.route("kind"), "kind of place"),
            )
        if (image := instance.target.image) is not None and ("/" in image or ":" in image):
            yield RULE.diagnostic(
                "the image is a container, and this version makes instances from images of "
                "virtual machines",
                instance.route("image"),
                why="plan refuses what would be without effect.",
                help=f"name an image of a virtual machine, as in {EXAMPLE_IMAGE}",
            )


RULE = Rule(
    id="GCP024",
    name="not-done-yet",
    severity=Severity.ERROR,
    sources=("the spec language: what is modelled and not made is refused",),
    check=_check,
    bad=(
        Example(example_spec('gpu: L4\ncuda_toolkit: "13.0"\n'), '"13.0"', other_ids=("CUD012",)),
        Example(
            example_spec(
                image="us-docker.pkg.dev/workbench-images/gcr.io/workbench-container-2606"
            ),
            "us-docker.pkg.dev/workbench-images/gcr.io/workbench-container-2606",
            other_ids=("IMG001",),
        ),
    ),
    good=examples(example_spec()),
)
