"""A package that Colab's own package pins exactly is replaced there.

## What it does

Compares the packages that google-colab pins (pandas, requests, portpicker and others) with those of
the runtime, if packages are installed on top of it. A separate rule reports the packages that the
kernel runs on.

## Why

google-colab was made for these versions. pip warns of the conflict and goes on. The kernel was seen
to start with others; forms, tables and the file browser were not tried with them.

## How to fix

Leave the version to the runtime, or ask for the one that is there.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import base_runtimes, replaced_packages, route_of_line
from provision.rules.examples import COLAB_TARGETS, CPU_HEAD
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule

MOST = 5
"""Packages named in one finding. Our choice."""


def _check(context: LintContext) -> Findings:
    protected = context.facts.protected.values()
    names = [row.package for row in protected if row.pinned and not row.critical]
    for system in base_runtimes(context):
        changes = tuple(replaced_packages(context, system, names))
        if not changes:
            continue
        named = changes[:MOST]
        pins = ", ".join(f"{change.package}=={change.installed}" for change in named)
        yield RULE.diagnostic(
            f"target {system.colab.name}: google-colab there pins {pins}, and "
            + ", ".join(change.requested for change in named)
            + (" are installed" if len(changes) > 1 or context.resolved else " is asked for")
            + (f" (and {len(changes) - MOST} more)" if len(changes) > MOST else ""),
            route_of_line(changes),
            why="pip warns of it and goes on; Colab's own tools were made for the pinned versions.",
            help=f"ask for {pins}, or isolation: venv",
            related=system.related,
        )


RULE = Rule(
    id="IMG030",
    name="colab-pinned",
    severity=Severity.INFO,
    sources=("googlecolab/colabtools at 3c07d776, setup.py",),
    check=_check,
    bad=(
        Example(f'{CPU_HEAD}packages: ["pandas>=3"]\n{COLAB_TARGETS}', '"pandas>=3"'),
        Example(
            f"{CPU_HEAD}packages: [pandas]\n{COLAB_TARGETS}",
            "pandas",
            ResolvedSet({"requests": "2.33.0", "pandas": "2.3.3"}, "3.12"),
        ),
    ),
    good=(
        Example(f'{CPU_HEAD}packages: ["pandas>=2"]\n{COLAB_TARGETS}'),
        Example(
            f"{CPU_HEAD}packages: [pandas]\n{COLAB_TARGETS}",
            resolved=ResolvedSet({"pandas": "2.2.2"}, "3.12"),
        ),
    ),
)
