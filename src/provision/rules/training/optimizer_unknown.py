"""TrainingArguments does not accept the optimizer.

## What it does

If training uses Trainer, looks up `optimizer` in the names that each transformers release accepts.

## Why

TrainingArguments fails with "is not a valid OptimizerNames". adamw_hf, which many tutorials use,
was removed in transformers 4.50.

## How to fix

Use the name that the finding suggests.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.admitted_releases import transformers_releases
from provision.rules.edits import replace_fix
from provision.rules.examples import TRAINER_SET
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.rules.training.trainer_arguments import is_in_release
from provision.spelling import nearest_word

ROUTE = ("training", "optimizer")


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    releases = transformers_releases(context)
    if "optimizer" not in training.model_fields_set or not context.uses_trainer:
        return
    if releases is None or not releases.known:
        return
    newest = releases.known[-1]
    names = context.facts.optimizer_names
    row = names.get(training.optimizer)
    if row is not None and is_in_release(context.facts, row, newest) is not False:
        return
    accepted = [name for name in names if is_in_release(context.facts, names[name], newest)]
    meant = _nearest_optimizer(training.optimizer, accepted)
    history = ""
    if row is not None:
        history = f": it was added in {row.first}"
        if row.last:
            history = f": it was removed after {row.last}"
    is_doubtful = row is None and releases.includes_newer and meant is None
    yield RULE.diagnostic(
        f"transformers {newest} has no optimizer {training.optimizer}{history}",
        ROUTE,
        severity=Severity.WARNING if is_doubtful else None,
        why='TrainingArguments fails with "is not a valid OptimizerNames".',
        help=f"use {meant or 'adamw_torch, adamw_torch_fused or paged_adamw_8bit'}",
        related=related_at(releases.route, "transformers requested here"),
        fix=replace_fix(f"use {meant}", ROUTE, meant) if meant else None,
    )


def _nearest_optimizer(name: str, accepted: list[str]) -> str | None:
    if name == "adamw_hf":
        return "adamw_torch"
    longer = (candidate for candidate in accepted if candidate.startswith(name))
    return nearest_word(name, accepted, 3) or next(longer, None)


RULE = Rule(
    id="TRN013",
    name="optimizer-unknown",
    severity=Severity.ERROR,
    sources=("OptimizerNames in training_args.py of the transformers wheels",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
        "training: {optimizer: «adamw_hf»}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==5.13.1"]\n'
        "training: {optimizer: «adam_torch»}\n",
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==4.42.4", grokadamw]\n'
        "training: {optimizer: «grokadamw»}\n",
    ),
    good=(
        *examples(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]>=5"]\n'
            "training: {optimizer: adamw_torch}\n",
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==4.49.0"]\n'
            "training: {optimizer: adamw_hf}\n",
            'gpu: L4\npython: "3.11"\npackages: [torch]\ntraining: {optimizer: adam}\n',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]"]\n'
            "training: {optimizer: sgd}\n",
            resolved=TRAINER_SET,
        ),
    ),
)
