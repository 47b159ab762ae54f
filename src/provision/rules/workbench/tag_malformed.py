"""Google Cloud does not accept a network tag.

## What it does

Checks the form of network tags: at most 63 lowercase letters, digits and hyphens, starting with a
letter and not ending with a hyphen.

## Why

Google Cloud rejects the instance.

## How to fix

Use the suggested spelling. Keys with values belong under `labels`.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.rules.workbench_instances import RESOURCE_NAME_PATTERN

_LONGEST = 63
"""Characters of a tag (compute.v1 discovery document, Tags.items)."""


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(WorkbenchTarget):
        for index, tag in enumerate(fields.tags):
            if re.fullmatch(RESOURCE_NAME_PATTERN, tag):
                continue
            proposed = re.sub(r"[^a-z0-9]+", "-", tag.lower()).strip("-")[:_LONGEST].strip("-")
            yield RULE.diagnostic(
                f"{json_quote(tag)} is not a valid network tag",
                target.route_to("tags", index),
                why="A tag must contain only lowercase letters, digits and hyphens; otherwise, "
                "Google Cloud rejects the request to create the instance.",
                help=f"use `{proposed}`"
                if re.fullmatch(RESOURCE_NAME_PATTERN, proposed)
                else "use lowercase letters, digits and hyphens, starting with a letter",
            )


RULE = Rule(
    id="GCP016",
    name="tag-malformed",
    severity=Severity.ERROR,
    sources=("compute.v1 discovery document, Tags.items",),
    check=_check,
    bad=examples(
        example_spec(tags="[«no_ingress»]"),
        Example(example_spec(tags=f"[{'a' * 64}]"), "a" * 64),
    ),
    good=examples(example_spec(tags="[no-ingress, a]"), example_spec(tags=f"[{'a' * 63}]")),
)
