"""A secret is named in a way that no declared target can follow.

## What it does

Compares the kind of each entry under `secrets` with the kinds of targets: `{env: ...}` is read
on this machine, by local targets; `{colab: ...}` by Colab;
`{secret: projects/...}` by Workbench instances.

## Why

A Workbench instance does not see the variables of your shell, and a laptop does not see the
secrets stored in Colab. The variable would be missing there.

## How to fix

Name it in the way of the targets that the spec has.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.rules.rule import Example, LintContext, Rule, examples

_KINDS = {"env": "local", "colab": "colab"}
_MANAGER = "name it in Secret Manager: {secret: projects/PROJECT/secrets/NAME/versions/1}"
_WAYS = {
    "local": "name a variable of this machine: {env: NAME}",
    "colab": "name it in Colab's own store: {colab: NAME}",
    "workbench": _MANAGER,
}


def check(context: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each secret that none of the targets can fetch."""
    kinds = {target.kind for target in context.spec.targets.values()}
    for name, reference in context.spec.secrets.items():
        for field, kind in _KINDS.items():
            if getattr(reference, field) is not None and kind not in kinds:
                yield RULE.diagnostic(
                    f"secrets.{name} is read by {kind} targets only, and the targets here "
                    f"are {', '.join(sorted(kinds))}",
                    ("secrets", name, field),
                    why=f"{name} would not be set at any of them.",
                    help=" or ".join(way for kind, way in _WAYS.items() if kind in kinds)
                    or _MANAGER,
                )


RULE = Rule(
    id="SEC004",
    name="secret-unreachable",
    severity=Severity.ERROR,
    sources=("the spec language: kinds of secret references",),
    check=check,
    bad=(
        Example(
            'gpu: T4\npython: "3.13"\npackages: []\nsecrets: {HF_TOKEN: {env: '
            "LOCAL_HF}}\ntargets: {colab: {kind: colab}}\n",
            "LOCAL_HF",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {colab: MINE}}\n', "MINE"
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n',
        'gpu: T4\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n'
        "targets: {here: {kind: local}, wb: {kind: workbench, project: p, zones: "
        "[us-central1-a]}}\n",
    ),
)
