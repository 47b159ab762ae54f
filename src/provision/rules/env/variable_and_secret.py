"""A variable is both in `env` and in `secrets`.

## What it does

Compares the names in `env` and `secrets`.

## Why

Both set the same variable, but it can have only one value: the one written in the spec hides
whether the secret was fetched, or the other way round.

## How to fix

Remove the variable from `env`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for name in context.spec.env:
        if name in context.spec.secrets:
            yield RULE.diagnostic(
                f"{name} is both in `env` and in `secrets`",
                ("env", name),
                at=RoutePart.KEY,
                why="The variable can have only one of the two values.",
                help="remove it from `env`",
                related=related_at(("secrets", name), "secret defined here"),
            )


RULE = Rule(
    id="ENV013",
    name="variable-and-secret",
    severity=Severity.ERROR,
    sources=("docs/reference/spec.md: `env` and `secrets` set environment variables for programs",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\nenv: {«HF_TOKEN»: ""}\n'
        "secrets: {HF_TOKEN: {env: HF_TOKEN}}\n",
        'gpu: none\npython: "3.12"\npackages: []\nenv: {WANDB_MODE: online, «KEY»: $KEY}\n'
        "secrets: {KEY: {env: KEY}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\nenv: {HF_HOME: /data/hf}\n'
        "secrets: {HF_TOKEN: {env: HF_TOKEN}}\n",
        'gpu: none\npython: "3.12"\npackages: []\nenv: {WANDB_MODE: online}\n',
    ),
)
