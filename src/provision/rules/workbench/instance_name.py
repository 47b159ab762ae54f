"""The instance cannot have the name that follows from the spec.

## What it does

The name of an instance consists of the names of spec and target, `NAME-TARGET`. Compute Engine
requires a letter first and at most 63 characters.

## Why

Google Cloud refuses any other name.

## How to fix

Give the spec a `name` that starts with a letter, or shorten the name of the spec or of the target.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, RouteLocation, RoutePart, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.workbench_instances import workbench_instances

LONGEST = 63
"""Characters of a name (compute.v1 discovery document, Instance.name; Workbench: a letter and up to
62 further ones).
"""


def _check(context: LintContext) -> Findings:
    for number, instance in enumerate(workbench_instances(context)):
        name = f"{context.spec.name}-{instance.facts.name}"
        if name[0].isdigit() and number == 0:
            problem = f"the instance would be called {name}, and a name starts with a letter"
            way_out = f"write name: env-{context.spec.name}"
        elif len(name) > LONGEST:
            problem = (
                f"the instance would be called {name}, {len(name)} characters long; {LONGEST} "
                "are allowed"
            )
            way_out = f"shorten the name of the spec or of the target by {len(name) - LONGEST}"
        else:
            continue
        written = context.source.text(("name",)) is not None
        yield RULE.diagnostic(
            problem,
            ("name",) if written else instance.facts.route,
            at=RoutePart.VALUE if written else RoutePart.KEY,
            why="Google Cloud refuses such a name.",
            help=way_out,
            related=(
                RelatedLocation(
                    RouteLocation(instance.facts.route, RoutePart.KEY), "the target's name"
                ),
            )
            if written
            else (),
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
    bad=(
        Example(example_spec("name: 2nd-try\ngpu: L4\n"), "2nd-try"),
        Example(example_spec(f"name: {'a' * 61}\ngpu: L4\n"), "a" * 61),
    ),
    good=examples(
        example_spec(f"name: {'a' * 60}\ngpu: L4\n"),
        'name: 2nd-try\ngpu: L4\npython: "3.12"\npackages: [torch]\n',
    ),
)
