"""A Colab runtime version that is at its end, or near it.

## What it does

Compares the day a runtime version came out, and the time for which Colab offers one (about a year),
with the day of the facts. The day of the facts is used rather than today's, so that an unchanged
spec is judged the same tomorrow.

## Why

When a version is no longer offered, the notebook opens on the newest one, with another Python and
other packages.

## How to fix

Move to a newer version: the finding names the newest with the spec's Python.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import (
    add_months,
    colab_targets,
    facts_date,
    named_runtimes,
    pinnable_runtimes,
    runtime_end_date,
    set_runtime_fix,
)
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

NOTICE_MONTHS = 3
"""Months before the end: a new version comes out every quarter, so another one is there to move to.
Our choice.
"""


def _check(context: LintContext) -> Findings:
    today = facts_date(context)
    python = context.spec.python
    for colab in colab_targets(context):
        runtime = colab.facts.runtime
        if runtime is None or colab.target.runtime == "latest" or colab.target.via != "browser":
            continue
        end = runtime_end_date(context, runtime)
        if add_months(today, NOTICE_MONTHS) < end:
            continue
        versions = pinnable_runtimes(
            context, python if colab.target.isolation == "system" else None
        )
        newest = versions[-1].runtime if versions else ""
        if newest > colab.target.runtime:
            help_text = f'write runtime: "{newest}"'
            fix = set_runtime_fix(context, colab, newest)
        else:
            help_text = (
                f"no newer version has Python {python}: plan for python: "
                f'"{named_runtimes(context)[-1].minor}", or isolation: venv'
            )
            fix = None
        when = "may be gone since" if end <= today else "is offered until"
        yield RULE.diagnostic(
            f"target {colab.name}: Colab runtime {colab.target.runtime} {when} about {end:%Y-%m} "
            f"(facts of {today})",
            colab.runtime_route,
            why="A runtime version can be chosen for about a year. After that the notebook opens "
            "on the newest one.",
            help=help_text,
            fix=fix,
        )


RULE = Rule(
    id="IMG024",
    name="colab-runtime-ending",
    severity=Severity.WARNING,
    sources=(
        "conda-incubator/condacolab#79",
        "googlecolab/backend-info README: runtime versions with their days",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2025.10"}\n',
            '"2025.10"',
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.01"}\n',
            '"2026.01"',
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2025.07"}\n',
            '"2025.07"',
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.04"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab}\n',
    ),
)
