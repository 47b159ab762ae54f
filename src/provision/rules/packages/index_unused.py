"""An index is defined that no package comes from.

## What it does

Looks for names under `indexes` that no package names.

## Why

Elsewhere an extra index is searched for every package. Here it is not: an index without a bound
package is never queried, so the definition has no effect, and the package that should come from it
comes from the public index.

## How to fix

Bind the packages that it serves: `{name: my-lib, index: private}`. Or remove it.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    used = {package.index for package in context.spec.packages} | {
        package.channel for package in context.spec.conda_packages
    }
    for name in context.spec.indexes:
        if name not in used and name != "pypi":
            yield RULE.diagnostic(
                f"no package comes from the index {name}",
                ("indexes", name),
                at=RoutePart.KEY,
                why="An index is asked only for the packages that are bound to it; this one is "
                "never asked.",
                help=f"bind a package to it, as in {{name: my-lib, index: {name}}}, or remove it",
            )


RULE = Rule(
    id="PKG008",
    name="index-unused",
    severity=Severity.WARNING,
    sources=("the spec language: a package is bound to its index",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [my-lib]\nindexes: {private: {url: '
            '"https://packages.example.com/simple"}}\n',
            "private",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: my-lib, index: '
        'private}]\nindexes: {private: {url: "https://packages.example.com/simple"}}\n'
    ),
)
