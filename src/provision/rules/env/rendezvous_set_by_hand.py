"""The address at which processes meet is set in the spec.

## What it does

Looks for MASTER_ADDR, MASTER_PORT, NODE_RANK and GROUP_RANK in `env`. If there is a target of kind
vertex-job, it also looks for the variables that Vertex AI sets on each machine of a job:
CLUSTER_SPEC, TF_CONFIG, and those that begin with AIP_ or CLOUD_ML_.

## Why

A launcher on one machine finds a free port by itself. A fixed port causes a collision if two
training runs share the machine, and an address in the spec is the same for all targets. The
variables of a job differ from machine to machine or from job to job, and the spec's value would
replace them.

## How to fix

Remove the variable. For several machines, pass the address to torchrun or accelerate on the command
line.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.kinds import VertexJobTarget
from provision.rules.examples import example_job
from provision.rules.rule import Findings, LintContext, Rule, examples

NAMES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "GROUP_RANK")
_JOB_NAMES, _JOB_PREFIXES = ("CLUSTER_SPEC", "TF_CONFIG"), ("AIP_", "CLOUD_ML_")


def _check(context: LintContext) -> Findings:
    for name in NAMES if context.resolved is None else ():
        if name in context.spec.env:
            yield RULE.diagnostic(
                f"{name} is set in `env`, but should be set by the launcher",
                ("env", name),
                at=RoutePart.KEY,
                why=(
                    "The value is the same for every target and every training run, so two runs "
                    "on one machine collide."
                ),
                help=f"remove {name}; if several machines train together, pass it to the launcher",
            )
    yield from _check_jobs(context)


def _check_jobs(context: LintContext) -> Findings:
    job = next((target.name for target, _ in context.targets_of(VertexJobTarget)), None)
    if job is None or context.resolved is not None:
        return
    for name in context.spec.env:
        if name in _JOB_NAMES or name.startswith(_JOB_PREFIXES):
            yield RULE.diagnostic(
                f"{name} is set in `env`, but Vertex AI sets it on the machines of `{job}`",
                ("env", name),
                at=RoutePart.KEY,
                why="Programs would get the value from the spec, which is the same on all machines "
                "and in all jobs.",
                help=f"remove {name}, or set it only in the `env` of other targets",
            )


RULE = Rule(
    id="ENV003",
    name="rendezvous-set-by-hand",
    severity=Severity.WARNING,
    sources=(
        "PyTorch documentation, torchrun, environment variables",
        "Vertex AI documentation, Distributed training",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {«MASTER_PORT»: "29500"}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {«MASTER_ADDR»: localhost}\n',
        example_job('env: {«CLUSTER_SPEC»: "{}"}\n'),
        example_job("env: {«TF_CONFIG»: '{}'}\n"),
        example_job('env: {«AIP_CHECKPOINT_DIR»: "gs://my-bucket/checkpoints"}\n'),
        example_job("env: {«CLOUD_ML_PROJECT_ID»: my-project}\n"),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {NCCL_DEBUG: WARN}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {TF_CONFIG: "{}"}\n',
        example_job("env: {NCCL_DEBUG: WARN}\n"),
        'gpu: L4\npython: "3.11"\npackages: [torch]\n',
    ),
)
