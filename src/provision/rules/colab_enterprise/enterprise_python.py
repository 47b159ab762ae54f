"""A Python that Colab Enterprise was not seen to offer.

## What it does

Compares `python` with the Pythons that a runtime template of Colab Enterprise can choose, where
packages are to go on top of the runtime's own.

## Why

A template names its Python by a release name. Nothing else about the content of such a runtime is
published, so no rule checks its packages, driver or C library.

## How to fix

Say `isolation: venv`, take one of the Pythons that are known, or look what a runtime has: `!python3
--version; pip list; nvidia-smi` in a cell.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import isolate_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabEnterpriseTarget


def _check(context: LintContext) -> Findings:
    known = context.facts.conditions["enterprise Pythons"].value.split()
    python = context.spec.python
    for target in context.targets:
        fields = target.target
        if not isinstance(fields, ColabEnterpriseTarget) or fields.isolation != "system":
            continue
        if python in known:
            continue
        yield RULE.diagnostic(
            f'target {target.name}: python: "{python}" is asked for, and Colab Enterprise was '
            f"seen to offer {', '.join(known)}",
            ("python",),
            why="Colab Enterprise publishes no list of what its runtimes hold.",
            help=f"isolation: venv at target {target.name}, or look in a cell: !python3 --version",
            related=related_at(target.route, "on top of this runtime's packages"),
            fix=isolate_fix(context, target),
        )


TEAM = "targets:\n  team: {kind: colab-enterprise, project: my-project, region: us-central1}\n"
RULE = Rule(
    id="IMG032",
    name="enterprise-python",
    severity=Severity.UNKNOWN,
    sources=("hashicorp/terraform-provider-google resource_colab_runtime_template.go",),
    check=_check,
    bad=(
        Example(f'gpu: none\npython: "3.13"\npackages: []\n{TEAM}', '"3.13"'),
        Example(f'gpu: none\npython: "3.9"\npackages: []\n{TEAM}', '"3.9"', other_ids=("PYT002",)),
    ),
    good=examples(
        f'gpu: none\npython: "3.12"\npackages: []\n{TEAM}',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  t: {kind: '
        "colab-enterprise, project: my-project, region: us-central1, isolation: venv}\n",
    ),
)
