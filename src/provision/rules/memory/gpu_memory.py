"""The training does not fit into the memory of the card.

## What it does

Reckons weights, gradients, optimizer state and activations from `training`, and compares them
with the memory of one card. It is an error only where weights,
gradients and optimizer state cannot fit even with all of them in 16 bits; else a warning,
because programs differ in what they keep. Inference on several cards
is taken as spread over them. Where packages are listed that load quantized models it is a note,
and with offload in `training.arguments` nothing is said: what
moves to RAM is not known.

## Why

Out of memory is said when the model is moved to the card, or in the first step, after the
machine was made and everything was installed.

## How to fix

Take the change that is named, a smaller model, or a card with more memory. With `hidden_size`,
`layers`, `batch_size` and `sequence_length`
given, activations are counted as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.memory import MemoryEstimate, MemorySaving, Workload
from provision.kinds import LocalTarget, WorkbenchTarget
from provision.kinds.base import Capacity
from provision.rules.memory.capacity import format_size, training_workload, vram_capacity
from provision.rules.package_lines import find_line
from provision.rules.rule import Example, LintContext, Rule, related_at
from provision.rules.workbench_instances import available_gpu_counts
from provision.target_facts import TargetFacts

_ELSEWHERE = ("deepspeed", "fsdp", "fsdp_config")
"""TrainingArguments that may move a part of the training to RAM."""
_QUANTIZED = ("auto-gptq", "autoawq", "bitsandbytes", "compressed-tensors", "gptqmodel", "vllm")
"""Packages that load weights of 8 or 4 bits (documentation of transformers and vLLM, Quantization).
A spec cannot say that its model has such.
"""
_SEVERAL = (2, 4, 8)
"""Cards of one machine that are proposed where nothing is known of the place. Our choice."""


def check(case: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each kind of card that the training does not fit."""
    if case.spec.training.model is None or _offloaded(case):
        return
    for site in {site.gpu_settings.gpu_route: site for site in case.targets}.values():
        work, room = training_workload(case, site), vram_capacity(case, site)
        if work is not None and room is not None:
            yield from _judge(case, site, work, room)


def _judge(
    case: LintContext, site: TargetFacts, work: Workload, room: Capacity
) -> Iterator[Diagnostic]:
    least, found = case.facts.minimum_memory(work), case.facts.estimate_memory(work)
    if least > room.bytes and _certain(case):
        message = (
            f"weights, gradients and optimizer state take at least {format_size(least)} on "
            f"each GPU, and {room.provider} has {format_size(room.bytes)}"
        )
        why, severity = (
            "They do not fit even with all of them in 16 bits, whatever the batch size.",
            room.at_most(Severity.ERROR),
        )
    elif found.total > room.bytes:
        what = "inference" if work.method == "inference" else "training"
        message = (
            f"{what} takes about {format_size(found.total)} on each GPU ({_parts(found)}), and "
            f"{room.provider} has {format_size(room.bytes)}"
        )
        why, severity = (
            _why(found, work),
            Severity.INFO if least <= room.bytes and _quantized(case) else Severity.WARNING,
        )
    else:
        return
    yield RULE.diagnostic(
        message,
        ("training", "model", "parameters"),
        severity=severity,
        why=why,
        way_out=_way_out(case, site, work, room),
        related=(related_at(room.route, "card asked for here"),),
    )


def _offloaded(case: LintContext) -> bool:
    arguments = case.spec.training.arguments
    return any("offload" in str(arguments.get(key, "")).lower() for key in _ELSEWHERE)


def _quantized(case: LintContext) -> bool:
    return case.spec.training.method == "inference" and any(
        find_line(case, name) for name in _QUANTIZED
    )


def _certain(case: LintContext) -> bool:
    training = case.spec.training
    return (
        training.method != "inference"
        and not training.strategy.startswith("deepspeed")
        and not set(_ELSEWHERE) & set(training.arguments)
    )


def _parts(found: MemoryEstimate) -> str:
    parts = {
        "weights": found.weights,
        "gradients": found.gradients,
        "optimizer": found.optimizer,
        "activations": found.activations,
        "CUDA context": found.overhead,
    }
    return ", ".join(f"{name} {format_size(count)}" for name, count in parts.items() if count)


def _why(found: MemoryEstimate, work: Workload) -> str:
    left_out = (*found.unknown, *(("quantization",) if work.method == "inference" else ()))
    said = [
        f"{word}: {'; '.join(what)}"
        for word, what in (("Not counted", left_out), ("Assumed", found.assumed))
        if what
    ]
    return ". ".join(["What does not fit ends in an out-of-memory error", *said]) + "."


