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

from provision.diagnostics import Edit, Insert, Replace, RouteLocation, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.package_requirements import starts_processes
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


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
    fix = unsafe_fix("write strategy: ddp", edit)
    gpus = {device.gpu_route: device.gpu for device in context.devices if device.gpu.count > 1}
    for route, gpu in gpus.items():
        if not context.facts.card(gpu.type):
            continue
        if training.launcher in ("torchrun", "accelerate"):
            yield RULE.diagnostic(
                f"launcher: {training.launcher} starts a process for each of "
                f"{gpu.count} cards, and strategy is none",
                ("training", "launcher"),
                severity=Severity.INFO,
                why="That is ddp in fact; the memory estimate and the rules go by strategy.",
                help=fix.title,
                related=related_at(route, "cards asked for here"),
                fix=fix,
            )
            continue
        spread = "one of them"
        severity = Severity.INFO
        why = "The others stay idle, and are paid for."
        if context.uses_trainer:
            spread = "them by DataParallel alone"
            severity = RULE.severity
            why = (
                "One process with several cards is slower than one a card, and multiplies the "
                "batch."
            )
        yield RULE.diagnostic(
            f"{gpu.count} cards are asked for, and strategy: none spreads the work over {spread}",
            route,
            severity=severity,
            why=why,
            help=f"{fix.title} under training, or ask for one card",
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
