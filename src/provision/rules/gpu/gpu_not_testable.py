"""A target has a GPU, but no package to test it with.

## What it does

On every target with a GPU, looks for torch, or the jax or TensorFlow of `training.framework`, among
the packages, among their known dependencies, and in the resolved set. The packages can still be
locked and exported, so this is a warning. Rule GCP022 reports the same for Workbench targets,
and for the GPU that other targets share with one.

## Why

The driver reports the GPU, its memory and its health. Only a program that runs on the GPU can show
that it computes correctly, and the verification computes with torch, jax or TensorFlow. Without one
of them nothing would show that the GPU works, so `plan` refuses.

## How to fix

Add the framework you train with to `packages`, or set `gpu: none`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples
from provision.rules.torch_presence import can_test_gpu


def _check(context: LintContext) -> Findings:
    devices = {
        target.gpu_settings.gpu_route: target.gpu_settings
        for target in context.targets
        if not target.gpu_settings.gpu.is_none
    }
    for target in context.targets:
        if isinstance(target.target, WorkbenchTarget):
            devices.pop(target.gpu_settings.gpu_route, None)  # GCP022 reports it at the same place
    if not devices or can_test_gpu(context):
        return
    for route, device in devices.items():
        yield RULE.diagnostic(
            f"`gpu: {device.gpu}` can only be tested through torch, jax or TensorFlow, and none "
            f"of them is {context.package_list}",
            route,
            why=(
                "Only a computation on the GPU proves that the GPU works, so `plan` refuses a GPU "
                "that cannot be tested."
            ),
            help="add the framework you train with to `packages`, or set `gpu: none`",
        )


_SPEC = 'gpu: «L4»\npython: "3.12"\n'
RULE = Rule(
    id="GPU010",
    name="gpu-not-testable",
    severity=Severity.WARNING,
    sources=("provision's own verification: it tests a GPU with torch, jax or TensorFlow",),
    check=_check,
    reads_settings=True,
    bad=examples(
        _SPEC + "packages: []\n",
        _SPEC + "packages: [numpy]\n",
        Example(
            'gpu: L4\npython: "3.12"\npackages: [numpy]\n',
            "L4",
            ResolvedSet({"numpy": "2.4.6"}, "3.12"),
        ),
        'gpu: none\npython: "3.12"\npackages: [numpy]\n'
        "targets: {a: {kind: local}, b: {kind: local, gpu: «L4»}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: [numpy]\n',
        'gpu: L4\npython: "3.12"\npackages: [torchvision]\n',
        'gpu: L4\npython: "3.12"\npackages: ["jax[cuda13]"]\n',
        'gpu: L4\npython: "3.12"\npackages: [numpy]\ntargets:\n  a: {kind: local}\n  b: {kind: '
        "workbench, project: my-project, zones: [us-central1-a], machine_type: g2-standard-4}\n",
        'gpu: L4\npython: "3.12"\npackages: ["tensorflow[and-cuda]", keras]\n',
        'gpu: L4\npython: "3.12"\npackages: ["transformers[torch]"]\n',
        Example(
            'gpu: L4\npython: "3.12"\npackages: [our-own]\n',
            resolved=ResolvedSet({"torch": "2.13.0", "our-own": "1.0"}, "3.12", "cu130"),
        ),
    ),
)
