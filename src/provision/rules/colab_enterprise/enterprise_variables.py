"""A runtime template of Colab Enterprise has at most 100 variables.

## What it does

Counts `env` and the variables that `paths` sets (`PROVISION_PATH_NAME`).

## Why

Colab Enterprise rejects a runtime template with more variables.

## How to fix

Set the rest in the notebook, or read them from a file.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.kinds import ColabEnterpriseTarget
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

_LIMIT = 100


def _check(context: LintContext) -> Findings:
    spec = context.spec
    count = len(spec.env) + len(spec.paths)
    if count <= _LIMIT:
        return
    for target, _ in context.targets_of(ColabEnterpriseTarget):
        yield RULE.diagnostic(
            f"target `{target.name}`: {count} variables are declared, but a runtime template can "
            f"hold at most {_LIMIT}",
            ("env",),
            why="Colab Enterprise rejects a runtime template with more variables.",
            help="set some of them in the notebook instead, or have the notebook read them "
            "from a file",
            related=related_at(target.route, "the runtime template sets them"),
        )


def _spec(count: int, *, bad: bool = False) -> str:
    variables = "{" + ", ".join(f"V{number}: a" for number in range(count)) + "}"
    env = f"«{variables}»" if bad else variables
    return (
        f'gpu: none\npython: "3.12"\npackages: []\nenv: {env}\n'
        "targets: {t: {kind: colab-enterprise, project: my-project, region: us-central1}}\n"
    )


RULE = Rule(
    id="GCP029",
    name="enterprise-variables",
    severity=Severity.ERROR,
    sources=("hashicorp/terraform-provider-google resource_colab_runtime_template.go, env",),
    check=_check,
    reads_settings=True,
    bad=examples(_spec(101, bad=True)),
    good=examples(_spec(100)),
)
