"""No target can read a secret from the declared source.

## What it does

Compares the source of each entry under `secrets` with the kinds of targets: local targets read
`{env: ...}` on this machine, Colab reads `{colab: ...}`, and Workbench instances read `{secret:
projects/...}`. A secret that only some of the targets can read is a warning.

## Why

A Workbench instance does not see the variables of your shell, and a laptop does not see the secrets
stored in Colab. The variable would not be set at that target.

## How to fix

Use a source that the targets of the spec can read.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds.base import SecretSource
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.target_facts import find_target_refusals


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:  # a resolved set is for some of the targets only
        return
    registered = context.spec.registry.kinds
    kinds = {target.kind.name: target.kind for target in context.targets}
    sources = set().union(*(kind.secret_sources for kind in kinds.values()))
    for name, reference in context.spec.secrets.items():
        if reference.source not in sources:
            readers = [kind for kind in registered if reference.source in kind.secret_sources]
            hints = [kind.reference_hint for kind in kinds.values() if kind.secret_sources]
            yield RULE.diagnostic(
                f"only {' and '.join(kind.name for kind in readers)} targets can read "
                f"secrets.{name}, but the spec has {', '.join(sorted(kinds))} targets",
                ("secrets", name, reference.source),
                why=f"{name} would not be set at any target.",
                help=" or ".join(hints) or "remove it: no target of the spec reads secrets",
            )
    yield from _refused_by_some(context, sources)


def _refused_by_some(context: LintContext, sources: set[SecretSource]) -> Findings:
    for target in context.spec.targets:
        for refusal in find_target_refusals(context.spec, target, context.facts):
            if refusal.rule != RULE.id:
                continue
            name = str(refusal.route[1])
            source = context.spec.secrets[name].source
            if source in sources:
                yield RULE.diagnostic(
                    f"target {target} cannot read secrets.{name}: {refusal.why}",
                    ("secrets", name, source),
                    why=f"plan refuses target {target}.",
                    help=refusal.hint,
                    severity=Severity.WARNING,
                )


RULE = Rule(
    id="SEC004",
    name="secret-unreachable",
    severity=Severity.ERROR,
    sources=("the spec language: kinds of secret references",),
    check=_check,
    bad=examples(
        'gpu: T4\npython: "3.13"\npackages: []\nsecrets: {HF_TOKEN: {env: «LOCAL_HF»}}\n'
        "targets: {colab: {kind: colab}}\n",
        'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {colab: «MINE»}}\n',
        example(
            'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: «LOCAL_HF»}}\n'
            "targets: {here: {kind: local}, colab: {kind: colab, isolation: venv}}\n",
            other_ids=("IMG022",),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n',
        'gpu: T4\npython: "3.11"\npackages: []\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n'
        "targets: {here: {kind: local}, wb: {kind: workbench, project: p, zones: "
        "[us-central1-a]}}\n",
    ),
)
