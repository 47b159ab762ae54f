"""An instance has a GPU but no driver for it.

## What it does

Finds `gpu_driver: false` on a target with a GPU.

## Why

Workbench installs the NVIDIA driver only on request. Without it, torch reports "Found no NVIDIA
driver on your system" and computes on the CPU.

## How to fix

Remove `gpu_driver`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.rule import Findings, LintContext, Rule, examples, related_gpu


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        if fields.gpu_driver or not target.gpu_settings.is_nvidia:
            continue
        route = target.route_to("gpu_driver")
        fix = set_field_fix(context, route, "true")
        yield RULE.diagnostic(
            f"{target.gpu_settings.gpu} is requested, but `gpu_driver: false` leaves it without "
            "a driver",
            route,
            why="With this setting, Workbench installs no driver, so torch cannot find the GPU.",
            help=f"{fix.title}, or remove `gpu_driver`",
            related=related_gpu(target),
            fix=fix,
        )


RULE = Rule(
    id="GCP020",
    name="gpu-without-driver",
    severity=Severity.ERROR,
    sources=("notebooks.v2 discovery document, GPUDriverConfig.enableGpuDriver",),
    check=_check,
    bad=examples(
        example_spec(gpu_driver="«false»"),
        example_spec("gpu: none\n", gpu="L4", gpu_driver="«false»"),
    ),
    good=examples(
        example_spec(gpu_driver="true"),
        example_spec("gpu: none\n", machine_type="n2-standard-8", gpu_driver="false"),
    ),
)
