"""The address at which processes meet is set in the spec.

## What it does

Looks for MASTER_ADDR, MASTER_PORT, NODE_RANK and GROUP_RANK in `env`.

## Why

A launcher on one machine finds a free port by itself. A fixed port causes a collision if two
training runs share the machine, and an address in the spec is the same for all targets.

## How to fix

Remove the variable. For several machines, pass the address to torchrun or accelerate on the command
line.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Findings, LintContext, Rule, examples

NAMES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "GROUP_RANK")


def _check(context: LintContext) -> Findings:
    for name in NAMES if context.resolved is None else ():
        if name in context.spec.env:
            yield RULE.diagnostic(
                f"{name} is set in `env`, but should be set by the launcher",
                ("env", name),
                at=RoutePart.KEY,
                why=(
                    "The value is the same for every target and every training run, so two runs "
                    "on one machine collide."
                ),
                help=f"remove {name}; if several machines train together, pass it to the launcher",
            )


RULE = Rule(
    id="ENV003",
    name="rendezvous-set-by-hand",
    severity=Severity.WARNING,
    sources=("PyTorch documentation, torchrun, environment variables",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {«MASTER_PORT»: "29500"}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {«MASTER_ADDR»: localhost}\n',
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {NCCL_DEBUG: WARN}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\n',
    ),
)
