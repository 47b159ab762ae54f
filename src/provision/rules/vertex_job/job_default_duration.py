"""Several machines are requested without a limit on their time.

## What it does

Finds `replicas` above 1 without `max_duration`.

## Why

The default of `max_duration` ends every job of the target, that of a verification and that of
`run`. A training on several machines usually needs longer, and a job that hangs costs money on all
machines until then.

## How to fix

Set `max_duration` to a little more than the training takes.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    for target, job in context.targets_of(VertexJobTarget):
        if job.replicas > 1 and "max_duration" not in job.model_fields_set:
            yield RULE.diagnostic(
                f"{job.replicas} machines are requested without `max_duration`, so a job ends "
                f"after {job.max_duration}",
                target.route_to("replicas"),
                why="A program of `run` that takes longer is ended, and a job that hangs costs "
                "money on all machines until then.",
                help="set `max_duration` on the target",
            )


_STRATEGY = "training: {strategy: ddp}\n"

RULE = Rule(
    id="GCP035",
    name="job-default-duration",
    severity=Severity.INFO,
    sources=("aiplatform v1 discovery document, Scheduling.timeout",),
    check=_check,
    bad=examples(example_job(_STRATEGY, replicas="«2»")),
    good=examples(
        example_job(_STRATEGY, replicas="2", max_duration="4h"),
        example_job(""),
    ),
)
