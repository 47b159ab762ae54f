"""An index has the name of the public index.

## What it does

Finds an entry `pypi` under `indexes`.

## Why

`pypi` is the name of the public index in locks and reports. If another index has the same name, a
reader takes its packages for public ones.

## How to fix

Rename the index and bind its packages to it. A mirror of the public index is set up on the machine
(`UV_DEFAULT_INDEX`), not in the spec.
"""

from __future__ import annotations

from provision.diagnostics import RoutePart, Severity
from provision.rules.rule import Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    if "pypi" in context.spec.indexes:
        yield RULE.diagnostic(
            "the index name pypi is reserved for the public index, and cannot be used for "
            f"{context.spec.indexes['pypi'].url}",
            ("indexes", "pypi"),
            at=RoutePart.KEY,
            why="In locks and reports, pypi means the public index. `lock` refuses this spec.",
            help="rename the index; for a mirror of PyPI, set UV_DEFAULT_INDEX on the machine",
        )


RULE = Rule(
    id="SEC002",
    name="default-index-redefined",
    severity=Severity.ERROR,
    sources=("uv documentation, package indexes", "pytorch/pytorch#92226"),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [numpy]\n'
        'indexes: {«pypi»: {url: "https://packages.example.com/simple"}}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [{name: our-lib, index: ours}]\n'
        'indexes: {ours: {url: "https://packages.example.com/simple"}}\n'
    ),
)
