"""The training does not fit into the memory of the card.

## What it does

Reckons weights, gradients, optimizer state and activations from `training`, and compares them with the memory of one card. It is an error only where weights,
gradients and optimizer state cannot fit even with all of them in 16 bits; else a warning, because programs differ in what they keep. Inference on several cards
is taken as spread over them. Where packages are listed that load quantized models it is a note, and with offload in `training.arguments` nothing is said: what
moves to RAM is not known.

## Why

Out of memory is said when the model is moved to the card, or in the first step, after the machine was made and everything was installed.

## How to fix

Take the change that is named, a smaller model, or a card with more memory. With `hidden_size`, `layers`, `batch_size` and `sequence_length`
given, activations are counted as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.facts.memory import Estimate, Lever, Workload
from provision.places import LocalTarget, WorkbenchTarget
from provision.rules.instances import counts
from provision.rules.lines import line
from provision.rules.rule import Case, Example, Rule, seen
from provision.rules.workloads import Room, size, vram, workload
from provision.sites import Site

_ELSEWHERE = ("deepspeed", "fsdp", "fsdp_config")
"""TrainingArguments that may move a part of the training to RAM."""
_QUANTIZED = ("auto-gptq", "autoawq", "bitsandbytes", "compressed-tensors", "gptqmodel", "vllm")
"""Packages that load weights of 8 or 4 bits (documentation of transformers and vLLM, Quantization). A spec cannot say that its model has such."""
_SEVERAL = (2, 4, 8)
"""Cards of one machine that are proposed where nothing is known of the place. Our choice."""


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each kind of card that the training does not fit."""
    if case.spec.training.model is None or _offloaded(case):
        return
    for site in {site.device.gpu_route: site for site in case.sites}.values():
        work, room = workload(case, site), vram(case, site)
        if work is not None and room is not None:
            yield from _judge(case, site, work, room)


def _judge(case: Case, site: Site, work: Workload, room: Room) -> Iterator[Diagnostic]:
    least, found = case.facts.least_memory(work), case.facts.memory(work)
    if least > room.bytes and _certain(case):
        message = f"weights, gradients and optimizer state take at least {size(least)} on each GPU, and {room.of} has {size(room.bytes)}"
        why, severity = "They do not fit even with all of them in 16 bits, whatever the batch size.", room.at_most(Severity.ERROR)
    elif found.total > room.bytes:
        what = "inference" if work.method == "inference" else "training"
        message = f"{what} takes about {size(found.total)} on each GPU ({_parts(found)}), and {room.of} has {size(room.bytes)}"
        why, severity = _why(found, work), Severity.INFO if least <= room.bytes and _quantized(case) else Severity.WARNING
    else:
        return
    yield RULE.found(
        message,
        ("training", "model", "parameters"),
        severity=severity,
        why=why,
        way_out=_way_out(case, site, work, room),
        related=(seen(room.route, "card asked for here"),),
    )


def _offloaded(case: Case) -> bool:
    arguments = case.spec.training.arguments
    return any("offload" in str(arguments.get(key, "")).lower() for key in _ELSEWHERE)


def _quantized(case: Case) -> bool:
    return case.spec.training.method == "inference" and any(line(case, name) for name in _QUANTIZED)


def _certain(case: Case) -> bool:
    training = case.spec.training
    return training.method != "inference" and not training.strategy.startswith("deepspeed") and not set(_ELSEWHERE) & set(training.arguments)


def _parts(found: Estimate) -> str:
    parts = {
        "weights": found.weights,
        "gradients": found.gradients,
        "optimizer": found.optimizer,
        "activations": found.activations,
        "CUDA context": found.overhead,
    }
    return ", ".join(f"{name} {size(count)}" for name, count in parts.items() if count)


def _why(found: Estimate, work: Workload) -> str:
    left_out = (*found.unknown, *(("quantization",) if work.method == "inference" else ()))
    said = [f"{word}: {'; '.join(what)}" for word, what in (("Not counted", left_out), ("Assumed", found.assumed)) if what]
    return ". ".join(["What does not fit ends in an out-of-memory error", *said]) + "."


