"""Several GPUs are requested, but no strategy uses them.

## What it does

Looks for more than one GPU with `strategy: none`, in one process (`launcher: auto` or `python`) or
in several, which is `ddp` in effect. There is no finding with Lightning, which distributes the work
itself.

## Why

In one process with several GPUs, Trainer uses DataParallel: it is slower than one process per GPU,
uses memory unevenly, and silently multiplies the batch size. A plain torch program uses the first
GPU and leaves the others idle, although you pay for them.

## How to fix

Set `strategy: ddp` (or `fsdp`, `deepspeed-zero2`), or request one GPU.
"""

from __future__ import annotations

from provision.diagnostics import Edit, Insert, Replace, RouteLocation, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_requirements import starts_processes
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if training.strategy != "none" or training.method == "inference":
        return
    if context.resolved is not None or context.spec.framework() == "none":
        return
    if starts_processes(context) or {"deepspeed", "fsdp"} & training.arguments.keys():
        return
    if "strategy" in training.model_fields_set:
        edit: Edit = Replace(RouteLocation(("training", "strategy")), "ddp")
    elif "training" in context.spec.model_fields_set:
        edit = Insert(("training",), "strategy", "ddp")
    else:
        edit = Insert((), "training", "{strategy: ddp}")
    fix = unsafe_fix("set `strategy: ddp`", edit)
    gpus = {device.gpu_route: device.gpu for device in context.devices if device.gpu.count > 1}
    for route, gpu in gpus.items():
        if not context.facts.card(gpu.type):
            continue
        if training.launcher in ("torchrun", "accelerate"):
            yield RULE.diagnostic(
                f"`launcher: {training.launcher}` starts one process for each of the {gpu.count} "
                "GPUs, but `strategy` is `none`",
                ("training", "launcher"),
                severity=Severity.INFO,
                why=(
                    "This is effectively ddp, but the memory estimate and rules go by `strategy`."
                ),
                help=fix.title,
                related=related_at(route, "GPUs requested here"),
                fix=fix,
            )
            continue
        use = "uses only one of them"
        severity = Severity.INFO
        why = "The other GPUs stay idle, but you pay for them."
        if context.uses_trainer:
            use = "uses them through DataParallel"
            severity = RULE.severity
            why = (
                "One process that uses several GPUs is slower than one process per GPU, and "
                "multiplies its batch size by their number."
            )
        yield RULE.diagnostic(
            f"{gpu.count} GPUs are requested, but `strategy: none` {use}",
            route,
            severity=severity,
            why=why,
            help=f"{fix.title} under `training`, or request one GPU",
            fix=fix,
        )


RULE = Rule(
    id="TRN006",
    name="gpus-without-strategy",
    severity=Severity.WARNING,
    sources=(
        "trainer.py of transformers 5.23.0 (nn.DataParallel where n_gpu > 1)",
        "PyTorch documentation, torch.nn.DataParallel",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: «A100-80GB:2»\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n',
        'gpu: «{type: L4, count: 4}»\npython: "3.11"\npackages: [torch]\n'
        "training: {strategy: none}\n",
        'gpu: L4:4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {launcher: «torchrun»}\n",
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: [torch, pytorch-lightning]\n',
        'gpu: A100-80GB:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: ddp}\n",
        'gpu: A100-80GB\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n',
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {method: inference}\n",
    ),
)
