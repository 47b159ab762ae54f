"""The instance cannot have the name that follows from the spec.

## What it does

An instance is called by the names of spec and target, `NAME-TARGET`. Compute Engine wants a letter first and at most 63 characters.

## Why

Google Cloud refuses any other name.

## How to fix

Give the spec a `name` that starts with a letter, or shorten the name of the spec or of the target.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import At, Diagnostic, Place, Related, Severity
from provision.rules.instances import instances, sample
from provision.rules.rule import Case, Example, Rule

LONGEST = 63
"""Characters of a name (compute.v1 discovery document, Instance.name; Workbench: a letter and up to 62 further ones)."""


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield a finding for each name that cannot be."""
    for number, instance in enumerate(instances(case)):
        name = f"{case.spec.name}-{instance.site.name}"
        if name[0].isdigit() and number == 0:
            problem, way_out = f"the instance would be called {name}, and a name starts with a letter", f"write name: env-{case.spec.name}"
        elif len(name) > LONGEST:
            problem = f"the instance would be called {name}, {len(name)} characters long; {LONGEST} are allowed"
            way_out = f"shorten the name of the spec or of the target by {len(name) - LONGEST}"
        else:
            continue
        written = case.source.text(("name",)) is not None
        yield RULE.found(
            problem,
            ("name",) if written else instance.site.route,
            at=At.VALUE if written else At.KEY,
            why="Google Cloud refuses such a name.",
            way_out=way_out,
            related=(Related(Place(instance.site.route, At.KEY), "the target's name"),) if written else (),
        )


RULE = Rule(
    id="GCP014",
    name="instance-name",
    severity=Severity.ERROR,
    summary="The instance cannot have the name that follows from the spec.",
    sources=("compute.v1 discovery document, Instance.name", "docs.cloud.google.com, Workbench instances, create an instance"),
    page=__doc__,
    check=check,
    bad=(
        Example(sample("name: 2nd-try\ngpu: L4\n"), "2nd-try"),
        Example(sample(f"name: {'a' * 61}\ngpu: L4\n"), "a" * 61),
    ),
    good=(
        Example(sample(f"name: {'a' * 60}\ngpu: L4\n")),
        Example('name: 2nd-try\ngpu: L4\npython: "3.12"\npackages: [torch]\n'),
    ),
)
