"""A Colab runtime version is no longer offered, or will soon be removed.

## What it does

Adds the time for which Colab offers a runtime version (about a year) to its release date, and
compares the result with the date of the facts. It does not use today's date, so that the findings
about an unchanged spec stay the same.

## Why

When a version is no longer offered, the notebook opens on the newest one, with a different Python
and different packages.

## How to fix

Move to a newer version. The finding names the newest with the spec's Python.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import (
    add_months,
    facts_date,
    named_runtimes,
    pinnable_runtimes,
    runtime_end_date,
    set_runtime_fix,
)
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import ColabTarget

NOTICE_MONTHS = 3
"""Months before the end: Colab releases a version every quarter, so there is a newer one to move
to. Our choice.
"""


def _check(context: LintContext) -> Findings:
    today = facts_date(context)
    python = context.spec.python
    for target, fields in context.targets_of(ColabTarget):
        runtime = target.runtime
        if runtime is None or fields.runtime == "latest" or fields.via != "browser":
            continue
        end = runtime_end_date(context, runtime)
        if add_months(today, NOTICE_MONTHS) < end:
            continue
        versions = pinnable_runtimes(context, python if fields.isolation == "system" else None)
        newest = versions[-1].runtime if versions else ""
        if newest > fields.runtime:
            fix = set_runtime_fix(context, target, newest)
            help_text = fix.title
        else:
            fix = None
            help_text = (
                f"no newer version has Python {python}; set `python: "
                f'"{named_runtimes(context)[-1].minor}"`, or set `isolation: venv`'
            )
        when = "was probably removed around" if end <= today else "is offered until about"
        yield RULE.diagnostic(
            f"target `{target.name}`: Colab runtime {fields.runtime} {when} {end:%Y-%m} (today is "
            f"{today})",
            target.route_to("runtime"),
            why=(
                "Colab offers each runtime version for about a year. After that, the notebook "
                "opens with the newest version."
            ),
            help=help_text,
            fix=fix,
        )


RULE = Rule(
    id="IMG024",
    name="colab-runtime-ending",
    severity=Severity.WARNING,
    sources=(
        "conda-incubator/condacolab#79",
        "googlecolab/backend-info README: runtime versions with their dates",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2025.10"»}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2026.01"»}\n',
        'gpu: none\npython: "3.11"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2025.07"»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.04"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab}\n',
    ),
)
