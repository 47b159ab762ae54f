"""fp16 on a card without tensor cores saves memory, not time.

## What it does

Where `training.precision` is fp16, looks whether the card has tensor cores, and how fast it
computes in fp16 without them.

## Why

GTX 10xx, P4 and P40 (6.1) do one fp16 operation for every 64 in fp32, K80 none at all: fp16 saves
memory there, not time. P100 (6.0) does two for each fp32 one, with results that are less stable
than those of tensor cores. On GTX 16xx, half precision is known to give NaN.

## How to fix

Declare fp32, or take a card with tensor cores (Volta and newer). Where memory is what is short,
fp16 may stay.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import Precision


def _check(context: LintContext) -> Findings:
    if context.spec.training.precision is not Precision.FP16:
        return
    for route, target in context.targets_by_gpu.items():
        card = target.card
        if card is None or context.facts.has_feature(card, "tensor_cores") is not False:
            continue
        rate = context.facts.capabilities[card.cc].fp16_rate
        severity = Severity.WARNING
        help_text = "write precision: fp32, or take a card with tensor cores"
        if "tensor_cores" in card.lacks:
            why = "Half precision is known to give NaN on GTX 16xx cards."
        elif rate is not None and rate < 1:
            speed = "no arithmetic in fp16"
            if rate:
                speed = f"one fp16 operation for every {round(1 / rate)} in fp32"
            why = f"It does {speed}: fp16 saves memory there, not time."
        else:
            severity = Severity.INFO
            why = (
                "fp16 runs at up to twice the speed of fp32 there, not at the eight times of "
                "tensor cores."
            )
            help_text = "nothing needs to change"
        yield RULE.diagnostic(
            f"precision: fp16 is declared, and {card.name} ({card.cc}) has no tensor cores",
            ("training", "precision"),
            severity=severity,
            why=why,
            help=help_text,
            related=related_at(route, "card asked for here"),
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
    bad=(
        Example(
            'gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\ntraining: '
            "{precision: fp16}\n",
            "fp16",
        ),
        Example(
            'gpu: GTX-1660\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\ntraining: '
            "{precision: fp16}\n",
            "fp16",
        ),
        Example(
            'gpu: P100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\ntraining: '
            "{precision: fp16}\n",
            "fp16",
        ),
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\ntraining: {precision: fp16}\n',
        'gpu: GTX-1080-Ti\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n',
    ),
)
