"""An instance with a GPU has no maximum lifetime.

## What it does

Finds Workbench targets with a GPU and without `max_lifetime`.

## Why

A forgotten instance costs money until somebody notices. The idle shutdown does not stop an
instance whose kernel is busy, or whose notebook was left open.

## How to fix

Set `max_lifetime` to the longest time the work may take.
"""

from __future__ import annotations

from provision.diagnostics import Insert, RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.edits import unsafe_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if fields.max_lifetime is not None or not target.gpu_settings.is_nvidia:
            continue
        yield RULE.diagnostic(
            f"`max_lifetime` is not set for target `{target.name}`, which has a GPU "
            f"({target.gpu_settings.gpu})",
            target.route,
            at=RoutePart.KEY,
            why="A forgotten instance costs money until somebody notices.",
            help="set `max_lifetime`, for example `max_lifetime: 8h`",
            fix=unsafe_fix("set `max_lifetime: 8h`", Insert(target.route, "max_lifetime", "8h")),
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
