"""A package is listed twice.

## What it does

Compares package names as indexes do: case is ignored, and `-`, `_` and `.` are equal. Lines with
different environment markers may repeat a name.

## Why

A package has one line, because only one version of it can be installed. Two lines are either
redundant or contradict each other.

## How to fix

Merge the lines: `torch>=2.10,<2.14` has both bounds, `imageio[ffmpeg,pyav]` both extras.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    first: dict[tuple[str, str], tuple[Route, str]] = {}
    for route, package in package_lines(context):
        if (package.key, package.marker) not in first:
            first[package.key, package.marker] = (route, package.requirement)
            continue
        where, other = first[package.key, package.marker]
        yield RULE.diagnostic(
            f"{package.key} is listed twice: {other} and {package.requirement}",
            route,
            why="A package has one line, because only one version of it can be installed.",
            help="merge the lines into one line with all version bounds and extras",
            related=related_at(where, "first listed here"),
        )


RULE = Rule(
    id="PKG004",
    name="duplicate-package",
    severity=Severity.ERROR,
    sources=("PEP 503, normalized names",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [scikit-learn, numpy, «Scikit_Learn>=1.5»]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [scikit-learn, numpy]\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [\"uvloop; sys_platform == 'linux'\", \"uvloop<1; sys_platform == 'darwin'\"]\n",
    ),
)
