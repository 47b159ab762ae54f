"""The idle shutdown is outside what Workbench takes, or stops work that is under way.

## What it does

Compares `idle_shutdown` with the range that Workbench takes, 10 to 1440 minutes, and reports work
that is started by torchrun or accelerate, outside a notebook.

## Why

Only activity of Jupyter's kernels counts as use. Load on CPU or GPU does not: a run in a terminal
is stopped in the middle when nobody touches a notebook.

## How to fix

Make `idle_shutdown` longer than the longest run, or leave it out and bound the cost by
`max_lifetime`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.field_types import parse_duration
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import WorkbenchTargetFacts, workbench_instances

MULTI_PROCESS_LAUNCHERS = ("torchrun", "accelerate")
"""Launchers that are started in a terminal, so that Jupyter does not count their activity."""


def _check(context: LintContext) -> Findings:
    least = context.facts.limits["shortest idle"]
    most = context.facts.limits["longest idle"]
    for instance in workbench_instances(context):
        if instance.target.idle_shutdown is None:
            continue
        seconds = parse_duration(instance.target.idle_shutdown)
        if not least.value * 60 <= seconds <= most.value * 60:
            near = f"{least.value:g}m" if seconds < least.value * 60 else f"{most.value / 60:g}h"
            yield RULE.diagnostic(
                f"idle_shutdown: {instance.target.idle_shutdown} is outside "
                f"{least.value:g} to {most.value:g} minutes",
                instance.route("idle_shutdown"),
                why="Workbench does not take it.",
                help=f"write {near}",
                fix=set_field_fix(context, instance.route("idle_shutdown"), near),
            )
        elif context.spec.training.launcher in MULTI_PROCESS_LAUNCHERS and not _ends_before_idling(
            instance, seconds
        ):
            yield RULE.diagnostic(
                f"{context.spec.training.launcher} runs outside the notebook, and the instance "
                f"stops after {instance.target.idle_shutdown} without a busy kernel",
                instance.route("idle_shutdown"),
                severity=Severity.INFO,
                why="Load on CPU or GPU does not count as use, only activity of Jupyter's kernels "
                "does.",
                help="make it longer than the longest run, or leave it out and bound the cost by "
                "max_lifetime",
                related=related_at(("training", "launcher"), "started here"),
            )


def _ends_before_idling(instance: WorkbenchTargetFacts, seconds: int) -> bool:
    """Return whether the instance ends by its lifetime before it can end by idling."""
    lifetime = instance.target.max_lifetime
    return lifetime is not None and parse_duration(lifetime) <= seconds


RULE = Rule(
    id="GCP009",
    name="idle-shutdown",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, idle shutdown and manage metadata",),
    check=_check,
    bad=(
        Example(example_spec("gpu: L4\nverify: {timeout: 4m}\n", idle_shutdown="5m"), "5m"),
        Example(example_spec(idle_shutdown="2d"), "2d"),
        Example(
            example_spec("gpu: L4\ntraining: {launcher: torchrun}\n", idle_shutdown="60m"), "60m"
        ),
    ),
    good=examples(
        example_spec(idle_shutdown="10m"),
        example_spec(idle_shutdown="1440m"),
        example_spec("gpu: L4\ntraining: {launcher: torchrun}\n", idle_shutdown="8h"),
    ),
)
