"""A variable stands both in `env` and in `secrets`.

## What it does

Compares the names of the two.

## Why

Both set the same variable, and only one value can hold: the one written in the spec hides whether
the secret was fetched, or the other way round.

## How to fix

Take it out of `env`.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.examples import EMPTY_SPEC
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for name in context.spec.env:
        if name in context.spec.secrets:
            yield RULE.diagnostic(
                f"{name} stands in `env` and in `secrets`",
                ("env", name),
                at=RoutePart.KEY,
                why="Only one of the two values can hold.",
                help="take it out of `env`",
                related=related_at(("secrets", name), "the secret"),
            )


RULE = Rule(
    id="ENV013",
    name="variable-and-secret",
    severity=Severity.ERROR,
    sources=("the spec language: both become variables of what runs there",),
    check=_check,
    bad=(
        Example(
            f'{EMPTY_SPEC}env: {{HF_TOKEN: ""}}\nsecrets: {{HF_TOKEN: {{env: HF_TOKEN}}}}\n',
            "HF_TOKEN",
        ),
        Example(
            f"{EMPTY_SPEC}env: {{WANDB_MODE: online, KEY: $KEY}}\nsecrets: {{KEY: {{env: KEY}}}}\n",
            "KEY",
        ),
    ),
    good=examples(
        f"{EMPTY_SPEC}env: {{HF_HOME: /data/hf}}\nsecrets: {{HF_TOKEN: {{env: HF_TOKEN}}}}\n",
        f"{EMPTY_SPEC}env: {{WANDB_MODE: online}}\n",
    ),
)
