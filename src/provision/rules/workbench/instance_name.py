"""The name of the instance is not valid.

## What it does

The name of an instance consists of the names of spec and target, `NAME-TARGET`. Compute Engine
requires that it starts with a letter and has at most 63 characters.

## Why

Google Cloud rejects any other name.

## How to fix

Give the spec a `name` that starts with a letter, or shorten the name of the spec or of the target.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, RouteLocation, RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples

LONGEST = 63
"""Characters of a name (compute.v1 discovery document, Instance.name; Workbench: a letter and up to
62 further ones).
"""


def _check(context: LintContext) -> Findings:
    for number, (target, _) in enumerate(context.targets_of(WorkbenchTarget)):
        name = f"{context.spec.name}-{target.name}"
        excess = len(name) - LONGEST
        if name[0].isdigit() and number == 0:
            problem = "but the name must start with a letter"
            help_text = f"set `name: env-{context.spec.name}`"
        elif excess > 0:
            problem = f"which has {len(name)} characters; the limit is {LONGEST}"
            help_text = f"shorten the name of the spec or the target by {excess}"
        else:
            continue
        location = RouteLocation(target.route, RoutePart.KEY)
        is_written = context.source.text(("name",)) is not None
        yield RULE.diagnostic(
            f"the instance would be named {name}, {problem}",
            ("name",) if is_written else target.route,
            at=RoutePart.VALUE if is_written else RoutePart.KEY,
            why="Google Cloud rejects the request to create the instance.",
            help=help_text,
            related=(RelatedLocation(location, "target defined here"),) if is_written else (),
        )


RULE = Rule(
    id="GCP014",
    name="instance-name",
    severity=Severity.ERROR,
    sources=(
        "compute.v1 discovery document, Instance.name",
        "docs.cloud.google.com, Workbench instances, create an instance",
    ),
    check=_check,
    bad=examples(
        example_spec("name: «2nd-try»\ngpu: L4\n"),
        Example(example_spec(f"name: {'a' * 61}\ngpu: L4\n"), "a" * 61),
    ),
    good=examples(
        example_spec(f"name: {'a' * 60}\ngpu: L4\n"),
        'name: 2nd-try\ngpu: L4\npython: "3.12"\npackages: [torch]\n',
    ),
)
