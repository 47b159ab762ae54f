"""report_to names a tracker whose package is missing.

## What it does

Looks up the package of each tracker under `report_to`.

## Why

Trainer fails at startup: "WandbCallback requires wandb to be installed".

## How to fix

Add the package, or remove the tracker from `report_to`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import TRAINER_SET
from provision.rules.package_requirements import add_package_fix, requested_trackers
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.rules.training.trainer_arguments import ARGUMENTS_ROUTE

IMPLIED_PACKAGES = {"tensorboard": ("tensorflow",)}
"""Packages that declare a tracker as a dependency (METADATA of the tensorflow wheels)."""


def _check(context: LintContext) -> Findings:
    if not context.uses_trainer:
        return
    provided = {*context.package_names}
    provided.update(package.name for package in context.spec.conda_packages)
    for name in dict.fromkeys(requested_trackers(context)):
        known = context.facts.trackers.get(name)
        if known is None or not provided.isdisjoint(
            (*known.packages, *IMPLIED_PACKAGES.get(name, ()))
        ):
            continue
        package = known.packages[0]
        yield RULE.diagnostic(
            f"`report_to: {name}` needs {' or '.join(known.packages)}, which is not "
            f"{context.package_list}",
            (*ARGUMENTS_ROUTE, "report_to"),
            severity=None if context.resolved else Severity.WARNING,
            why=f"Trainer fails at startup, because {package} is not installed.",
            help=f"add {package} to `packages`, or remove {name} from `report_to`",
            fix=add_package_fix(package, ""),
        )


RULE = Rule(
    id="TRN016",
    name="tracker-not-listed",
    severity=Severity.ERROR,
    sources=("integrations/integration_utils.py in the wheel of transformers 5.23.0",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {report_to: «tensorboard»}}\n",
        example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
            "training: {arguments: {report_to: «[mlflow]»}}\n",
            TRAINER_SET,
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", tensorboard]\n'
        "training: {arguments: {report_to: tensorboard}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {report_to: none}}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {arguments: {report_to: all}}\n",
    ),
)
