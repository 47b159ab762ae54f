"""The requested accelerator is not in the facts.

## What it does

Looks the name up among the cards in the facts, by all the names that Google's services and Colab
give them.

## Why

For an unknown card the facts have no torch builds, number formats or memory size. A typing error
looks the same as a new card.

## How to fix

Correct the name; an editor that reads `provision schema` offers the known ones. A card that exists
but is not listed can be used: the device will show what it does.
"""

from __future__ import annotations

from provision.diagnostics import (
    Severity,
)
from provision.rules.edits import replace_fix, yaml_scalar
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    gpus = {device.gpu_route: device.gpu for device in context.devices if device.is_nvidia}
    for route, gpu in gpus.items():
        if context.facts.card(gpu.type) is not None:
            continue
        message = f"the facts know no accelerator {gpu.type}"
        help_text = "check the name; `provision facts list gpus` lists the known ones"
        fix = None
        is_short = context.source.text(route) is not None
        where = route if is_short else (*route, "type")
        meant = _nearest_name(context, gpu.type)
        if meant:
            message += f"; the nearest is {meant}"
            help_text = f"write {meant}, if that is meant"
            name = f"{meant}:{gpu.count}" if is_short and gpu.count != 1 else meant
            text = yaml_scalar(name, plain=context.source.is_plain(where))
            fix = replace_fix(f"write {meant}", where, text)
        yield RULE.diagnostic(
            message,
            where,
            why="Its compute capability and memory are not known, so no rule can tell what "
            "runs on it.",
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
    bad=(
        Example('gpu: A100-80BG:2\npython: "3.11"\npackages: [torch]\n', "A100-80BG:2"),
        Example('gpu: {type: Z999, count: 1}\npython: "3.11"\npackages: [torch]\n', "Z999"),
        Example(
            'gpu: TPU-v5e\npython: "3.12"\npackages: [torch]\ntargets: {colab: {kind: '
            'colab, runtime: "2026.07"}}\n',
            "TPU-v5e",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\ntargets:\n  big: {kind: local, '
            "gpu: H10O}\n",
            "H10O",
        ),
    ),
    good=examples(
        'gpu: a100-80gb:2\npython: "3.11"\npackages: [torch]\n',
        'gpu: NVIDIA_L4\npython: "3.11"\npackages: [torch]\n',
        'gpu: none\npython: "3.11"\npackages: [torch]\n',
    ),
)
