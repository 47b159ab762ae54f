"""Several GPUs are requested, and nothing spreads the work over them.

## What it does

Looks for more than one card with `strategy: none`, in one process (`launcher: auto` or `python`),
or in several, which is `ddp` in fact. There is no finding with Lightning, which spreads the work
itself.

## Why

Trainer sees several cards in one process and takes DataParallel: slower than one process a card,
uneven in memory, and the batch is multiplied without a word. A plain torch program uses the first
card and leaves the others, which are paid for, idle.

## How to fix

Write `strategy: ddp` (or `fsdp`, `deepspeed-zero2`), or ask for one card.
"""

from __future__ import annotations

from provision.diagnostics import (
    Diagnostic,
    Fix,
    Insert,
    Replace,
    RouteLocation,
    Severity,
)
from provision.kinds.base import GpuSettings
from provision.rules.edits import unsafe_fix
from provision.rules.package_requirements import starts_processes
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    given = {"deepspeed", "fsdp"} & training.arguments.keys()
    if (
        training.strategy != "none"
        or training.method == "inference"
        or starts_processes(context)
        or given
        or context.resolved is not None
        or context.spec.framework() == "none"
    ):
        return
    for device in {
        device.gpu_route: device
        for device in context.devices
        if device.gpu.count > 1 and context.facts.card(device.gpu.type)
    }.values():
        yield (
            _several_processes(context, device)
            if training.launcher in ("torchrun", "accelerate")
            else _one_process_finding(context, device)
        )


def _several_processes(context: LintContext, device: GpuSettings) -> Diagnostic:
    return RULE.diagnostic(
        f"launcher: {context.spec.training.launcher} starts a process for each of "
        f"{device.gpu.count} cards, and strategy is none",
        ("training", "launcher"),
        severity=Severity.INFO,
        why="That is ddp in fact; the memory estimate and the rules go by strategy.",
        help="write strategy: ddp",
        related=related_at(device.gpu_route, "cards asked for here"),
        fix=_set_ddp_fix(context),
    )


def _one_process_finding(context: LintContext, device: GpuSettings) -> Diagnostic:
    trainer = context.uses_trainer
    return RULE.diagnostic(
        f"{device.gpu.count} cards are asked for, and strategy: none spreads the work over "
        + ("them by DataParallel alone" if trainer else "one of them"),
        device.gpu_route,
        severity=None if trainer else Severity.INFO,
        why="One process with several cards is slower than one a card, and multiplies the batch."
        if trainer
        else "The others stay idle, and are paid for.",
        help="write strategy: ddp under training, or ask for one card",
        fix=_set_ddp_fix(context),
    )


def _set_ddp_fix(context: LintContext) -> Fix:
    if "strategy" in context.spec.training.model_fields_set:
        edit: Replace | Insert = Replace(RouteLocation(("training", "strategy")), "ddp")
    elif "training" in context.spec.model_fields_set:
        edit = Insert(("training",), "strategy", "ddp")
    else:
        edit = Insert((), "training", "{strategy: ddp}")
    return unsafe_fix("write strategy: ddp", edit)


RULE = Rule(
    id="TRN006",
    name="gpus-without-strategy",
    severity=Severity.WARNING,
    sources=(
        "trainer.py of transformers 5.23.0 (nn.DataParallel where n_gpu > 1)",
        "PyTorch documentation, torch.nn.DataParallel",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: A100-80GB:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n',
            "A100-80GB:2",
        ),
        Example(
            'gpu: {type: L4, count: 4}\npython: "3.11"\npackages: [torch]\ntraining: '
            "{strategy: none}\n",
            "{type: L4, count: 4}",
        ),
        Example(
            'gpu: L4:4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{launcher: torchrun}\n",
            "torchrun",
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: [torch, pytorch-lightning]\n',
        'gpu: A100-80GB:2\npython: "3.11"\npackages: '
        '["transformers[torch]>=5"]\ntraining: {strategy: ddp}\n',
        'gpu: A100-80GB\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n',
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{method: inference}\n",
    ),
)
