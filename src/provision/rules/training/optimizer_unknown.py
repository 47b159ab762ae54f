"""TrainingArguments does not take that optimizer.

## What it does

Looks up `optimizer` in the names that transformers takes, release by release, where training goes
through Trainer.

## Why

TrainingArguments ends in "is not a valid OptimizerNames". adamw_hf, which many tutorials use, is
gone since transformers 4.50.

## How to fix

Write the name that the finding gives.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_packages import OptimizerName
from provision.rules.edits import replace_fix
from provision.rules.releases import transformers_releases
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.training.trainer_arguments import is_in_release
from provision.spelling import nearest_word

ROUTE = ("training", "optimizer")


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    if "optimizer" not in training.model_fields_set or not context.uses_trainer:
        return
    releases = transformers_releases(context)
    row = context.facts.optimizer_names.get(training.optimizer)
    if (
        releases is None
        or not releases.known
        or (row is not None and is_in_release(context.facts, row, releases.known[-1]) is not False)
    ):
        return
    newest = releases.known[-1]
    accepted = [
        name
        for name, optimizer in context.facts.optimizer_names.items()
        if is_in_release(context.facts, optimizer, newest)
    ]
    meant = _nearest_optimizer(training.optimizer, accepted)
    yield RULE.diagnostic(
        f"transformers {newest} takes no optimizer {training.optimizer}" + _since(row),
        ROUTE,
        severity=Severity.WARNING
        if row is None and releases.includes_newer and meant is None
        else None,
        why='TrainingArguments ends in "is not a valid OptimizerNames".',
        help=f"write {meant}"
        if meant
        else "write one such as adamw_torch, adamw_torch_fused or paged_adamw_8bit",
        related=related_at(releases.route, "transformers asked for here"),
        fix=replace_fix(f"write {meant}", ROUTE, meant) if meant else None,
    )


def _nearest_optimizer(name: str, accepted: list[str]) -> str | None:
    if name == "adamw_hf":
        return "adamw_torch"
    longer = (candidate for candidate in accepted if candidate.startswith(name))
    return nearest_word(name, accepted, 3) or next(longer, None)


def _since(row: OptimizerName | None) -> str:
    if row is None:
        return ""
    if row.last:
        return f": the last release with it is {row.last}"
    return f": it came with {row.first}"


RULE = Rule(
    id="TRN013",
    name="optimizer-unknown",
    severity=Severity.ERROR,
    sources=("OptimizerNames in training_args.py of the transformers wheels",),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{optimizer: adamw_hf}\n",
            "adamw_hf",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==5.13.1"]\ntraining: '
            "{optimizer: adam_torch}\n",
            "adam_torch",
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==4.42.4", '
            "grokadamw]\ntraining: {optimizer: grokadamw}\n",
            "grokadamw",
        ),
    ),
    good=(
        *examples(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\ntraining: '
            "{optimizer: adamw_torch}\n",
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==4.49.0"]\ntraining: '
            "{optimizer: adamw_hf}\n",
            'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {optimizer: adam}\n',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]"]\ntraining: '
            "{optimizer: sgd}\n",
            resolved=ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.13.1", "accelerate": "1.15.0"},
                "3.11",
                "cu130",
            ),
        ),
    ),
)
