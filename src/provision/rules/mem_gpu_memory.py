"""The training does not fit into the memory of the card.

## What it does

Reckons weights, gradients, optimizer state and activations from `training`, and compares them with the memory of one card. It is an error only where weights,
gradients and optimizer state cannot fit even with all of them in 16 bits; else a warning, because programs differ in what they keep.

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
from provision.rules.rule import Case, Example, Rule, seen
from provision.rules.sites import Site
from provision.rules.workloads import Room, size, vram, workload

_ELSEWHERE = ("deepspeed", "fsdp", "fsdp_config")
"""TrainingArguments that may move a part of the training to RAM."""


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each kind of card that the training does not fit."""
    if case.spec.training.model is None:
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
        message = f"training takes {_about(found)} on each GPU ({_parts(found)}), and {room.of} has {size(room.bytes)}"
        why, severity = _why(found), Severity.WARNING
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


def _certain(case: Case) -> bool:
    training = case.spec.training
    return training.method != "inference" and not training.strategy.startswith("deepspeed") and not set(_ELSEWHERE) & set(training.arguments)


def _about(found: Estimate) -> str:
    return f"{'at least' if found.unknown else 'about'} {size(found.total)}"


def _parts(found: Estimate) -> str:
    parts = {
        "weights": found.weights,
        "gradients": found.gradients,
        "optimizer": found.optimizer,
        "activations": found.activations,
        "CUDA context": found.overhead,
    }
    return ", ".join(f"{name} {size(count)}" for name, count in parts.items() if count)


def _why(found: Estimate) -> str:
    if not found.unknown:
        return "What does not fit ends in an out-of-memory error in the first steps."
    return f"What does not fit ends in an out-of-memory error; not counted: {'; '.join(found.unknown)}."


def _way_out(case: Case, site: Site, work: Workload, room: Room) -> str:
    half = "bf16" if site.card and case.facts.feature(site.card, "bf16") else "fp16"
    levers = case.facts.levers(work, half=half)
    gentle = [lever for lever in levers if lever.total <= room.bytes and "method" not in lever.change]
    named = list(dict.fromkeys(f"{_change(lever)} saves {size(lever.saves)} and leaves {size(lever.total)}" for lever in (*gentle[:1], *levers[:1])))
    if levers and levers[0].total > room.bytes:
        together = case.facts.levers_together(work, room.bytes, half=half)
        more = f"with {' and '.join(_change(lever) for lever in together[1:])} it leaves {size(together[-1].total)}" if together else "still too much"
        named[-1] += f", {more}"
    return "; ".join([*named, _larger(case, site, work)])


def _change(lever: Lever) -> str:
    return ", ".join(f"{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in lever.change.items())


def _larger(case: Case, site: Site, work: Workload) -> str:
    total = case.facts.memory(work).total
    offered = (card for card in case.facts.cards if getattr(card, site.target.kind, "") and card.status not in ("retired", "removed"))
    larger = min((card for card in offered if card.memory_gb * 2**30 > total), key=lambda card: card.memory_gb, default=None)
    return f"or gpu: {larger.name} with {larger.memory_gb:g} GiB" if larger else f"or a card with more than {size(total)}"


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
    ),
)
