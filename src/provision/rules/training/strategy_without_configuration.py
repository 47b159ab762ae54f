"""ZeRO or FSDP is declared, and nothing among Trainer's arguments turns it on.

## What it does

Looks for `deepspeed` (or `fsdp`) under `training.arguments` if `strategy` is ZeRO (or FSDP) and
Trainer is not started by `accelerate launch`, whose configuration may set it.

## Why

Trainer uses ZeRO only with a configuration, `deepspeed: zero2.json`, and FSDP only with `fsdp`.
Without them it trains with plain ddp: every card then has the whole model, and the memory estimate,
which goes by `strategy`, is too low.

## How to fix

Name the configuration under `training.arguments`, or write `launcher: accelerate` and keep it in
accelerate's own. Where the program makes it in code, nothing needs to change.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

ROUTE = ("training", "strategy")


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    strategy = training.strategy
    argument = strategy.partition("-")[0]
    if argument not in ("deepspeed", "fsdp") or argument in training.arguments:
        return
    if context.resolved is not None or not context.trains_with_trainer:
        return
    several = any(device.is_nvidia and device.gpu.count > 1 for device in context.devices)
    if not several or training.launcher == "accelerate":
        return
    yield RULE.diagnostic(
        f"strategy: {strategy} is turned on by the argument {argument}, which is "
        "not among training.arguments",
        ROUTE,
        why="Without a configuration Trainer trains with plain ddp, unless the program or "
        "accelerate's own configuration says otherwise.",
        help=f"name it under training.arguments, as in {argument}: "
        f"{'zero.json' if argument == 'deepspeed' else 'true'}, or write launcher: "
        "accelerate",
    )


RULE = Rule(
    id="TRN017",
    name="strategy-without-configuration",
    severity=Severity.INFO,
    sources=("deepspeed and fsdp in training_args.py of transformers 4.57.6 and 5.23.0",),
    check=_check,
    bad=(
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{strategy: fsdp}\n",
            "fsdp",
        ),
        Example(
            'gpu: L4:2\npython: "3.11"\npackages: '
            '["transformers[deepspeed]>=5"]\ntraining: {strategy: deepspeed-zero3, '
            "launcher: torchrun}\n",
            "deepspeed-zero3",
            other_ids=("TRN019",),
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: fsdp, arguments: {fsdp: true}}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: fsdp, launcher: accelerate}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{strategy: ddp}\n",
    ),
)
