"""None of the main training packages has a version bound.

## What it does

Reports, as a note, that at least three of torch, transformers, accelerate, datasets, peft and trl
are listed without a version, and that `exclude_newer` is not set.

## Why

The lock pins all of them, so a later installation gets the same versions. But the next `lock
--upgrade` moves all of them to the newest release at once, across major versions that remove
arguments and classes.

## How to fix

Add a bound to the package that your code is written for, such as `transformers>=5,<6`, or set
`exclude_newer`.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.rules.package_lines import package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.rules.source_builds import major_version

CORE = ("torch", "transformers", "accelerate", "datasets", "peft", "trl")
FEWEST = 3
"""Fewer packages without a bound are not reported. Our choice."""


def _check(context: LintContext) -> Findings:
    if context.resolved is not None or context.spec.exclude_newer is not None:
        return
    core = {line[1].key: line for line in package_lines(context) if line[1].key in CORE}
    if len(core) < FEWEST or any(
        package.version or package.index or package.source == "conda" or not package.is_from_index
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
        related += related_at(route, f"{key} has no bound either")
    yield RULE.diagnostic(
        f"none of {', '.join(core)} has a version bound",
        first,
        why="The lock pins them, but `lock --upgrade` moves all of them to the newest releases "
        "at once.",
        help=f"add a bound for the package that your code is written for, such as {example}, or "
        "set exclude_newer",
        related=related,
    )


RULE = Rule(
    id="PKG021",
    name="nothing-pinned",
    severity=Severity.INFO,
    sources=("the lock: one version of each package, until the next upgrade",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [«torch», transformers, accelerate]\n',
        'gpu: L4\npython: "3.11"\n'
        'packages: [numpy==2.2.6, «peft», "transformers[torch]", datasets]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch, transformers>=5, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, "transformers[torch]"]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, transformers, accelerate]\n'
        "exclude_newer: 2026-11-01\n",
    ),
)
