"""The optimizer comes from a package that is missing.

## What it does

Looks up the package that an optimizer's name stands for in TrainingArguments(optim=...):
bitsandbytes for the 8-bit and paged ones, torchao, galore-torch, lomo-optim, schedulefree and
others. A package that brings it (unsloth, axolotl) will do; in a spec with packages that the facts
do not know, this is a warning until the set is resolved.

## Why

Trainer imports it when training starts, and ends in an ImportError.

## How to fix

Add the package that the finding names, or take an optimizer of torch.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.package_requirements import (
    add_package_fix,
    has_unknown_packages,
    is_known_dependency,
)
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples

NOT_ON_INDEX = ("apex", "torchdistx")
"""The packages of these names on the public index are others, or old (project pages)."""


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
        f"optimizer: {training.optimizer} comes from {name}, and it is not {context.package_list}",
        ("training", "optimizer"),
        severity=severity,
        why="Trainer imports it when training starts.",
        help=f"add {name} to the packages, or take an optimizer of torch such as adamw_torch",
        fix=fix,
    )


RULE = Rule(
    id="TRN012",
    name="optimizer-needs-package",
    severity=Severity.ERROR,
    sources=("trainer_optimizer.py in the wheel of transformers 5.23.0, trainer.py in 4.57.6",),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{optimizer: paged_adamw_8bit}\n",
            "paged_adamw_8bit",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{optimizer: schedule_free_adamw}\n",
            "schedule_free_adamw",
            ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.13.1", "accelerate": "1.15.0"},
                "3.11",
                "cu130",
            ),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5", '
        "bitsandbytes]\ntraining: {optimizer: paged_adamw_8bit}\n",
        'gpu: L4\npython: "3.11"\npackages: [transformers, unsloth]\ntraining: '
        "{optimizer: paged_adamw_8bit, method: qlora}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
        "{optimizer: adamw_torch_fused}\n",
        'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {optimizer: paged_adamw_8bit}\n',
    ),
)
