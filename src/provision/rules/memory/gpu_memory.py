"""The training does not fit into the memory of the card.

## What it does

Estimates weights, gradients, optimizer state and activations from `training`, and compares them
with the memory of one card. It is an error only if weights, gradients and optimizer state cannot
fit even with all of them in 16 bits; else a warning, because programs differ in what they store.
Inference on several cards is assumed to be spread over them. If listed packages load quantized
models it is a note, and with offload in `training.arguments` there is no finding, because the part
that moves to RAM is unknown.

## Why

The out-of-memory error appears when the model is moved to the card, or in the first step, after the
machine was created and everything was installed.

## How to fix

Take the change that is named, a smaller model, or a card with more memory. With `hidden_size`,
`layers`, `batch_size` and `sequence_length` given, activations are counted as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Severity
from provision.facts.memory import (
    MemoryEstimate,
    MemorySaving,
    Workload,
    combine_savings,
    estimate_memory,
    find_savings,
    minimum_memory,
)
from provision.kinds import LocalTarget, WorkbenchTarget
from provision.kinds.base import Capacity, TargetFacts
from provision.rules.memory.capacity import format_size, training_workload, vram_capacity
from provision.rules.package_lines import find_line
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import available_gpu_counts

_ELSEWHERE = ("deepspeed", "fsdp", "fsdp_config")
"""TrainingArguments that may move a part of the training to RAM."""
_QUANTIZED = ("auto-gptq", "autoawq", "bitsandbytes", "compressed-tensors", "gptqmodel", "vllm")
"""Packages that load weights of 8 or 4 bits (documentation of transformers and vLLM, Quantization).
A spec cannot say that its model has such.
"""
_SEVERAL = (2, 4, 8)
"""Cards of one machine to propose for an unknown target. Our choice."""


def _check(context: LintContext) -> Findings:
    if context.spec.training.model is None or _is_offloaded(context):
        return
    for target in {target.gpu_settings.gpu_route: target for target in context.targets}.values():
        workload = training_workload(context, target)
        vram = vram_capacity(context, target)
        if workload is not None and vram is not None:
            yield from _target_findings(context, target, workload, vram)


def _target_findings(
    context: LintContext, target: TargetFacts, workload: Workload, vram: Capacity
) -> Findings:
    least = minimum_memory(workload, context.facts)
    estimate = estimate_memory(workload, context.facts)
    if least > vram.bytes and _is_certain(context):
        message = (
            f"weights, gradients and optimizer state take at least {format_size(least)} on "
            f"each GPU, and {vram.provider} has {format_size(vram.bytes)}"
        )
        why = "They do not fit even with all of them in 16 bits, whatever the batch size."
        severity = vram.at_most(Severity.ERROR)
    elif estimate.total > vram.bytes:
        what = "inference" if workload.method == "inference" else "training"
        message = (
            f"{what} takes about {format_size(estimate.total)} on each GPU "
            f"({_format_parts(estimate)}), and {vram.provider} has {format_size(vram.bytes)}"
        )
        why = _why(estimate, workload)
        severity = (
            Severity.INFO if least <= vram.bytes and _is_quantized(context) else Severity.WARNING
        )
    else:
        return
    yield RULE.diagnostic(
        message,
        ("training", "model", "parameters"),
        severity=severity,
        why=why,
        help=_help(context, target, workload, vram),
        related=related_at(vram.route, "card asked for here"),
    )


def _is_offloaded(context: LintContext) -> bool:
    arguments = context.spec.training.arguments
    return any("offload" in str(arguments.get(key, "")).lower() for key in _ELSEWHERE)


def _is_quantized(context: LintContext) -> bool:
    return context.spec.training.method == "inference" and any(
        find_line(context, name) for name in _QUANTIZED
    )


def _is_certain(context: LintContext) -> bool:
    training = context.spec.training
    return (
        training.method != "inference"
        and not training.strategy.startswith("deepspeed")
        and not set(_ELSEWHERE) & set(training.arguments)
    )


def _format_parts(estimate: MemoryEstimate) -> str:
    parts = {
        "weights": estimate.weights,
        "gradients": estimate.gradients,
        "optimizer": estimate.optimizer,
        "activations": estimate.activations,
        "CUDA context": estimate.overhead,
    }
    return ", ".join(f"{name} {format_size(count)}" for name, count in parts.items() if count)


def _why(estimate: MemoryEstimate, workload: Workload) -> str:
    left_out = (*estimate.unknown, *(("quantization",) if workload.method == "inference" else ()))
    said = [
        f"{word}: {'; '.join(what)}"
        for word, what in (("Not counted", left_out), ("Assumed", estimate.assumed))
        if what
    ]
    return ". ".join(["What does not fit ends in an out-of-memory error", *said]) + "."


def _help(context: LintContext, target: TargetFacts, workload: Workload, vram: Capacity) -> str:
    half = "bf16" if target.card and context.facts.has_feature(target.card, "bf16") else "fp16"
    *most, last = [
        *_memory_savings(context, workload, vram, half),
        *_other_savings(context, target, workload, vram, half),
        _larger_card(context, target, workload),
    ]
    return "; ".join([*most, f"or {last}"]) if most else last


def _memory_savings(
    context: LintContext, workload: Workload, vram: Capacity, half: str
) -> tuple[str, ...]:
    """Return the changes of `training` to name: the least sufficient, sharding, and the largest."""
    levers = find_savings(workload, context.facts, half=half)
    enough = [lever for lever in levers if lever.total <= vram.bytes]
    gentle = [lever for lever in enough if "method" not in lever.change]
    sharded = [lever for lever in enough if "strategy" in lever.change]
    named = list(
        dict.fromkeys(
            f"{_format_change(lever)} saves {format_size(lever.saved_bytes)} and leaves "
            f"{format_size(lever.total)}"
            for lever in (*gentle[:1], *sharded, *levers[:1])
        )
    )
    if levers and levers[0].total > vram.bytes:
        together = combine_savings(workload, vram.bytes, context.facts, half=half)
        if together:
            more = (
                f"with {' and '.join(_format_change(lever) for lever in together[1:])} it leaves "
                f"{format_size(together[-1].total)}"
            )
        else:
            more = "still too much"
        named[-1] += f", {more}"
    return tuple(named)


def _other_savings(
    context: LintContext, target: TargetFacts, workload: Workload, vram: Capacity, half: str
) -> Iterator[str]:
    """Yield what a program can do besides the fields of `training`."""
    least = minimum_memory(workload, context.facts)
    if workload.method == "full" and least <= vram.bytes:
        spread = f" on each of {workload.devices} GPUs" if workload.devices > 1 else ""
        (
            yield f"load the model in {half}, with which weights, gradients and optimizer state "
            "take "
            f"at least {format_size(least)}{spread}"
        )
    if workload.method != "inference":
        return
    if least <= vram.bytes:
        yield f"take a model quantized to 4 bits, with weights of {format_size(least)}"
    if (
        target.card is not None
        and workload.strategy == "none"
        and isinstance(target.target, LocalTarget | WorkbenchTarget)
    ):
        reserved = (
            isinstance(target.target, WorkbenchTarget) and target.target.reservation is not None
        )
        if isinstance(target.target, WorkbenchTarget):
            offered = available_gpu_counts(context.facts, target.card, reserved=reserved)
        else:
            offered = _SEVERAL
        fits = (
            count
            for count in offered
            if count > workload.devices
            and estimate_memory(workload._replace(devices=count), context.facts).total <= vram.bytes
        )
        if count := next(fits, None):
            yield f"spread the model over more cards, gpu: {target.card.name}:{count}"


def _format_change(lever: MemorySaving) -> str:
    return ", ".join(
        f"{key}: {str(value).lower() if isinstance(value, bool) else value}"
        for key, value in lever.change.items()
    )


def _larger_card(context: LintContext, target: TargetFacts, workload: Workload) -> str:
    total = estimate_memory(workload, context.facts).total
    offered = (
        card
        for card in context.facts.cards
        if getattr(card, target.target.kind, "") and card.status not in ("retired", "removed")
    )
    larger = min(
        (card for card in offered if card.memory_gb * 2**30 > total),
        key=lambda card: card.memory_gb,
        default=None,
    )
    if larger:
        return f"gpu: {larger.name} with {larger.memory_gb:g} GiB"
    return f"a card with more than {format_size(total)}"


RULE = Rule(
    id="MEM001",
    name="gpu-memory",
    severity=Severity.ERROR,
    sources=(
        "Hugging Face transformers documentation, Model training anatomy",
        "Korthikanti et al., arXiv 2205.05198, table 2 (activations)",
        "ZeRO, arXiv 1910.02054 (sharding)",
        "accelerate 1.15.0, commands/estimate.py",
        (
            "transformers documentation, Quantization and Tensor parallelism; vLLM "
            "documentation, Quantization"
        ),
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: 7B}}\n',
            "7B",
        ),
        Example(
            'gpu: T4\npython: "3.12"\npackages: [torch]\ntraining: {precision: fp16, '
            "model: {parameters: 1.1B}}\n",
            "1.1B",
        ),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\n'
            "training: {precision: bf16, batch_size: 16, sequence_length: 2048, model: "
            "{parameters: 350M, hidden_size: 1024, layers: 24}}\n",
            "350M",
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: bf16, '
        "model: {parameters: 1.1B}}\n",
        'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: bf16, '
        "method: qlora, model: {parameters: 7B, hidden_size: 4096, layers: 32}}\n",
        'gpu: none\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: 7B}}\n',
        'gpu: L4:2\npython: "3.12"\npackages: [torch]\ntraining: {method: inference, '
        "precision: bf16, model: {parameters: 13B}}\n",
    ),
)
