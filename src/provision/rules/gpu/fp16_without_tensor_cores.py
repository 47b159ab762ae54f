"""fp16 on a GPU without tensor cores saves memory, not time.

## What it does

If `training.precision` is fp16, checks whether the GPU has tensor cores, and how fast it computes
in fp16 without them.

## Why

GTX 10xx, P4 and P40 (6.1) do one fp16 operation for every 64 in fp32, K80 none at all: fp16 saves
memory, not time. P100 (6.0) does two for each fp32 operation, with results that are less stable
than those of tensor cores. On GTX 16xx, half precision is known to produce NaN.

## How to fix

Set fp32, or use a GPU with tensor cores (Volta and newer). Keep fp16 if you need the memory.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, examples, related_gpu
from provision.spec import Precision


def _check(context: LintContext) -> Findings:
    if context.spec.training.precision is not Precision.FP16:
        return
    for target in context.targets_by_gpu.values():
        card = target.card
        if card is None or context.facts.has_feature(card, "tensor_cores") is not False:
            continue
        rate = context.facts.capabilities[card.cc].fp16_rate
        severity = Severity.WARNING
        help_text = "set `precision: fp32`, or use a GPU with tensor cores"
        if "tensor_cores" in card.lacks:
            why = "Half precision is known to produce NaN on GTX 16xx GPUs."
        elif rate is not None and rate < 1:
            speed = "The GPU has no fp16 arithmetic"
            if rate:
                speed = (
                    f"The GPU does one fp16 operation for every {round(1 / rate)} fp32 operations"
                )
            why = f"{speed}: fp16 saves memory, not time."
        else:
            severity = Severity.INFO
            why = (
                "On this GPU fp16 is at most twice as fast as fp32; with tensor cores fp16 is "
                "up to eight times as fast."
            )
            help_text = "no change is needed"
        yield RULE.diagnostic(
            f"`precision: fp16` is set, but {card.name} (compute capability {card.cc}) has no "
            "tensor cores",
            ("training", "precision"),
            severity=severity,
            why=why,
            help=help_text,
            related=related_gpu(target),
        )


RULE = Rule(
    id="GPU006",
    name="fp16-without-tensor-cores",
    severity=Severity.WARNING,
    sources=(
        "CUDA C++ Programming Guide, throughput of native arithmetic instructions",
        "NVIDIA/apex#76",
        "pytorch/pytorch#58123",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: «fp16»}\n",
        'gpu: GTX-1660\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: «fp16»}\n",
        'gpu: P100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: «fp16»}\n",
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\ntraining: {precision: fp16}\n',
        'gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n',
    ),
)
