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
from provision.rules.admitted_releases import transformers_releases
from provision.rules.edits import replace_fix
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
        history = (
            f": the last release with it is {row.last}"
            if row.last
            else f": it came with {row.first}"
        )
    is_doubtful = row is None and releases.includes_newer and meant is None
    yield RULE.diagnostic(
        f"transformers {newest} takes no optimizer {training.optimizer}{history}",
        ROUTE,
        severity=Severity.WARNING if is_doubtful else None,
        why='TrainingArguments ends in "is not a valid OptimizerNames".',
        help=f"write {meant or 'one such as adamw_torch, adamw_torch_fused or paged_adamw_8bit'}",
        related=related_at(releases.route, "transformers asked for here"),
        fix=replace_fix(f"write {meant}", ROUTE, meant) if meant else None,
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
