"""A package is bound to an index that is not defined.

## What it does

Compares the `index` of every package with the names under `indexes`.

## Why

A package comes from exactly the index that it is bound to. If that index has no address, the
package cannot be found. A search on other indexes would let anybody who registers the name on the
public index provide the package.

## How to fix

Add the index with its address under `indexes`, or correct the name. A package from the public index
needs no `index`.
"""

from __future__ import annotations

from provision.diagnostics import Replace, RouteLocation, Severity
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.package_lines import package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    defined = sorted(context.spec.indexes)
    for route, package in package_lines(context):
        if package.index is None or package.index in context.spec.indexes:
            continue
        meant = nearest_word(package.index, defined, 2)
        edits = (Replace(RouteLocation((*route, "index")), yaml_scalar(meant)),) if meant else ()
        names = ", ".join(f"`{name}`" for name in defined)
        listed = f"defined: {names}" if defined else "no index is defined"
        yield RULE.diagnostic(
            f"{package.key} is bound to the index `{package.index}`, which is not defined "
            f"({listed})",
            (*route, "index"),
            why=(
                "A package is looked up only on the index it is bound to, and this index has no "
                "URL."
            ),
            help="remove `index` to use the public index"
            if package.index == "pypi"
            else f"add `{package.index}` with its URL under `indexes`",
            fix=unsafe_fix(f"use `{meant}`", *edits) if meant else None,
        )


RULE = Rule(
    id="PKG007",
    name="index-undefined",
    severity=Severity.ERROR,
    sources=("the spec language: a package is bound to its index",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [{name: a-lib, index: private}, {name: b-lib, index: «privat»}]\n"
        'indexes: {private: {url: "https://packages.example.com/simple"}}\n',
        'gpu: none\npython: "3.11"\npackages: [{name: my-lib, index: «private»}]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: my-lib, index: private}]\n'
        'indexes: {private: {url: "https://packages.example.com/simple"}}\n'
    ),
)
