"""Training pushes to the Hub without a token.

## What it does

Looks for `push_to_hub: true` under `training.arguments` without HF_TOKEN in `secrets` or `env`.

## Why

Trainer creates the repository when it starts. Without a token that fails with "401 Unauthorized",
or uses the account of whoever logged in on that machine.

## How to fix

Add `secrets: {HF_TOKEN: {env: HF_TOKEN}}`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.packages.credentials import add_secret_fix, declares_variable
from provision.rules.rule import Findings, LintContext, Rule, examples

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
        "`push_to_hub: true` needs a token, but HF_TOKEN is not in `secrets`",
        ("training", "arguments", "push_to_hub"),
        why=(
            "Trainer creates the repository when it starts, and without a token the Hub returns "
            "401 Unauthorized."
        ),
        help=(
            "add HF_TOKEN to `secrets`; for a local target, set `secrets: {HF_TOKEN: {env: "
            "HF_TOKEN}}`"
        ),
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
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {push_to_hub: «true»}}\n",
        'gpu: none\npython: "3.11"\npackages: [torch]\nsecrets: {A: {env: A}}\n'
        "training: {arguments: {hub_model_id: a/b, push_to_hub: «true»}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch]\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n'
        "training: {arguments: {push_to_hub: true}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {push_to_hub: false}}\n",
    ),
)
