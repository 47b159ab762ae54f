"""Colab Enterprise replaces $(NAME) in the value of a variable.

## What it does

Finds `$(NAME)` in the values of `env` if the spec has a Colab Enterprise target.

## Why

A runtime template passes `env` to the container of its runtimes. There `$(NAME)` is replaced with
the variable NAME, which no other target does.

## How to fix

Write out the value.
"""

from __future__ import annotations

import re

from provision.diagnostics import Severity
from provision.kinds import ColabEnterpriseTarget
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

_REFERENCE = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_]*\)")


def _check(context: LintContext) -> Findings:
    for target, _ in context.targets_of(ColabEnterpriseTarget):
        for name, value in context.spec.env.items():
            if match := _REFERENCE.search(value):
                yield RULE.diagnostic(
                    f"target `{target.name}`: {match[0]} in {name} is expanded on the runtime",
                    ("env", name),
                    why="The variable then has a different value there than on other targets.",
                    help="write out the value",
                    related=related_at(target.route, "the runtime template expands it"),
                )


_SPEC = (
    'gpu: none\npython: "3.12"\npackages: []\nenv: {MODE: %s}\n'
    "targets: {t: {kind: colab-enterprise, project: my-project, region: us-central1}}\n"
)

RULE = Rule(
    id="GCP027",
    name="enterprise-variable-expanded",
    severity=Severity.ERROR,
    sources=("aiplatform v1 discovery document, EnvVar.value",),
    check=_check,
    reads_settings=True,
    bad=examples(_SPEC % '«"$(HOME)/data"»'),
    good=examples(_SPEC % '"$HOME/data"', _SPEC % '"100$ (net)"'),
)
