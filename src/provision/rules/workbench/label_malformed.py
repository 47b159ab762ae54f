"""Google Cloud does not accept a label.

## What it does

Looks at the form of labels: keys of lower-case letters, digits, hyphens and underscores that start
with a letter, values of the same characters, 63 characters each, 64 labels together; and for labels
that Workbench sets by itself.

## Why

Google Cloud refuses the instance. A label that the service sets is written over.

## How to fix

Write it as it is proposed.
"""

from __future__ import annotations

import re

from provision.diagnostics import RoutePart, Severity
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import json_quote
from provision.rules.workbench_instances import workbench_instances

LONGEST, MOST = 63, 64
"""Characters of a key and of a value, and labels of one resource (Google Cloud documentation,
Requirements for labels).
"""
KEY, VALUE = (
    re.compile(rf"[a-z][a-z0-9_-]{{0,{LONGEST - 1}}}"),
    re.compile(rf"[a-z0-9_-]{{0,{LONGEST}}}"),
)


def _check(context: LintContext) -> Findings:
    refused = "Google Cloud refuses the instance."
    for instance in workbench_instances(context):
        labels = instance.target.labels
        for key, value in labels.items():
            route = instance.route("labels", key)
            if not KEY.fullmatch(_to_latin(key)):
                yield RULE.diagnostic(
                    f"{json_quote(key)} cannot be the key of a label",
                    route,
                    at=RoutePart.KEY,
                    why=refused,
                    help=_valid_label(key)
                    if re.match(r"[A-Za-z]", key)
                    else "start it with a letter",
                )
            if not VALUE.fullmatch(_to_latin(value)):
                yield RULE.diagnostic(
                    f"{json_quote(value)} cannot be the value of a label",
                    route,
                    why=refused,
                    help=_valid_label(value),
                )
            if key in context.facts.reserved_labels:
                yield RULE.diagnostic(
                    f"Workbench sets the label {key} by itself",
                    route,
                    at=RoutePart.KEY,
                    severity=Severity.WARNING,
                    why="What is written here is written over.",
                    help="choose another key",
                )
        if len(labels) > MOST:
            yield RULE.diagnostic(
                f"{len(labels)} labels, and a resource has at most {MOST}",
                instance.route("labels"),
                why=refused,
                help=f"leave {len(labels) - MOST} of them out",
            )


def _to_latin(text: str) -> str:
    """Return text with lower-case letters of other scripts as "a": they are allowed too."""
    return "".join(
        "a" if char.isalpha() and not char.isupper() and ord(char) > 127 else char for char in text
    )


def _valid_label(text: str) -> str:
    label = re.sub(r"[^\w-]+", "-", text.lower())
    return f"write {label[:LONGEST]}"


RULE = Rule(
    id="GCP015",
    name="label-malformed",
    severity=Severity.ERROR,
    sources=("Google Cloud documentation, Requirements for labels",),
    check=_check,
    bad=(
        Example(example_spec(labels="{Team: research}"), "Team"),
        Example(example_spec(labels="{team: Research Group}"), "Research Group"),
        Example(example_spec(labels=f"{{team: {'a' * 64}}}"), "a" * 64),
        Example(example_spec(labels="{resource-name: mine}"), "resource-name"),
    ),
    good=examples(
        example_spec(labels='{team: research, cost-center: "0042", empty: ""}'),
        example_spec(labels=f"{{team: {'a' * 63}}}"),
    ),
)