def _way_out(case: Case, site: Site, work: Workload, room: Room) -> str:
    half = "bf16" if site.card and case.facts.feature(site.card, "bf16") else "fp16"
    *most, last = [*_levers(case, work, room, half), *_other(case, site, work, room, half), _larger(case, site, work)]
    return "; ".join([*most, f"or {last}"]) if most else last


def _levers(case: Case, work: Workload, room: Room, half: str) -> tuple[str, ...]:
    """Return the changes of `training` that are named: the gentlest that is enough, sharding where it is, and the one that saves most."""
    levers = case.facts.levers(work, half=half)
    enough = [lever for lever in levers if lever.total <= room.bytes]
    gentle = [lever for lever in enough if "method" not in lever.change]
    sharded = [lever for lever in enough if "strategy" in lever.change]
    named = list(dict.fromkeys(f"{_change(lever)} saves {size(lever.saves)} and leaves {size(lever.total)}" for lever in (*gentle[:1], *sharded, *levers[:1])))
    if levers and levers[0].total > room.bytes:
        together = case.facts.levers_together(work, room.bytes, half=half)
        more = f"with {' and '.join(_change(lever) for lever in together[1:])} it leaves {size(together[-1].total)}" if together else "still too much"
        named[-1] += f", {more}"
    return tuple(named)


def _other(case: Case, site: Site, work: Workload, room: Room, half: str) -> Iterator[str]:
    """Yield what a program can do beside the fields of `training`."""
    least = case.facts.least_memory(work)
    if work.method == "full" and least <= room.bytes:
        spread = f" on each of {work.devices} GPUs" if work.devices > 1 else ""
        yield f"load the model in {half}, with which weights, gradients and optimizer state take at least {size(least)}{spread}"
    if work.method != "inference":
        return
    if least <= room.bytes:
        yield f"take a model quantized to 4 bits, with weights of {size(least)}"
    if site.card is not None and work.strategy == "none" and isinstance(site.target, LocalTarget | WorkbenchTarget):
        reserved = isinstance(site.target, WorkbenchTarget) and site.target.reservation is not None
        offered = counts(case.facts, site.card, reserved=reserved) if isinstance(site.target, WorkbenchTarget) else _SEVERAL
        fits = (count for count in offered if count > work.devices and case.facts.memory(work._replace(devices=count)).total <= room.bytes)
        if count := next(fits, None):
            yield f"spread the model over more cards, gpu: {site.card.name}:{count}"


def _change(lever: Lever) -> str:
    return ", ".join(f"{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in lever.change.items())


def _larger(case: Case, site: Site, work: Workload) -> str:
    total = case.facts.memory(work).total
    offered = (card for card in case.facts.cards if getattr(card, site.target.kind, "") and card.status not in ("retired", "removed"))
    larger = min((card for card in offered if card.memory_gb * 2**30 > total), key=lambda card: card.memory_gb, default=None)
    return f"gpu: {larger.name} with {larger.memory_gb:g} GiB" if larger else f"a card with more than {size(total)}"


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
        "transformers documentation, Quantization and Tensor parallelism; vLLM documentation, Quantization",
    ),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: 7B}}\n', "7B"),
        Example('gpu: T4\npython: "3.12"\npackages: [torch]\ntraining: {precision: fp16, model: {parameters: 1.1B}}\n', "1.1B"),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\n'
            "training: {precision: bf16, batch_size: 16, sequence_length: 2048, model: {parameters: 350M, hidden_size: 1024, layers: 24}}\n",
            "350M",
        ),
    ),
    good=(
        Example('gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: bf16, model: {parameters: 1.1B}}\n'),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: bf16, method: qlora, model: {parameters: 7B, hidden_size: 4096, layers: 32}}\n'
        ),
        Example('gpu: none\npython: "3.12"\npackages: [torch]\ntraining: {model: {parameters: 7B}}\n'),
        Example('gpu: L4:2\npython: "3.12"\npackages: [torch]\ntraining: {method: inference, precision: bf16, model: {parameters: 13B}}\n'),
    ),
)
