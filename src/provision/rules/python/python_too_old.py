"""The requested Python is older than the verification of an environment needs.

## What it does

Reports every Python below 3.10.

## Why

The programs that install from the lock, verify the environment and record what a run takes run
inside it, and need Python 3.10. With an older one everything is installed, and the verification
then ends without a verdict. The Python project maintains none of these versions any more.

## How to fix

Take Python 3.10 or newer; `provision suggest` names the combinations of versions that have one.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

_OLDEST = (3, 10)


def _check(context: LintContext) -> Findings:
    if tuple(map(int, context.spec.python.split("."))) >= _OLDEST:
        return
    yield RULE.diagnostic(
        f"an environment with Python {context.spec.python} cannot be verified: that needs "
        "3.10 or newer",
        ("python",),
        why="what verifies an environment runs inside it, and needs Python 3.10; the Python "
        "project maintains no older one.",
        help="use Python 3.10 or newer",
    )


RULE = Rule(
    id="PYT002",
    name="python-too-old",
    severity=Severity.ERROR,
    sources=(
        "https://devguide.python.org/versions/",
        "requires-python of provision's programs for devices (docs/architecture.md)",
    ),
    check=_check,
    bad=(
        Example('gpu: none\npython: "3.9"\npackages: [six]\n', '"3.9"'),
        Example('gpu: none\npython: "3.7"\npackages: []\n', '"3.7"'),
    ),
    good=examples(
        'gpu: none\npython: "3.10"\npackages: [six]\n',
        'gpu: none\npython: "3.14"\npackages: [six]\n',
    ),
)
