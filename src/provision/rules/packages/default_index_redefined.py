"""An index takes the name of the public one.

## What it does

Finds an entry `pypi` under `indexes`.

## Why

`pypi` is the name of the public index in locks and reports. Under the same name a reader takes
packages of the other index for public ones.

## How to fix

Give the index another name and bind its packages to it. A mirror of the public index is set up on
the machine (`UV_DEFAULT_INDEX`), not in the spec.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    if "pypi" in context.spec.indexes:
        yield RULE.diagnostic(
            f"indexes.pypi gives the public index's name to {context.spec.indexes['pypi'].url}",
            ("indexes", "pypi"),
            at=RoutePart.KEY,
            why="Locks and reports say pypi for the public index, and other packages are still "
            "looked for there; lock refuses it.",
            help="give it a name of its own; set a mirror on the machine, with UV_DEFAULT_INDEX",
        )


RULE = Rule(
    id="SEC002",
    name="default-index-redefined",
    severity=Severity.ERROR,
    sources=("uv documentation, package indexes", "pytorch/pytorch#92226"),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [numpy]\nindexes: {pypi: {url: '
            '"https://packages.example.com/simple"}}\n',
            "pypi",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: our-lib, index: ours}]\nindexes: '
        '{ours: {url: "https://packages.example.com/simple"}}\n'
    ),
)
