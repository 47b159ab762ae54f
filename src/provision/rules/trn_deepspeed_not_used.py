"""deepspeed is listed, and training does not use it.

## What it does

Looks for the package deepspeed where `strategy` is none, ddp or fsdp and no argument names a DeepSpeed configuration.

## Why

It comes as source alone, and building it takes time and tools for nothing. Where the program does use it, the memory estimate and the rules do not know.

## How to fix

Write `strategy: deepspeed-zero2` (or zero3), or take the package out.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.rules.lines import line
from provision.rules.rule import Case, Example, Rule


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding when deepspeed has no use that the spec names."""
    training, found = case.spec.training, line(case, "deepspeed")
    if found is None or case.resolved is not None or training.strategy.startswith("deepspeed") or "deepspeed" in training.arguments:
        return
    yield RULE.found(
        f"deepspeed is listed, and strategy is {training.strategy}",
        found[0],
        why="It has to be built from source; the memory estimate and the rules go by strategy.",
        way_out="write strategy: deepspeed-zero2 or deepspeed-zero3 under training, or take deepspeed out",
    )


RULE = Rule(
    id="TRN010",
    name="deepspeed-not-used",
    severity=Severity.INFO,
    summary="deepspeed is listed, and training does not use it.",
    sources=("PyPI file lists, 2026-11-20", "the spec language: training.strategy"),
    page=__doc__,
    check=check,
    bad=(
        Example('gpu: L4\npython: "3.11"\npackages: [torch, {name: deepspeed, build: true}]\n', "{name: deepspeed, build: true}"),
        Example('gpu: L4:2\npython: "3.11"\npackages: [torch, {name: deepspeed, build: true}]\ntraining: {strategy: ddp}\n', "{name: deepspeed, build: true}"),
    ),
    good=(
        Example('gpu: L4:2\npython: "3.11"\npackages: [torch, {name: deepspeed, build: true}]\ntraining: {strategy: deepspeed-zero2}\n'),
        Example('gpu: L4\npython: "3.11"\npackages: [torch, {name: deepspeed, build: true}]\ntraining: {arguments: {deepspeed: zero.json}}\n'),
    ),
)
