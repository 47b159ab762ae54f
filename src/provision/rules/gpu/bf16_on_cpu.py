"""Trainer rejects bf16 on a CPU unless `use_cpu` is set.

## What it does

On every target without an accelerator, checks `training.precision: bf16`, and for Trainer
`training.arguments.use_cpu`.

## Why

Without a GPU, `TrainingArguments(bf16=True)` fails with "Your setup doesn't support bf16/gpu. You
need to assign use_cpu if you want to train the model on CPU." With `use_cpu=True` it trains in
bf16. Fast kernels require a processor with AVX512-BF16 or AMX; without them bf16 saves memory, not
time.

## How to fix

Set `arguments: {use_cpu: true}`, or fp32 for speed on older processors. A target with a GPU must
not set `use_cpu`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_argument_fix
from provision.rules.rule import Findings, LintContext, Rule, cpu_targets, examples, related_at
from provision.spec import Precision


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if training.precision is not Precision.BF16 or training.method == "inference":
        return
    is_rejected = context.uses_trainer and training.arguments.get("use_cpu") is not True
    for subject, route in cpu_targets(context):
        message = f"`precision: bf16` is set, but {subject} has `gpu: none`"
        related = related_at(route, "no GPU")
        if not is_rejected:
            yield RULE.diagnostic(
                message,
                ("training", "precision"),
                severity=Severity.INFO,
                why="Only CPUs with AVX512-BF16 or AMX are fast in bf16.",
                help="no change is needed; fp32 may be faster",
                related=related,
            )
            continue
        # use_cpu would leave the card of another target idle.
        keeps_no_card_idle = all(device.gpu.is_none for device in context.devices)
        yield RULE.diagnostic(
            f"{message}, and `use_cpu` is not set",
            ("training", "precision"),
            why="Trainer rejects bf16 without a GPU unless `use_cpu` is set.",
            help="set `arguments: {use_cpu: true}` under `training`, or `precision: fp32`",
            related=related,
            fix=set_argument_fix(context, "use_cpu") if keeps_no_card_idle else None,
        )


RULE = Rule(
    id="GPU003",
    name="bf16-on-cpu",
    severity=Severity.WARNING,
    sources=(
        "TrainingArguments.__post_init__ in transformers 5.23.0, tried on a CPU",
        "oneDNN, bfloat16 training on CPUs",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n'
        "training: {precision: «bf16»}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n'
        "training: {precision: «bf16», arguments: {use_cpu: true}}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {precision: «bf16»}\n'
        "targets: {here: {kind: local, gpu: none}}\n",
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: {precision: bf16}\n',
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]"]\n',
    ),
)
