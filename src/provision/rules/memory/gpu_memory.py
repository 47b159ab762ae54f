"""The training does not fit in GPU memory.

## What it does

Estimates weights, gradients, optimizer state and activations from `training`, and compares them
with the memory of one GPU. It is an error only if weights, gradients and optimizer state do not fit
even at 16-bit precision; otherwise it is a warning, because programs differ in what they store.
Inference on several GPUs is assumed to be distributed across them. If a listed package loads
quantized models, the finding is a note. With offload in `training.arguments` there is no finding,
because the share that moves to RAM is unknown.

## Why

The out-of-memory error appears when the model is moved to the GPU, or in the first step, after the
machine was created and everything was installed.

## How to fix

Apply a change that the finding names, or use a smaller model or a GPU with more memory. If
`hidden_size`, `layers`, `batch_size` and `sequence_length` are set, activations are counted as
well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from provision.rules.memory.capacity import GIB, capacity_of, format_size, training_workload
from provision.rules.package_lines import find_line
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.workbench_instances import UNAVAILABLE_STATUS, available_gpu_counts

_ELSEWHERE = ("deepspeed", "fsdp", "fsdp_config")
"""TrainingArguments that may move a part of the training to RAM."""
_QUANTIZED = ("auto-gptq", "autoawq", "bitsandbytes", "compressed-tensors", "gptqmodel")
"""Packages that are listed to load weights of 8 or 4 bits (documentation of transformers,
Quantization). A spec does not declare whether its model has such weights.
"""
_SEVERAL = (2, 4, 8)
"""Numbers of GPUs to propose for a machine that is not known. Our choice."""


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    moving = [name for name in _ELSEWHERE if name in training.arguments]
    if any("offload" in str(training.arguments[name]).lower() for name in moving):
        return
    is_inference = training.method == "inference"
    loads_quantized = any(find_line(context, name) for name in _QUANTIZED)
    is_certain = not (is_inference or moving or training.strategy.startswith("deepspeed"))
    for target in context.targets_by_gpu.values():
        workload = training_workload(context, target)
        vram = capacity_of(context, target, "vram")
        if workload is None or vram is None:
            continue
        least = minimum_memory(workload, context.facts)
        estimate = estimate_memory(workload, context.facts)
        has = f"but {vram.provider} has {format_size(vram.bytes)}"
        if least > vram.bytes and is_certain:
            message = (
                f"weights, gradients and optimizer state take at least {format_size(least)} on "
                f"each GPU, {has}"
            )
            why = "They do not fit even at 16-bit precision and without activations."
            severity = vram.evidence.cap_severity(Severity.ERROR)
        elif estimate.total > vram.bytes:
            message = (
                f"{'inference' if is_inference else 'training'} takes about "
                f"{format_size(estimate.total)} on each GPU ({_format_parts(estimate)}), {has}"
            )
            why = _why(estimate, is_inference=is_inference)
            severity = Severity.WARNING
            if is_inference and least <= vram.bytes and loads_quantized:
                severity = Severity.INFO
        else:
            continue
        yield RULE.diagnostic(
            message,
            ("training", "model", "parameters"),
            severity=severity,
            why=why,
            help=_help(context, target, workload, vram),
            related=related_at(vram.route, "GPU requested here"),
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


def _why(estimate: MemoryEstimate, *, is_inference: bool) -> str:
    unknown = [*estimate.unknown, *(["quantization"] if is_inference else [])]
    why = "The run would fail with an out-of-memory error."
    if unknown:
        why += f" Not counted: {'; '.join(unknown)}."
    if estimate.assumed:
        why += f" Assumed: {'; '.join(estimate.assumed)}."
    return why


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
    """Return the changes of `training` to suggest: the least sufficient, sharding, the largest."""
    savings = find_savings(workload, context.facts, half=half)
    enough = [saving for saving in savings if saving.total <= vram.bytes]
    gentle = [saving for saving in enough if "method" not in saving.change]
    sharded = [saving for saving in enough if "strategy" in saving.change]
    named = [
        f"set {_format_change(saving)}, which reduces the memory needed on each GPU from "
        f"{format_size(saving.total + saving.saved_bytes)} to {format_size(saving.total)}"
        for saving in (*gentle[:1], *sharded, *savings[:1])
    ]
    if savings and not enough:
        together = combine_savings(workload, vram.bytes, context.facts, half=half)
        more = ", but this is still too much"
        if together:
            changes = " and ".join(map(_format_change, together[1:]))
            more = f", and {changes}, which reduces it to {format_size(together[-1].total)}"
        named[-1] += more
    return tuple(dict.fromkeys(named))


def _other_savings(
    context: LintContext, target: TargetFacts, workload: Workload, vram: Capacity, half: str
) -> Iterator[str]:
    """Yield changes that are not fields of `training`."""
    least = minimum_memory(workload, context.facts)
    fits = least <= vram.bytes
    if workload.method == "full" and fits:
        spread = f" on each of {workload.devices} GPUs" if workload.devices > 1 else ""
        yield (
            f"load the model in {half}: weights, gradients and optimizer state then take at least "
            f"{format_size(least)}{spread}"
        )
    if workload.method != "inference":
        return
    if fits:
        yield f"use a model quantized to 4 bits, with weights of {format_size(least)}"
    if target.card is None or workload.strategy != "none":
        return
    counts: Sequence[int] = ()
    if isinstance(target.target, LocalTarget):
        counts = _SEVERAL
    elif isinstance(target.target, WorkbenchTarget):
        reserved = target.target.reservation is not None
        counts = available_gpu_counts(context.facts, target.card, reserved=reserved)
    for count in counts:
        estimate = estimate_memory(workload._replace(devices=count), context.facts)
        if count > workload.devices and estimate.total <= vram.bytes:
            yield f"distribute the model over more GPUs: `gpu: {target.card.name}:{count}`"
            return


def _format_change(saving: MemorySaving) -> str:
    return ", ".join(
        f"`{key}: {str(value).lower() if isinstance(value, bool) else value}`"
        for key, value in saving.change.items()
    )


def _larger_card(context: LintContext, target: TargetFacts, workload: Workload) -> str:
    total = estimate_memory(workload, context.facts).total
    larger = [
        card
        for card in context.facts.cards
        if card.memory_gb * GIB > total
        and getattr(card, target.target.kind, False)
        and card.status not in UNAVAILABLE_STATUS
    ]
    if not larger:
        return f"use a GPU with more than {format_size(total)}"
    card = min(larger, key=lambda card: card.memory_gb)
    return f"use `gpu: {card.name}` with {card.memory_gb:g} GiB"


RULE = Rule(
    id="MEM001",
    name="gpu-memory",
    severity=Severity.ERROR,
    sources=(
        "Hugging Face transformers documentation, Model training anatomy",
        "Korthikanti et al., arXiv 2205.05198, table 2 (activations)",
        "ZeRO, arXiv 1910.02054 (sharding)",
        "accelerate 1.15.0, commands/estimate.py",
        ("transformers documentation, Quantization and Tensor parallelism"),
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: «7B»}}\n',
        'gpu: T4\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: fp16, model: {parameters: «1.1B»}}\n",
        'gpu: L4\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: bf16, batch_size: 16, sequence_length: 2048, model: "
        "{parameters: «350M», hidden_size: 1024, layers: 24}}\n",
    ),
    good=examples(
        'gpu: L4\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: bf16, model: {parameters: 1.1B}}\n",
        'gpu: L4\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: bf16, method: qlora, model: {parameters: 7B, hidden_size: "
        "4096, layers: 32}}\n",
        'gpu: none\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: 7B}}\n',
        'gpu: L4:2\npython: "3.12"\npackages: [torch]\n'
        "training: {method: inference, precision: bf16, model: {parameters: 13B}}\n",
    ),
)
