"""The requested torch has no wheel for the requested Python.

## What it does

Looks up the Pythons for which the allowed torch releases have wheels, on the platforms of the spec.

## Why

torch is published as wheels only. Without one for this Python, resolving ends in "Could not find a
version that satisfies the requirement", which names neither the Pythons that would do nor the torch
that would.

## How to fix

Take one of the Pythons that the torch release has, or one of the torch releases that the Python
has.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import format_versions
from provision.rules.admitted_releases import torch_releases, torch_rows
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.spec import LocalTarget


def _check(context: LintContext) -> Findings:
    releases = torch_releases(context)
    rows = torch_rows(context, releases)
    if releases is None or not rows:
        return
    newest = rows[-1]
    python = context.python
    for platform in _platforms(context):
        if any(python in row.pythons_on(platform) for row in rows):
            continue
        pythons = newest.pythons_on(platform)
        others = [row.release for row in context.facts.torch if python in row.pythons_on(platform)]
        yield RULE.diagnostic(
            f"{releases.requested} has no wheel for Python {python} on {platform}: "
            f"{newest.release} has {format_versions(pythons)}",
            ("python",),
            severity=Severity.UNKNOWN if releases.includes_newer else None,
            why="torch is published as wheels only, so nothing can be installed for another Python."
            + (" Releases newer than the facts may have one." if releases.includes_newer else ""),
            help=f"use Python {pythons[-1]}"
            + (
                f", or torch {format_versions(others)}, which has Python {python}" if others else ""
            ),
            related=related_at(releases.route, "torch asked for here"),
        )
        return


def _platforms(context: LintContext) -> list[str]:
    """Return the platforms of cloud targets and those of local targets, each once."""
    are_local = [isinstance(target, LocalTarget) for target in context.spec.targets.values()]
    platforms = [] if all(are_local) else ["linux-x86_64"]
    if any(are_local):
        platforms += [platform.value for platform in context.spec.platforms]
    return list(dict.fromkeys(platforms))


RULE = Rule(
    id="PYT001",
    name="python-has-no-torch",
    severity=Severity.ERROR,
    sources=("wheel tags of torch on the public package index",),
    check=_check,
    bad=(
        Example('gpu: none\npython: "3.13"\npackages: [torch==2.4.1]\n', '"3.13"'),
        Example(
            'gpu: none\npython: "3.9"\npackages: ["torch>=2.9,<2.13"]\n',
            '"3.9"',
            other_ids=("PYT002",),
        ),
        Example(
            'gpu: none\npython: "3.13"\npackages: [torch==2.5.1]\nplatforms: '
            "[linux-x86_64, linux-aarch64]\n",
            '"3.13"',
        ),
        Example(
            'gpu: none\npython: "3.9"\npackages: [torch>=2.15]\n', '"3.9"', other_ids=("PYT002",)
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [torch]\n',
            '"3.12"',
            ResolvedSet({"torch": "2.0.1+cpu"}, "3.12", "cpu"),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.13"\npackages: [torch==2.5.1]\n',
        'gpu: none\npython: "3.10"\npackages: [torch]\n',
        'gpu: none\npython: "3.10"\npackages: [torch==99.0]\n',
    ),
)
