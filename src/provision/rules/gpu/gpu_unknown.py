"""The requested GPU is not in the facts.

## What it does

Looks up the name among the GPUs in the facts, by the names that nvidia-smi and lspci print and that
clouds and Colab use.

## Why

The facts have no torch builds, number formats or memory size of an unknown GPU. A misspelled name
looks the same as a new GPU.

## How to fix

Correct the name; an editor that uses `provision schema` completes the known names. You can use a
GPU that exists but is not listed: the device will show what it supports.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spelling import nearest_word, nearest_words


def _check(context: LintContext) -> Findings:
    gpus = {device.gpu_route: device.gpu for device in context.devices if device.is_nvidia}
    for route, gpu in gpus.items():
        if context.facts.card(gpu.type) or context.facts.unsupported_accelerator(gpu.type):
            continue  # GPU011 reports accelerators that are not NVIDIA cards
        message = f"unknown GPU {gpu.type}"
        help_text = "use the name of a known GPU; `provision facts list gpus` lists them"
        fix = None
        is_short = context.source.text(route) is not None
        where = route if is_short else (*route, "type")
        meant = _nearest_name(context, gpu.type)
        if meant:
            message += f"; did you mean {meant}?"
            name = f"{meant}:{gpu.count}" if is_short and gpu.count != 1 else meant
            text = yaml_scalar(name, plain=context.source.is_plain(where))
            fix = replace_fix(f"use {meant}", where, text)
            help_text = f"{fix.title} if that is what you meant"
        elif near := nearest_words(gpu.type, [card.name for card in context.facts.cards], 3):
            help_text = f"did you mean {' or '.join(near)}? " + help_text
        yield RULE.diagnostic(
            message,
            where,
            why=(
                "Its compute capability and memory are unknown, so the rules cannot check what "
                "runs on it."
            ),
            help=help_text,
            fix=fix,
        )


def _nearest_name(context: LintContext, name: str) -> str | None:
    known = {
        word.casefold(): card.name
        for card in context.facts.cards
        for word in (card.name, *card.aliases)
    }
    folded = name.casefold().replace(" ", "-").replace("_", "-")
    if len(folded) > 3:
        return known.get(nearest_word(folded, known, 2) or "")
    return None


RULE = Rule(
    id="GPU001",
    name="gpu-unknown",
    severity=Severity.UNKNOWN,
    sources=(
        "GoogleCloudPlatform/magic-modules Instance.yaml",
        "google-cloud-aiplatform accelerator_type.py",
        "NVIDIA, compute capability of CUDA GPUs",
    ),
    check=_check,
    bad=examples(
        'gpu: «A100-80BG:2»\npython: "3.11"\npackages: [torch]\n',
        'gpu: {type: «Z999», count: 1}\npython: "3.11"\npackages: [torch]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntargets:\n  big: {kind: local, gpu: «H10O»}\n',
    ),
    good=examples(
        'gpu: a100-80gb:2\npython: "3.11"\npackages: [torch]\n',
        'gpu: NVIDIA_L4\npython: "3.11"\npackages: [torch]\n',
        'gpu: none\npython: "3.11"\npackages: [torch]\n',
    ),
)
