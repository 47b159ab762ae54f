"""Several machines are requested, but no strategy uses them together.

## What it does

Finds a target of kind vertex-job with `replicas` above 1 and `strategy: none`, or with a launcher
that starts a single process. There is no finding with `framework: none` or with Lightning, whose
programs distribute the work themselves.

## Why

Each machine would train alone, with the same data, and you pay for all of them.

## How to fix

Set `strategy: ddp` (or `fsdp`, `deepspeed-zero2`), or use one machine.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.package_requirements import starts_processes
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if context.resolved is not None or starts_processes(context):
        return
    if training.method == "inference" or context.spec.framework() == "none":
        return
    for target, job in context.targets_of(VertexJobTarget):
        if job.replicas == 1:
            continue
        problem = "`strategy: none` trains on each of them alone"
        fix = "set `strategy: ddp` under `training`, or remove `replicas`"
        if training.strategy != "none":
            if training.launcher != "python":
                continue
            problem = "`launcher: python` starts a single process on each of them"
            fix = "set `launcher: torchrun`"
        yield RULE.diagnostic(
            f"{job.replicas} machines are requested, but {problem}",
            target.route_to("replicas"),
            why="You would pay for all of the machines, but they would not work together.",
            help=fix,
        )


RULE = Rule(
    id="TRN024",
    name="replicas-without-strategy",
    severity=Severity.ERROR,
    sources=("PyTorch documentation, torchrun",),
    check=_check,
    reads_settings=True,
    bad=examples(
        example_job("", replicas="«2»", max_duration="4h"),
        example_job(
            "training: {strategy: ddp, launcher: python}\n", replicas="«4»", max_duration="4h"
        ),
    ),
    good=examples(
        example_job("training: {strategy: fsdp}\n", replicas="2"),
        example_job("training: {framework: none}\n", replicas="2"),
        example_job("", replicas="1"),
    ),
)
