"""The optimizer needs a package that is missing.

## What it does

Looks up the package that implements an optimizer of TrainingArguments(optim=...): bitsandbytes for
the 8-bit and paged ones, torchao, galore-torch, lomo-optim, schedulefree and others. A package that
depends on it (unsloth, axolotl) is enough. In a spec with unknown packages, this is a warning until
the set is resolved.

## Why

Trainer imports the package when training starts, and fails with an ImportError.

## How to fix

Add the package that the finding names, or use a torch optimizer.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.examples import TRAINER_SET
from provision.rules.package_requirements import (
    add_package_fix,
    has_unknown_packages,
    is_known_dependency,
)
from provision.rules.rule import Findings, LintContext, Rule, example, examples

NOT_ON_INDEX = ("apex", "torchdistx")
"""On the public index these names are unrelated or outdated packages (project pages)."""


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    row = context.facts.optimizer_names.get(training.optimizer)
    if row is None or not row.needs or not context.trains_with_trainer:
        return
    name = row.needs
    conda = {package.name for package in context.spec.conda_packages}
    if name in context.package_names or name in conda:
        return
    severity = None
    if context.resolved is None:
        if is_known_dependency(context, name):
            return
        if has_unknown_packages(context):
            severity = Severity.WARNING
    fix = None
    if name not in NOT_ON_INDEX and (training.method, name) != ("qlora", "bitsandbytes"):
        fix = add_package_fix(name, "")
    yield RULE.diagnostic(
        f"`optimizer: {training.optimizer}` needs {name}, which is not {context.package_list}",
        ("training", "optimizer"),
        severity=severity,
        why="Trainer imports the package when training starts.",
        help=f"add {name} to `packages`, or use a torch optimizer such as adamw_torch",
        fix=fix,
    )


RULE = Rule(
    id="TRN012",
    name="optimizer-needs-package",
    severity=Severity.ERROR,
    sources=("trainer_optimizer.py in the wheel of transformers 5.23.0, trainer.py in 4.57.6",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {optimizer: «paged_adamw_8bit»}\n",
        example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
            "training: {optimizer: «schedule_free_adamw»}\n",
            TRAINER_SET,
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", bitsandbytes]\n'
        "training: {optimizer: paged_adamw_8bit}\n",
        'gpu: L4\npython: "3.11"\npackages: [transformers, unsloth]\n'
        "training: {optimizer: paged_adamw_8bit, method: qlora}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {optimizer: adamw_torch_fused}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {optimizer: paged_adamw_8bit}\n',
    ),
)
