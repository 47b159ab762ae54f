"""A package is bound to an index that is not defined.

## What it does

Compares `index` of every package with the names under `indexes`.

## Why

A package comes from exactly the index it is bound to. Without an address for that name the package
cannot be found, and looking elsewhere instead would let anybody who registers the name on the
public index answer for it.

## How to fix

Add the index with its address under `indexes`, or correct the name. A package from the public index
needs no `index` at all.
"""

from __future__ import annotations

from provision.diagnostics import Replace, RouteLocation, Severity
from provision.rules.edits import unsafe_fix, yaml_scalar
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.spelling import nearest_word


def _check(context: LintContext) -> Findings:
    defined = sorted(context.spec.indexes)
    for route, package in package_lines(context):
        if package.index is None or package.index in context.spec.indexes:
            continue
        meant = nearest_word(package.index, defined, 2)
        edits = (Replace(RouteLocation((*route, "index")), yaml_scalar(meant)),) if meant else ()
        listed = f"defined: {', '.join(defined)}" if defined else "none is defined"
        yield RULE.diagnostic(
            f"{package.key} comes from the index {package.index}, which `indexes` does not "
            f"define ({listed})",
            (*route, "index"),
            why="A package is looked for in its index only, and this one has no address.",
            help="leave `index` out for the public index"
            if package.index == "pypi"
            else f"add {package.index} with its url under `indexes`",
            fix=unsafe_fix(f"write {meant}", *edits) if meant else None,
        )


RULE = Rule(
    id="PKG007",
    name="index-undefined",
    severity=Severity.ERROR,
    sources=("the spec language: a package is bound to its index",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [{name: a-lib, index: private}, {name: '
            "b-lib, index: privat}]\n"
            'indexes: {private: {url: "https://packages.example.com/simple"}}\n',
            "privat",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [{name: my-lib, index: private}]\n', "private"
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: my-lib, index: '
        'private}]\nindexes: {private: {url: "https://packages.example.com/simple"}}\n'
    ),
)
