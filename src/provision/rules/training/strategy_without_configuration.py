"""ZeRO or FSDP is declared, but no argument of Trainer enables it.

## What it does

Looks for `deepspeed` (or `fsdp`) under `training.arguments` if `strategy` is ZeRO (or FSDP) and
`launcher` is torchrun or python. With `launcher: auto` or `accelerate`, the command that provision
verifies and exports is `accelerate launch`, with a configuration that enables the strategy.

## Why

Trainer uses ZeRO only with a configuration, `deepspeed: zero2.json`, and FSDP only with `fsdp`.
Without them it trains with plain ddp: every GPU then holds the complete model, and the memory
estimate, which uses `strategy`, is too low.

## How to fix

Name the configuration under `training.arguments`, or set `launcher: accelerate`. If the program
creates the configuration in code, nothing needs to change.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, example, examples

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
    # For these strategies "auto" is `accelerate launch` with a configuration (proofs/launch.py).
    if not several or training.launcher in ("auto", "accelerate"):
        return
    yield RULE.diagnostic(
        f"`strategy: {strategy}` needs the argument `{argument}`, which is not under "
        "`training.arguments`",
        ROUTE,
        why=(
            "Without it, Trainer uses plain ddp, unless the program sets the argument or "
            "`accelerate launch` passes a configuration."
        ),
        help=(
            f"set `launcher: accelerate`, or add `{argument}: "
            f"{'zero.json' if argument == 'deepspeed' else 'true'}` to `training.arguments`"
        ),
    )


RULE = Rule(
    id="TRN017",
    name="strategy-without-configuration",
    severity=Severity.INFO,
    sources=("deepspeed and fsdp in training_args.py of transformers 4.57.6 and 5.23.0",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: «fsdp», launcher: torchrun}\n",
        example(
            'gpu: L4:2\npython: "3.11"\npackages: ["transformers[deepspeed]>=5"]\n'
            "training: {strategy: «deepspeed-zero3», launcher: torchrun}\n",
            other_ids=("TRN019",),
        ),
    ),
    good=examples(
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: fsdp, arguments: {fsdp: true}}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: fsdp, launcher: accelerate}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: fsdp}\n",
        'gpu: L4:2\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {strategy: ddp}\n",
    ),
)
