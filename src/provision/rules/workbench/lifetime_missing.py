"""Nothing ends this instance and its GPU.

## What it does

Finds Workbench targets with a GPU and without `max_lifetime`.

## Why

An instance that is forgotten costs money until somebody sees it. The idle shutdown does not end one
whose kernel is busy, or whose notebook was left open.

## How to fix

Set `max_lifetime` to the longest time that the work may take.
"""

from __future__ import annotations

from provision.diagnostics import Insert, RoutePart, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        if instance.target.max_lifetime is not None or not instance.facts.gpu_settings.is_nvidia:
            continue
        yield RULE.diagnostic(
            f"nothing ends {instance.facts.name} and its {instance.facts.gpu_settings.gpu}: "
            "no max_lifetime",
            instance.facts.route,
            at=RoutePart.KEY,
            why="An instance that is forgotten costs money until somebody sees it.",
            help="write max_lifetime, as in max_lifetime: 8h",
            fix=unsafe_fix(
                "write max_lifetime: 8h", Insert(instance.facts.route, "max_lifetime", "8h")
            ),
        )


RULE = Rule(
    id="GCP011",
    name="lifetime-missing",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, idle shutdown (kernel activity only)",),
    check=_check,
    bad=(
        Example(example_spec(max_lifetime=None), "wb"),
        Example(example_spec(max_lifetime=None, idle_shutdown="3h"), "wb"),
    ),
    good=examples(
        example_spec(max_lifetime="8h"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", max_lifetime=None),
    ),
)
