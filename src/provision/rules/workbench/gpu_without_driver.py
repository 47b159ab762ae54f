"""The instance gets a GPU and no driver for it.

## What it does

Finds `gpu_driver: false` on a target with a GPU.

## Why

Workbench installs the NVIDIA driver only on request. Without it, torch reports "Found no NVIDIA
driver on your system" and computes on the CPU.

## How to fix

Leave `gpu_driver` out.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import workbench_instances


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        if instance.target.gpu_driver or not instance.facts.gpu_settings.is_nvidia:
            continue
        yield RULE.diagnostic(
            f"{instance.facts.gpu_settings.gpu} is asked for, and gpu_driver: false leaves "
            "it without a driver",
            instance.route("gpu_driver"),
            why="Workbench installs no driver then: torch finds no GPU.",
            help="write true, or leave gpu_driver out",
            related=related_at(instance.facts.gpu_settings.gpu_route, "GPU asked for here"),
            fix=set_field_fix(context, instance.route("gpu_driver"), "true"),
        )


RULE = Rule(
    id="GCP020",
    name="gpu-without-driver",
    severity=Severity.ERROR,
    sources=("notebooks.v2 discovery document, GPUDriverConfig.enableGpuDriver",),
    check=_check,
    bad=(
        Example(example_spec(gpu_driver="false"), "false"),
        Example(example_spec("gpu: none\n", gpu="L4", gpu_driver="false"), "false"),
    ),
    good=examples(
        example_spec(gpu_driver="true"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", gpu_driver="false"),
    ),
)
