"""A Colab target uses the newest runtime, which changes every few weeks.

## What it does

Finds Colab targets on `latest`, set or by default, that could set a runtime version: one with the
spec's Python, or any version with `isolation: venv`. Targets with `via: colab-cli` are not
reported, as they cannot select a version.

## Why

From one runtime version to the next, about a third of the roughly 700 packages change, and
sometimes the Python too (3.12 to 3.13 in August 2026). A notebook then runs with different packages
than those that were verified.

## How to fix

Set the version. It is written into the notebook, and Colab opens the notebook on that runtime.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import pinnable_runtimes, set_runtime_fix
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    python = context.spec.python
    for target, fields in context.targets_of(ColabTarget):
        if fields.runtime != "latest" or fields.via != "browser":
            continue
        runtime = target.runtime
        is_isolated = fields.isolation == "venv"
        versions = pinnable_runtimes(context, None if is_isolated else python)
        if not versions or not (is_isolated or (runtime and runtime.minor == python)):
            continue
        newest = versions[-1].runtime
        fix = set_runtime_fix(context, target, newest)
        yield RULE.diagnostic(
            f"target `{target.name}` uses the latest runtime, which changes every few weeks; "
            f"the newest version that you can pin is {newest}",
            target.route_to("runtime"),
            why=(
                "The runtime's packages, and sometimes its Python version, change even if the spec "
                "does not."
            ),
            help=fix.title,
            fix=fix,
        )


RULE = Rule(
    id="IMG022",
    name="colab-runtime-moves",
    severity=Severity.INFO,
    sources=(
        "googlecolab/backend-info, 698 package lists from 2022-09 to 2026-08",
        "googlecolab/colabtools#6081",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        "  colab: «{kind: colab, isolation: venv}»\n",
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n'
        "  colab: {kind: colab, runtime: «latest», isolation: venv}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        "  colab: {kind: colab, via: colab-cli, isolation: venv}\n",
    ),
)
