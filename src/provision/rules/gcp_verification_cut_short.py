"""The instance stops before its verification may end.

## What it does

Compares `idle_shutdown` and `max_lifetime` with `verify.timeout`.

## Why

The verification runs as a startup script, which is no activity of a notebook. An instance that stops first gives no verdict.

## How to fix

Make both longer than `verify.timeout`, or the timeout shorter.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, Severity
from provision.grammar import seconds_of
from provision.rules.instances import instances, sample
from provision.rules.rule import Case, Example, Rule, seen_if_written


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each bound that is too short."""
    timeout = case.spec.verify.timeout
    for instance in instances(case):
        for field in ("idle_shutdown", "max_lifetime"):
            bound = getattr(instance.target, field)
            if bound is None or seconds_of(bound) > seconds_of(timeout):
                continue
            yield RULE.found(
                f"{field}: {bound} ends the instance before verify.timeout: {timeout}",
                instance.route(field),
                why="A verification that is cut short gives no verdict, and the instance was paid for.",
                way_out=f"make it longer than {timeout}, or verify.timeout shorter",
                related=seen_if_written(case, ("verify", "timeout"), "the verification may take this long"),
            )


RULE = Rule(
    id="GCP010",
    name="verification-cut-short",
    severity=Severity.WARNING,
    summary="The instance stops before its verification may end.",
    sources=("docs.cloud.google.com, Workbench instances, idle shutdown",),
    page=__doc__,
    check=check,
    bad=(
        Example(sample(idle_shutdown="30m"), "30m"),
        Example(sample("gpu: L4\nverify: {timeout: 9h}\n"), "8h"),
    ),
    good=(
        Example(sample(idle_shutdown="31m")),
        Example(sample("gpu: L4\nverify: {timeout: 7h}\n")),
    ),
)
