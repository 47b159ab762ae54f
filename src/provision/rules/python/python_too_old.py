"""The requested Python is too old to verify an environment.

## What it does

Reports every Python below 3.10.

## Why

The programs that install from the lock, verify the environment and record runs are executed inside
it, and need Python 3.10. With an older Python everything is installed, and the verification then
ends without a verdict. The Python project no longer maintains any of these versions.

## How to fix

Use Python 3.10 or newer; `provision suggest` lists combinations of versions for it.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.rule import Findings, LintContext, Rule, examples

_OLDEST = (3, 10)


def _check(context: LintContext) -> Findings:
    if tuple(map(int, context.spec.python.split("."))) >= _OLDEST:
        return
    yield RULE.diagnostic(
        f"Python {context.spec.python} is too old to be verified",
        ("python",),
        why=(
            "The verification runs inside the environment and needs Python 3.10 or newer. Older "
            "versions are no longer maintained."
        ),
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
    bad=examples(
        'gpu: none\npython: «"3.9"»\npackages: [six]\n',
        'gpu: none\npython: «"3.7"»\npackages: []\n',
    ),
    good=examples(
        'gpu: none\npython: "3.10"\npackages: [six]\n',
        'gpu: none\npython: "3.14"\npackages: [six]\n',
    ),
)
