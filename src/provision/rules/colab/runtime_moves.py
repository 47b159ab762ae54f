"""A Colab target takes whatever runtime is the newest that day.

## What it does

Finds Colab targets on `latest`, written or by default, where a runtime version could be named: one
with the spec's Python, or any one with `isolation: venv`. With `via: colab-cli` there is no choice:
that way always ends on the newest.

## Why

From one runtime version to the next about a third of some 700 packages changes, and now and then
Python itself (3.12 to 3.13 in August 2026). What was verified is then not what runs.

## How to fix

Name the version: it is written into the notebook, which Colab then opens on that runtime.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import colab_targets, pinnable_runtimes, set_runtime_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    python = context.spec.python
    for colab in colab_targets(context):
        if colab.target.runtime != "latest" or colab.target.via != "browser":
            continue
        runtime = colab.facts.runtime
        is_isolated = colab.target.isolation == "venv"
        versions = pinnable_runtimes(context, None if is_isolated else python)
        if not versions or not (is_isolated or (runtime and runtime.minor == python)):
            continue
        newest = versions[-1].runtime
        yield RULE.diagnostic(
            f"target {colab.name}: runtime latest is another one every few weeks; the newest that "
            f"can be named is {newest}",
            colab.runtime_route,
            why="Its packages, and now and then its Python, change without a change of the spec.",
            help=f'write runtime: "{newest}"',
            fix=set_runtime_fix(context, colab, newest, "name"),
        )


RULE = Rule(
    id="IMG022",
    name="colab-runtime-moves",
    severity=Severity.INFO,
    sources=(
        "googlecolab/backend-info, 698 lists of packages from 2022-09 to 2026-08",
        "googlecolab/colabtools#6081",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            "isolation: venv}\n",
            "{kind: colab, isolation: venv}",
        ),
        Example(
            'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab, '
            "runtime: latest, isolation: venv}\n",
            "latest",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        "via: colab-cli, isolation: venv}\n",
    ),
)
