"""An index is defined, but no package is bound to it.

## What it does

Looks for names under `indexes` that no package names.

## Why

Other tools search an extra index for every package. provision does not: an index without a bound
package is never queried, so the definition has no effect, and the package that should come from it
comes from the public index.

## How to fix

Bind its packages to the index: `{name: my-lib, index: private}`. Or remove the index.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    used = {package.index for package in context.spec.packages} | {
        package.channel for package in context.spec.conda_packages
    }
    for name in context.spec.indexes:
        if name not in used and name != "pypi":
            yield RULE.diagnostic(
                f"no package is bound to the index `{name}`",
                ("indexes", name),
                at=RoutePart.KEY,
                why=(
                    "An index is queried only for packages that are bound to it, so this index "
                    "is never queried."
                ),
                help=(
                    f"bind a package to it, as in `{{name: my-lib, index: {name}}}`, or remove "
                    "the index"
                ),
            )


RULE = Rule(
    id="PKG008",
    name="index-unused",
    severity=Severity.WARNING,
    sources=("the spec language: a package is bound to its index",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [my-lib]\n'
        'indexes: {«private»: {url: "https://packages.example.com/simple"}}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: my-lib, index: private}]\n'
        'indexes: {private: {url: "https://packages.example.com/simple"}}\n'
    ),
)
