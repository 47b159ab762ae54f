"""A package is listed twice.

## What it does

Compares package names as indexes do: case does not count, and `-`, `_` and `.` are the same. Lines
with different environment markers may repeat a name.

## Why

Only one version can be installed. Two lines either say the same, or contradict each other, and a
reader sees only the one that was found first.

## How to fix

Merge the lines: `torch>=2.10,<2.14` has both bounds.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


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
            why="Only one version can be installed; which of the lines counts is not said.",
            help="keep one line with all its bounds",
            related=related_at(where, "listed first here"),
        )


RULE = Rule(
    id="PKG004",
    name="duplicate-package",
    severity=Severity.ERROR,
    sources=("PEP 503, normalized names",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [scikit-learn, numpy, Scikit_Learn>=1.5]\n',
            "Scikit_Learn>=1.5",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [scikit-learn, numpy]\n',
        'gpu: none\npython: "3.11"\npackages: ["uvloop; sys_platform == \'linux\'", '
        "\"uvloop<1; sys_platform == 'darwin'\"]\n",
    ),
)
