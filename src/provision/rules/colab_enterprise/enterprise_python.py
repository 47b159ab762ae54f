"""Colab Enterprise is not known to offer this Python.

## What it does

Compares `python` with the Pythons that a runtime template of Colab Enterprise can select, if
packages are installed on top of the runtime's own.

## Why

A template selects its Python by a release name. Google publishes nothing else about the contents of
such a runtime, so no rule checks its packages, driver or C library.

## How to fix

Set `isolation: venv`, use one of the known Pythons, or check what a runtime has: `!python3
--version; pip list; nvidia-smi` in a cell.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import isolate_fix
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_at
from provision.spec import ColabEnterpriseTarget


def _check(context: LintContext) -> Findings:
    known = context.facts.conditions["enterprise Pythons"].value.split()
    python = context.spec.python
    for target, fields in context.targets_of(ColabEnterpriseTarget):
        if fields.isolation != "system" or python in known:
            continue
        yield RULE.diagnostic(
            f"target `{target.name}`: Python {python} is requested, but Colab Enterprise is only "
            f"known to offer Python {', '.join(known)}",
            ("python",),
            why="Google does not publish the contents of these runtimes.",
            help=(
                f"set `isolation: venv` on target `{target.name}`, or check the version by running "
                "`!python3 --version` in a cell"
            ),
            related=related_at(target.route, "installed on top of this runtime's packages"),
            fix=isolate_fix(context, target),
        )


TEAM = "targets:\n  team: {kind: colab-enterprise, project: my-project, region: us-central1}\n"


RULE = Rule(
    id="IMG032",
    name="enterprise-python",
    severity=Severity.UNKNOWN,
    sources=("hashicorp/terraform-provider-google resource_colab_runtime_template.go",),
    check=_check,
    bad=examples(
        f'gpu: none\npython: «"3.13"»\npackages: []\n{TEAM}',
        example(f'gpu: none\npython: «"3.9"»\npackages: []\n{TEAM}', other_ids=("PYT002",)),
    ),
    good=examples(
        f'gpu: none\npython: "3.12"\npackages: []\n{TEAM}',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n'
        "  t: {kind: colab-enterprise, project: my-project, region: us-central1, isolation: "
        "venv}\n",
    ),
)
