"""No target can read a secret from the declared source.

## What it does

Compares the sources of each entry under `secrets` with the kinds of targets: local targets read
`{env: ...}` on this machine, Colab reads `{colab: ...}`, and Workbench instances read `{secret:
projects/...}`. A secret that only some of the targets can read is a warning; one that a target
itself declares and cannot read is an error.

## Why

A Workbench instance does not see the variables of your shell, and a laptop does not see the secrets
stored in Colab. The variable would not be set on that target.

## How to fix

Add a source for each kind of target: `HF_TOKEN: {env: HF_TOKEN, colab: HF_TOKEN, secret:
projects/p/secrets/hf/versions/3}`. Each target uses the source that it can read. A target that does
not need the secret removes it with `secrets: {HF_TOKEN: null}`.
"""

from __future__ import annotations

from collections.abc import Mapping

from provision.diagnostics import Route, Severity
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.spec import SecretReference


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:  # a resolved set is for some of the targets only
        return
    unreadable = {name: _find_readers(context, name) for name in context.spec.secrets}
    lost = {name for name, (holders, readers) in unreadable.items() if holders and not readers}
    kinds = {target.kind.name: target.kind for target in context.targets}
    hints = [kind.reference_hint for kind in kinds.values() if kind.secret_sources]
    for name in context.spec.secrets:
        if name in lost:
            yield RULE.diagnostic(
                f"only {_name_readers(context, name)} targets can read secrets.{name}, but the "
                f"spec has {', '.join(sorted(kinds))} targets",
                _route_to(context, ("secrets", name)),
                why=f"{name} would not be set on any target.",
                help=" or ".join(hints) or "remove it: no target in the spec can read secrets",
            )
    yield from _refused_by_some(context, lost)


def _find_readers(context: LintContext, name: str) -> tuple[int, int]:
    """Return how many targets have a secret, and how many of them have a source to read."""
    holders = readers = 0
    for target in context.targets:
        reference = context.spec.with_settings_of(target.name).secrets.get(name)
        if reference is not None:
            holders += 1
            readers += not reference.sources.isdisjoint(target.kind.secret_sources)
    return holders, readers


def _name_readers(context: LintContext, name: str) -> str:
    sources = context.spec.secrets[name].sources
    kinds = context.spec.registry.kinds
    return " and ".join(kind.name for kind in kinds if not sources.isdisjoint(kind.secret_sources))


def _route_to(context: LintContext, route: Route) -> Route:
    """Return the route of the only source of a secret, or that of the secret."""
    declared: Mapping[str, SecretReference | None] = context.spec.secrets
    if route[0] == "targets":
        declared = context.spec.targets[str(route[1])].secrets
    reference = declared[str(route[-1])]
    assert reference is not None  # noqa: S101 - a removed secret is not refused
    return (*route, *reference.sources) if len(reference.sources) == 1 else route


def _refused_by_some(context: LintContext, lost: set[str]) -> Findings:
    for name, refusals in context.refusals.items():
        for refusal in refusals:
            is_shared = refusal.route[0] == "secrets"
            if refusal.rule != RULE.id or (is_shared and refusal.route[1] in lost):
                continue
            yield RULE.diagnostic(
                f"target `{name}` cannot read secrets.{refusal.route[-1]}: {refusal.why}",
                _route_to(context, refusal.route),
                why=f"`plan` will fail for target `{name}`.",
                help=refusal.hint,
                severity=Severity.WARNING if is_shared else None,
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
