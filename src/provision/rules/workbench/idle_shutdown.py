"""The idle shutdown is out of range, or stops running work.

## What it does

Compares `idle_shutdown` with the range that Workbench accepts, 10 to 1440 minutes, and reports work
that is started by torchrun or accelerate, outside a notebook.

## Why

Only Jupyter kernel activity counts as use; CPU or GPU load does not. A run in a terminal is
therefore stopped in the middle when nobody is using a notebook.

## How to fix

Make `idle_shutdown` longer than the longest run, or remove it and limit the cost with
`max_lifetime`.
"""

from __future__ import annotations

import math

from provision.diagnostics import Severity
from provision.field_types import parse_duration
from provision.kinds import WorkbenchTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

MULTI_PROCESS_LAUNCHERS = ("torchrun", "accelerate")
"""Launchers that are started in a terminal, so that Jupyter does not count their activity."""


def _check(context: LintContext) -> Findings:
    least = context.facts.limits["shortest idle"].value
    most = context.facts.limits["longest idle"].value
    launcher = context.spec.training.launcher
    for target, fields in context.targets_of(WorkbenchTarget):
        idle = fields.idle_shutdown
        if idle is None:
            continue
        seconds = parse_duration(idle)
        route = target.route_to("idle_shutdown")
        # The instance may end by its lifetime before it is idle for that long.
        lifetime = parse_duration(fields.max_lifetime) if fields.max_lifetime else math.inf
        if not least * 60 <= seconds <= most * 60:
            near = f"{least:g}m" if seconds < least * 60 else f"{most / 60:g}h"
            fix = set_field_fix(context, route, near)
            yield RULE.diagnostic(
                f"`idle_shutdown: {idle}` is outside the range of {least:g} to {most:g} minutes",
                route,
                why="Workbench rejects the value.",
                help=fix.title,
                fix=fix,
            )
        elif launcher in MULTI_PROCESS_LAUNCHERS and lifetime > seconds:
            yield RULE.diagnostic(
                f"{launcher} runs outside the notebook, and the instance stops after {idle} "
                "without a busy kernel",
                route,
                severity=Severity.INFO,
                why="Only Jupyter kernel activity counts as use; CPU or GPU load does not.",
                help=(
                    "set `idle_shutdown` to a duration longer than the longest run, or remove "
                    "it and limit the cost with `max_lifetime`"
                ),
                related=related_at(("training", "launcher"), "launcher set here"),
            )


RULE = Rule(
    id="GCP009",
    name="idle-shutdown",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, idle shutdown and manage metadata",),
    check=_check,
    reads_settings=True,
    bad=examples(
        example_spec("gpu: L4\nverify: {timeout: 4m}\n", idle_shutdown="«5m»"),
        example_spec(idle_shutdown="«2d»"),
        example_spec("gpu: L4\ntraining: {launcher: torchrun}\n", idle_shutdown="«60m»"),
    ),
    good=examples(
        example_spec(idle_shutdown="10m"),
        example_spec(idle_shutdown="1440m"),
        example_spec("gpu: L4\ntraining: {launcher: torchrun}\n", idle_shutdown="8h"),
    ),
)
