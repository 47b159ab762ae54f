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
from provision.rules.edits import set_field_edit, unsafe_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabEnterpriseTarget


def _check(context: LintContext) -> Findings:
    known = context.facts.conditions["enterprise Pythons"].value.split()
    for target in context.targets:
        if (
            not isinstance(target.target, ColabEnterpriseTarget)
            or target.target.isolation != "system"
            or context.spec.python in known
        ):
            continue
        yield RULE.diagnostic(
            f'target {target.name}: python: "{context.spec.python}" is asked for, and Colab '
            f"Enterprise was seen to offer {', '.join(known)}",
            ("python",),
            why="Colab Enterprise publishes no list of what its runtimes hold.",
            help=f"isolation: venv at target {target.name}, or look in a cell: !python3 --version",
            related=related_at(target.route, "on top of this runtime's packages"),
            fix=unsafe_fix(
                "make an environment of its own there",
                set_field_edit(context, (*target.route, "isolation"), "venv"),
            ),
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