def _way_out(case: LintContext, site: TargetFacts, work: Workload, room: Capacity) -> str:
    half = "bf16" if site.card and case.facts.has_feature(site.card, "bf16") else "fp16"
    *most, last = [
        *_levers(case, work, room, half),
        *_other(case, site, work, room, half),
        _larger(case, site, work),
    ]
    return "; ".join([*most, f"or {last}"]) if most else last


def _levers(case: LintContext, work: Workload, room: Capacity, half: str) -> tuple[str, ...]:
    """Return the changes of `training` that are named: the gentlest that is enough, sharding where
    it is, and the one that saves most.
    """
    levers = case.facts.memory_savings(work, half=half)
    enough = [lever for lever in levers if lever.total <= room.bytes]
    gentle = [lever for lever in enough if "method" not in lever.change]
    sharded = [lever for lever in enough if "strategy" in lever.change]
    named = list(
        dict.fromkeys(
            f"{_change(lever)} saves {format_size(lever.saved_bytes)} and leaves "
            f"{format_size(lever.total)}"
            for lever in (*gentle[:1], *sharded, *levers[:1])
        )
    )
    if levers and levers[0].total > room.bytes:
        together = case.facts.combined_savings(work, room.bytes, half=half)
        more = (
            f"with {' and '.join(_change(lever) for lever in together[1:])} it leaves "
            f"{format_size(together[-1].total)}"
            if together
            else "still too much"
        )
        named[-1] += f", {more}"
    return tuple(named)


def _other(
    case: LintContext, site: TargetFacts, work: Workload, room: Capacity, half: str
) -> Iterator[str]:
    """Yield what a program can do beside the fields of `training`."""
    least = case.facts.minimum_memory(work)
    if work.method == "full" and least <= room.bytes:
        spread = f" on each of {work.devices} GPUs" if work.devices > 1 else ""
        (
            yield f"load the model in {half}, with which weights, gradients and optimizer state "
            "take "
            f"at least {format_size(least)}{spread}"
        )
    if work.method != "inference":
        return
    if least <= room.bytes:
        yield f"take a model quantized to 4 bits, with weights of {format_size(least)}"
    if (
        site.card is not None
        and work.strategy == "none"
        and isinstance(site.target, LocalTarget | WorkbenchTarget)
    ):
        reserved = isinstance(site.target, WorkbenchTarget) and site.target.reservation is not None
        offered = (
            available_gpu_counts(case.facts, site.card, reserved=reserved)
            if isinstance(site.target, WorkbenchTarget)
            else _SEVERAL
        )
        fits = (
            count
            for count in offered
            if count > work.devices
            and case.facts.estimate_memory(work._replace(devices=count)).total <= room.bytes
        )
        if count := next(fits, None):
            yield f"spread the model over more cards, gpu: {site.card.name}:{count}"


def _change(lever: MemorySaving) -> str:
    return ", ".join(
        f"{key}: {str(value).lower() if isinstance(value, bool) else value}"
        for key, value in lever.change.items()
    )


def _larger(case: LintContext, site: TargetFacts, work: Workload) -> str:
    total = case.facts.estimate_memory(work).total
    offered = (
        card
        for card in case.facts.cards
        if getattr(card, site.target.kind, "") and card.status not in ("retired", "removed")
    )
    larger = min(
        (card for card in offered if card.memory_gb * 2**30 > total),
        key=lambda card: card.memory_gb,
        default=None,
    )
    return (
        f"gpu: {larger.name} with {larger.memory_gb:g} GiB"
        if larger
        else f"a card with more than {format_size(total)}"
    )


RULE = Rule(
    id="MEM001",
    name="gpu-memory",
    severity=Severity.ERROR,
    summary="The training does not fit into the memory of the card.",
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
    page=__doc__,
    check=check,
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
    good=(
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: bf16, '
            "model: {parameters: 1.1B}}\n"
        ),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: bf16, '
            "method: qlora, model: {parameters: 7B, hidden_size: 4096, layers: 32}}\n"
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: 7B}}\n'
        ),
        Example(
            'gpu: L4:2\npython: "3.12"\npackages: [torch]\ntraining: {method: inference, '
            "precision: bf16, model: {parameters: 13B}}\n"
        ),
    ),
)
