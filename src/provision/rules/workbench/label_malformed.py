"""Google Cloud does not accept a label.

## What it does

Checks the form of labels: keys of lowercase letters, digits, hyphens and underscores that start
with a letter, values of the same characters, 63 characters each, 64 labels together. Reports labels
that Workbench sets itself.

## Why

Google Cloud rejects the instance. A label that the service sets is overwritten.

## How to fix

Use the suggested spelling.
"""

from __future__ import annotations

import re

from provision.diagnostics import RoutePart, Severity
from provision.kinds import WorkbenchTarget
from provision.rules.examples import example_spec
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.rules.text import json_quote

LONGEST, MOST = 63, 64
"""Characters of a key and of a value, and labels of one resource (Google Cloud documentation,
Requirements for labels).
"""
KEY, VALUE = (
    re.compile(rf"[a-z][a-z0-9_-]{{0,{LONGEST - 1}}}"),
    re.compile(rf"[a-z0-9_-]{{0,{LONGEST}}}"),
)


def _check(context: LintContext) -> Findings:
    rejected = "Google Cloud rejects the request to create the instance."
    for target, fields in context.targets_of(WorkbenchTarget):
        for key, value in fields.labels.items():
            route = target.route_to("labels", key)
            if not KEY.fullmatch(_to_latin(key)):
                yield RULE.diagnostic(
                    f"{json_quote(key)} is not a valid label key",
                    route,
                    at=RoutePart.KEY,
                    why=rejected,
                    help=_valid_label(key)
                    if re.match(r"[A-Za-z]", key)
                    else "start it with a letter",
                )
            if not VALUE.fullmatch(_to_latin(value)):
                yield RULE.diagnostic(
                    f"{json_quote(value)} is not a valid label value",
                    route,
                    why=rejected,
                    help=_valid_label(value),
                )
            if key in context.facts.reserved_labels:
                yield RULE.diagnostic(
                    f"the label {key} is set by Workbench",
                    route,
                    at=RoutePart.KEY,
                    severity=Severity.WARNING,
                    why="Workbench overwrites this value.",
                    help="use a different key",
                )
        excess = len(fields.labels) - MOST
        if excess > 0:
            yield RULE.diagnostic(
                f"{len(fields.labels)} labels exceed the limit of {MOST}",
                target.route_to("labels"),
                why=rejected,
                help=f"remove {excess} of them",
            )


def _to_latin(text: str) -> str:
    """Return text with lower-case letters of other scripts as "a": they are allowed too."""
    return "".join(
        "a" if char.isalpha() and not char.isupper() and ord(char) > 127 else char for char in text
    )


def _valid_label(text: str) -> str:
    label = re.sub(r"[^\w-]+", "-", text.lower())
    return f"use `{label[:LONGEST]}`"


RULE = Rule(
    id="GCP015",
    name="label-malformed",
    severity=Severity.ERROR,
    sources=("Google Cloud documentation, Requirements for labels",),
    check=_check,
    bad=examples(
        example_spec(labels="{«Team»: research}"),
        example_spec(labels="{team: «Research Group»}"),
        Example(example_spec(labels=f"{{team: {'a' * 64}}}"), "a" * 64),
        example_spec(labels="{«resource-name»: mine}"),
    ),
    good=examples(
        example_spec(labels='{team: research, cost-center: "0042", empty: ""}'),
        example_spec(labels=f"{{team: {'a' * 63}}}"),
    ),
)
