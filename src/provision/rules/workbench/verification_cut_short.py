"""The instance stops before its verification can finish.

## What it does

Compares `idle_shutdown` and `max_lifetime` with `verify.timeout`.

## Why

The verification runs as a startup script, which does not count as notebook activity. An instance
that stops first gives no verdict.

## How to fix

Make both longer than `verify.timeout`, or make the timeout shorter.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.field_types import parse_duration
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_if_written


def _check(context: LintContext) -> Findings:
    timeout = context.spec.verify.timeout
    for target, fields in context.targets_of(WorkbenchTarget):
        for field in ("idle_shutdown", "max_lifetime"):
            bound = getattr(fields, field)
            if bound is None or parse_duration(bound) > parse_duration(timeout):
                continue
            yield RULE.diagnostic(
                f"`{field}: {bound}` stops the instance before `verify.timeout: {timeout}` expires",
                target.route_to(field),
                why=(
                    "An interrupted verification gives no verdict, but you still pay for the time "
                    "that the instance ran."
                ),
                help=f"set `{field}` to more than {timeout}, or use a shorter `verify.timeout`",
                related=related_if_written(
                    context, ("verify", "timeout"), "the verification may take this long"
                ),
            )


RULE = Rule(
    id="GCP010",
    name="verification-cut-short",
    severity=Severity.WARNING,
    sources=("docs.cloud.google.com, Workbench instances, idle shutdown",),
    check=_check,
    bad=examples(
        example_spec(idle_shutdown="«30m»"),
        Example(example_spec("gpu: L4\nverify: {timeout: 9h}\n"), "8h"),
    ),
    good=examples(
        example_spec(idle_shutdown="31m"), example_spec("gpu: L4\nverify: {timeout: 7h}\n")
    ),
)
