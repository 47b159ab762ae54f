"""Training pushes to the Hub, and nothing brings a token.

## What it does

Looks for `push_to_hub: true` under `training.arguments` without HF_TOKEN among `secrets` or `env`.

## Why

Trainer makes the repository when it starts: without a token that ends in "401 Unauthorized", or in
the wrong account where somebody logged in on that machine.

## How to fix

Add `secrets: {HF_TOKEN: {env: HF_TOKEN}}`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.packages.credentials import add_secret_fix, declares_variable
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH")
"""Variables that huggingface_hub reads a token from (huggingface_hub documentation, environment
variables).
"""


def _check(context: LintContext) -> Findings:
    arguments = context.spec.training.arguments
    if (
        context.resolved is not None
        or arguments.get("push_to_hub") is not True
        or "hub_token" in arguments
        or declares_variable(context, *TOKENS)
    ):
        return
    yield RULE.diagnostic(
        "push_to_hub: true needs a token, and no HF_TOKEN is among secrets",
        ("training", "arguments", "push_to_hub"),
        why="Trainer makes the repository when it starts, and the Hub answers 401 Unauthorized.",
        help="add HF_TOKEN to secrets, as in secrets: {HF_TOKEN: {env: HF_TOKEN}} for a local "
        "target",
        fix=add_secret_fix(context, "HF_TOKEN"),
    )


RULE = Rule(
    id="PKG023",
    name="push-without-token",
    severity=Severity.WARNING,
    sources=(
        "huggingface_hub documentation, environment variables",
        "push_to_hub in training_args.py of the transformers wheels",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{arguments: {push_to_hub: true}}\n",
            "true",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch]\nsecrets: {A: {env: '
            "A}}\ntraining: {arguments: {hub_model_id: a/b, push_to_hub: true}}\n",
            "true",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\nsecrets: {HF_TOKEN: {env: '
        "HF_TOKEN}}\ntraining: {arguments: {push_to_hub: true}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{arguments: {push_to_hub: false}}\n",
    ),
)
