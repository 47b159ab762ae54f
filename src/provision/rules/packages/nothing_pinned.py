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

from provision.diagnostics import RelatedLocation, Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.source_builds import major_version

CORE = ("torch", "transformers", "accelerate", "datasets", "peft", "trl")
FEWEST = 3
"""Fewer packages without a bound are not a habit. Our choice."""


def _check(context: LintContext) -> Findings:
    if context.resolved is not None or context.spec.exclude_newer is not None:
        return
    core = {package.key: (route, package) for route, package in package_lines(context)}
    core = {name: line for name, line in core.items() if name in CORE}
    if len(core) < FEWEST or any(
        package.version or package.index or package.source == "conda"
        for _, package in core.values()
    ):
        return
    (name, (first, _)), *others = core.items()
    example = f"{name}>=..."
    if "transformers" in core:
        major = int(major_version(context.facts.transformers[-1].last))
        example = f"transformers>={major},<{major + 1}"
    related: tuple[RelatedLocation, ...] = ()
    for key, (route, _) in others:
        related += related_at(route, f"{key} has none either")
    yield RULE.diagnostic(
        f"none of {', '.join(core)} has a bound",
        first,
        why="The lock pins them; locking anew moves all of them to the newest releases at once.",
        help=f"bound the one that the code is written for, as in {example}, or set exclude_newer",
        related=related,
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
