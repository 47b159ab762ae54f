"""A job that goes on after a lost machine has no folder for checkpoints.

## What it does

Finds `capacity: spot` or `restarts` without `paths.output` or `paths.checkpoints`.

## Why

A Spot machine can be reclaimed at any time. With `restarts`, the program of `run` then starts again
on another machine, where it begins from nothing if there is no checkpoint outside of the machine.

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
        field = "restarts" if job.restarts else "capacity"
        if any(name in paths for name in _NAMES) or (
            job.capacity.strategy != "spot" and not job.restarts
        ):
            continue
        declared = f"restarts: {job.restarts}" if job.restarts else "capacity: spot"
        yield RULE.diagnostic(
            f"`{declared}` is declared without a folder for checkpoints",
            target.route_to(field),
            why="If a machine is lost, the files on its disk are lost too.",
            help="add `paths: {output: /gcs/BUCKET/FOLDER}` to the target",
        )


RULE = Rule(
    id="GCP034",
    name="job-spot-checkpoints",
    severity=Severity.WARNING,
    sources=("Vertex AI documentation, Use Spot VMs with training",),
    check=_check,
    bad=examples(
        example_job("", capacity="«spot»"),
        example_job("", restarts="«3»"),
    ),
    good=examples(
        example_job("", capacity="spot", paths="{output: /gcs/my-bucket/out}"),
        example_job(""),
    ),
)
