"""None of the packages that training hangs on has a bound.

## What it does

Reports, as a note, that at least three of torch, transformers, accelerate, datasets, peft and trl
are listed without a version, and that no `exclude_newer` sets a day.

## Why

The lock pins them all, so that what was locked today is installed tomorrow. But locking anew, for
whatever reason, then moves all of them to the newest release at once, over majors that remove
arguments and classes.

## How to fix

Give the one that the code is written for a bound, as in `transformers>=5,<6`, or set
`exclude_newer`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at

CORE = ("torch", "transformers", "accelerate", "datasets", "peft", "trl")
FEWEST = 3
"""Fewer packages without a bound are not a habit. Our choice."""


def _check(context: LintContext) -> Findings:
    if context.resolved is not None or context.spec.exclude_newer is not None:
        return
    unbounded = {
        package.key: (route, package)
        for route, package in package_lines(context)
        if package.key in CORE
    }
    if len(unbounded) < FEWEST or any(
        package.version or package.index or package.source == "conda"
        for _, package in unbounded.values()
    ):
        return
    (name, (route, _)), *others = unbounded.items()
    newest = context.facts.transformers[-1].last if "transformers" in unbounded else None
    if newest:
        example = f"transformers>={newest.partition('.')[0]},<{int(newest.partition('.')[0]) + 1}"
    else:
        example = f"{name}>=..."
    yield RULE.diagnostic(
        f"none of {', '.join(unbounded)} has a bound",
        route,
        why="The lock pins them; locking anew moves all of them to the newest releases at once.",
        help=f"bound the one that the code is written for, as in {example}, or set exclude_newer",
        related=tuple(
            location
            for key, (other, _) in others
            for location in related_at(other, f"{key} has none either")
        ),
    )


RULE = Rule(
    id="PKG021",
    name="nothing-pinned",
    severity=Severity.INFO,
    sources=("the lock: one version of each package, until it is made anew",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch, transformers, accelerate]\n', "torch"
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [numpy==2.2.6, peft, '
            '"transformers[torch]", datasets]\n',
            "peft",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch, transformers>=5, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, "transformers[torch]"]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, transformers, '
        "accelerate]\nexclude_newer: 2026-11-01\n",
    ),
)
