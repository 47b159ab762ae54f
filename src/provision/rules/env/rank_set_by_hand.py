"""A variable that a launcher sets for each process is set in the spec.

## What it does

Looks for LOCAL_RANK, RANK, WORLD_SIZE and LOCAL_WORLD_SIZE in `env`. `-1` for the ranks, and 1 for
the sizes, mean a single process and are accepted.

## Why

torchrun and accelerate set different values for every process. The same value in all of them, or in
a single process, makes Trainer set up distributed training: it fails with "environment variable
RANK expected", or waits for processes that never start.

## How to fix

Remove the variable, and set `strategy` and `launcher` under `training`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Findings, LintContext, Rule, examples

SINGLE_PROCESS_VALUES = {
    "LOCAL_RANK": "-1",
    "RANK": "-1",
    "WORLD_SIZE": "1",
    "LOCAL_WORLD_SIZE": "1",
}
"""Each variable with the value that stands for one process alone (accelerate/state.py)."""


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:
        return
    for name, value in context.spec.env.items():
        if value.strip() == SINGLE_PROCESS_VALUES.get(name, value.strip()):
            continue
        yield RULE.diagnostic(
            f"{name} is set in `env`, but the launcher sets it for each process",
            ("env", name),
            at=RoutePart.KEY,
            severity=None if name == "LOCAL_RANK" else Severity.WARNING,
            why=(
                "The program then starts as if it were one of several processes, and fails or "
                "waits for the others."
            ),
            help=f"remove {name}, and set `strategy` and `launcher` under `training`",
        )


RULE = Rule(
    id="ENV001",
    name="rank-set-by-hand",
    severity=Severity.ERROR,
    sources=(
        "accelerate/state.py in the wheel of accelerate 1.15.0",
        "PyTorch documentation, torchrun, environment variables",
        "meta-llama/llama-cookbook#59",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {«LOCAL_RANK»: "0"}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {«WORLD_SIZE»: "2"}\n',
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch]\nenv: {LOCAL_RANK: "-1"}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch]\n'
        'env: {WORLD_SIZE: "1", TOKENIZERS_PARALLELISM: "false"}\n',
    ),
)
