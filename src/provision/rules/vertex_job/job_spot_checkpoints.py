"""A job on Spot machines has no folder for checkpoints.

## What it does

Finds `capacity: spot` without `paths.output` or `paths.checkpoints`.

## Why

A Spot machine can be reclaimed at any time. The service then restarts the job, which begins from
nothing if there is no checkpoint outside of the machine.

## How to fix

Add `paths: {output: /gcs/BUCKET/FOLDER}`, and resume from the checkpoint that you find there.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples

_NAMES = ("output", "checkpoints")


def _check(context: LintContext) -> Findings:
    for target, job in context.targets_of(VertexJobTarget):
        paths = {**context.spec.paths, **job.paths}
        if job.capacity.strategy != "spot" or any(name in paths for name in _NAMES):
            continue
        yield RULE.diagnostic(
            "`capacity: spot` is declared without a folder for checkpoints",
            target.route_to("capacity"),
            why="A reclaimed machine loses what is on its disk.",
            help="add `paths: {output: /gcs/BUCKET/FOLDER}` to the target",
        )


RULE = Rule(
    id="GCP034",
    name="job-spot-checkpoints",
    severity=Severity.WARNING,
    sources=("Vertex AI documentation, Use Spot VMs with training",),
    check=_check,
    bad=examples(example_job("", capacity="«spot»")),
    good=examples(
        example_job("", capacity="spot", paths="{output: /gcs/my-bucket/out}"),
        example_job(""),
    ),
)
