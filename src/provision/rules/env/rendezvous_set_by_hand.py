"""The address at which processes meet is set by hand.

## What it does

Looks for MASTER_ADDR, MASTER_PORT, NODE_RANK and GROUP_RANK in `env`.

## Why

A launcher on one machine finds a free port by itself. A fixed one collides when two trainings run
there, and an address in the spec is the same for all targets.

## How to fix

Remove it. For several machines, pass the address to torchrun or accelerate on the command line.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

NAMES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "GROUP_RANK")


def _check(context: LintContext) -> Findings:
    for name in NAMES if context.resolved is None else ():
        if name in context.spec.env:
            yield RULE.diagnostic(
                f"{name} is set by hand; a launcher sets it",
                ("env", name),
                at=RoutePart.KEY,
                why="It is the same for all targets and all trainings: two of them on one "
                "machine collide.",
                help=f"take {name} out, and give it to the launcher where several machines "
                "train together",
            )


RULE = Rule(
    id="ENV003",
    name="rendezvous-set-by-hand",
    severity=Severity.WARNING,
    sources=("PyTorch documentation, torchrun, environment variables",),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {MASTER_PORT: "29500"}\n',
            "MASTER_PORT",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {MASTER_ADDR: localhost}\n',
            "MASTER_ADDR",
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {NCCL_DEBUG: WARN}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\n',
    ),
)
