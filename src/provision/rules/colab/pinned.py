"""A package that google-colab pins is replaced.

## What it does

Compares the packages that google-colab pins (pandas, requests, portpicker and others) with those of
the runtime, if packages are installed on top of it. A separate rule reports the packages that the
kernel depends on.

## Why

google-colab is built for these versions. pip warns about the conflict and continues. The kernel was
seen to start with other versions; forms, tables and the file browser were not tried with them.

## How to fix

Leave the version to the runtime, or use the version in the runtime.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import base_runtimes, replaced_packages, route_of_line
from provision.rules.examples import colab_spec
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)

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
            f"target `{system.target.name}`: google-colab pins {pins}, but the "
            f"{'resolved set has' if context.resolved else 'spec requests'} "
            + ", ".join(change.requested for change in named)
            + (f" (and {len(changes) - MOST} more)" if len(changes) > MOST else ""),
            route_of_line(changes),
            why=(
                "pip warns about the conflict and continues, but Colab's own tools are built "
                "for the pinned versions."
            ),
            help=f"use {pins}, or set `isolation: venv`",
            related=system.related,
        )


RULE = Rule(
    id="IMG030",
    name="colab-pinned",
    severity=Severity.INFO,
    sources=("googlecolab/colabtools at 3c07d776, setup.py",),
    check=_check,
    bad=examples(
        colab_spec('[«"pandas>=3"»]'),
        example(
            colab_spec("[«pandas»]"), ResolvedSet({"requests": "2.33.0", "pandas": "2.3.3"}, "3.12")
        ),
    ),
    good=examples(
        colab_spec('["pandas>=2"]'),
        Example(
            colab_spec("[pandas]"),
            resolved=ResolvedSet({"pandas": "2.2.2"}, "3.12"),
        ),
    ),
)
