"""What `training.arguments` may hold: in which transformers releases an argument is there, and what took its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from provision.diagnostics import Applicability, At, Fix, Place, Replace, Route
from provision.facts import Facts
from provision.facts.packages import Argument, OptimizerName
from provision.facts.versions import ordered
from provision.rules.releases import transformers_releases
from provision.rules.rule import Case

ARGUMENTS: Route = ("training", "arguments")
FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bf16": ("precision", lambda value: "bf16" if value is True else None),
    "fp16": ("precision", lambda value: "fp16" if value is True else None),
    "tf32": ("precision", lambda value: "tf32" if value is True else None),
    "per_device_train_batch_size": ("batch_size", lambda value: value),
    "optim": ("optimizer", lambda value: value),
    "gradient_checkpointing": ("gradient_checkpointing", lambda value: value),
    "activation_checkpointing": ("gradient_checkpointing", lambda value: value),
    "dataloader_num_workers": ("dataloader_workers", lambda value: value),
    "torch_compile": ("torch_compile", lambda value: value),
}
"""Each argument with the field that says the same, and what its value is there; None where it says nothing that the field could."""


def releases(case: Case) -> tuple[str, ...]:
    """Return the transformers releases that Trainer's arguments go to, oldest first; () where they are unknown, or Trainer is not used."""
    if case.spec.framework() != "hf-trainer" or not case.spec.training.arguments:
        return ()
    found = transformers_releases(case)
    return found.known if found else ()


def there(facts: Facts, row: Argument | OptimizerName, release: str) -> bool | None:
    """Tell whether a release takes an argument, or an optimizer; None between two releases that were read and differ."""
    read, wanted = facts.arguments_read, ordered(release)
    if row.first and wanted < ordered(row.first):
        before = read.index(row.first) - 1
        return False if before >= 0 and wanted <= ordered(read[before]) else None
    if row.last and wanted > ordered(row.last):
        return False if wanted >= ordered(read[read.index(row.last) + 1]) else None
    return True if ordered(read[0]) <= wanted <= ordered(read[-1]) else None


def successor(facts: Facts, row: Argument, release: str) -> tuple[str | None, bool]:
    """Return the argument that took the place of one in a release, through several renamings, and whether only the name changed."""
    renamed, seen = True, {row.argument}
    while row.replaced_by and row.replaced_by not in seen:
        renamed = renamed and row.renamed
        seen.add(row.replaced_by)
        following = facts.arguments.get(row.replaced_by)
        if following is None:
            return None, False
        if there(facts, following, release):
            return following.argument, renamed
        row = following
    return None, False


def renaming(case: Case, old: str, new: str) -> Fix | None:
    """Return the fix that gives an argument its new name; None when that is there already."""
    if new in case.spec.training.arguments:
        return None
    return Fix(f"write {new}", (Replace(Place((*ARGUMENTS, old), At.KEY), new),), Applicability.UNSAFE)
