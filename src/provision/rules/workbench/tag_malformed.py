"""Google Cloud does not accept a network tag.

## What it does

Looks at the form of network tags: lower-case letters, digits and hyphens, a letter first, no hyphen
last, 63 characters.

## Why

Google Cloud refuses the instance.

## How to fix

Write it as it is proposed. Keys with values belong under `labels`.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.rules.workbench_instances import RESOURCE_NAME_PATTERN, workbench_instances

_LONGEST = 63
"""Characters of a tag (compute.v1 discovery document, Tags.items)."""


def _check(context: LintContext) -> Findings:
    for instance in workbench_instances(context):
        for index, tag in enumerate(instance.target.tags):
            if re.fullmatch(RESOURCE_NAME_PATTERN, tag):
                continue
            proposed = re.sub(r"[^a-z0-9]+", "-", tag.lower()).strip("-")[:_LONGEST].strip("-")
            yield RULE.diagnostic(
                f"{json_quote(tag)} cannot be a network tag",
                instance.route("tags", index),
                why="Google Cloud refuses the instance.",
                help=f"write {proposed}"
                if re.fullmatch(RESOURCE_NAME_PATTERN, proposed)
                else "write lower-case letters, digits and hyphens, a letter first",
            )


RULE = Rule(
    id="GCP016",
    name="tag-malformed",
    severity=Severity.ERROR,
    sources=("compute.v1 discovery document, Tags.items",),
    check=_check,
    bad=(
        Example(example_spec(tags="[no_ingress]"), "no_ingress"),
        Example(example_spec(tags=f"[{'a' * 64}]"), "a" * 64),
    ),
    good=examples(example_spec(tags="[no-ingress, a]"), example_spec(tags=f"[{'a' * 63}]")),
)
