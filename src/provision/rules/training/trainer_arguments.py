"""The arguments of Trainer by transformers release, their successors and equivalent fields."""

from __future__ import annotations

from provision.diagnostics import Fix, Replace, Route, RouteLocation, RoutePart
from provision.facts import Facts
from provision.facts.schema_packages import OptimizerName, TrainingArgument
from provision.facts.versions import require_version
from provision.rules.admitted_releases import transformers_releases
from provision.rules.edits import unsafe_fix
from provision.rules.rule import LintContext

ARGUMENTS_ROUTE: Route = ("training", "arguments")
EQUIVALENT_FIELDS = {
    "bf16": "precision",
    "fp16": "precision",
    "tf32": "precision",
    "per_device_train_batch_size": "batch_size",
    "optim": "optimizer",
    "gradient_checkpointing": "gradient_checkpointing",
    "activation_checkpointing": "gradient_checkpointing",
    "dataloader_num_workers": "dataloader_workers",
    "torch_compile": "torch_compile",
}
"""Each argument with the field of the same meaning."""


def trainer_releases(context: LintContext) -> tuple[str, ...]:
    """Return the transformers releases that get the arguments, oldest first; () if unknown."""
    if not context.uses_trainer or not context.spec.training.arguments:
        return ()
    releases = transformers_releases(context)
    return releases.known if releases else ()


def is_in_release(facts: Facts, row: TrainingArgument | OptimizerName, release: str) -> bool | None:
    """Return whether a release has an argument or optimizer; None if it was not read."""
    read = facts.arguments_read
    version = require_version(release)
    if row.first and version < require_version(row.first):
        before = read.index(row.first) - 1
        if before >= 0 and version <= require_version(read[before]):
            return False
        return None
    if row.last and version > require_version(row.last):
        if version >= require_version(read[read.index(row.last) + 1]):
            return False
        return None
    if require_version(read[0]) <= version <= require_version(read[-1]):
        return True
    return None


def find_successor(facts: Facts, row: TrainingArgument, release: str) -> tuple[str | None, bool]:
    """Return the argument that replaces another in a release, and whether only the name changed."""
    renamed = True
    seen = {row.argument}
    while row.replaced_by and row.replaced_by not in seen:
        renamed = renamed and row.renamed
        seen.add(row.replaced_by)
        following = facts.arguments.get(row.replaced_by)
        if following is None:
            return None, False
        if is_in_release(facts, following, release):
            return following.argument, renamed
        row = following
    return None, False


def rename_argument_fix(context: LintContext, old: str, new: str) -> Fix | None:
    """Return the fix that gives an argument its new name; None if both names are set."""
    if new in context.spec.training.arguments:
        return None
    return unsafe_fix(
        f"use {new}", Replace(RouteLocation((*ARGUMENTS_ROUTE, old), RoutePart.KEY), new)
    )
