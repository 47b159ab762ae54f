"""Compares the targets of a spec with those of another revision: prices and replacements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from provision.facts import Facts
from provision.facts.machines import MachineOffer
from provision.field_types import parse_size
from provision.kinds.base import TargetFacts
from provision.target_facts import target_facts

if TYPE_CHECKING:
    from provision.spec import Spec


class ChangedTarget(NamedTuple):
    """What a change of a spec does to a target that costs money or is replaced.

    Attributes:
        address: SPEC/TARGET.
        before: the machine and its price in the other revision; None if it has no known price.
        after: the same in this revision.
        is_new: the other revision does not have the target.
        is_removed: this revision does not have it.
        replaced_fields: the changed fields for which `apply` replaces what exists.
    """

    address: str
    before: MachineOffer | None
    after: MachineOffer | None
    is_new: bool = False
    is_removed: bool = False
    replaced_fields: tuple[str, ...] = ()


def compare_targets(
    stem: str, old: Spec | None, new: Spec | None, facts: Facts
) -> tuple[ChangedTarget, ...]:
    """Return the targets with another price, and those that are replaced.

    Args:
        stem: the first part of addresses.
        old: the spec of the other revision; None if it does not exist there.
        new: the spec of this revision.
        facts: the tables to look up.
    """
    before, after = _collect(old, facts), _collect(new, facts)
    changes = []
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name), after.get(name)
        change = ChangedTarget(
            f"{stem}/{name}",
            was and was.kind.machine_offer(was, facts),
            now and now.kind.machine_offer(now, facts),
            was is None,
            now is None,
            _find_replaced_fields(was, now, facts),
        )
        if _describe(change.before) != _describe(change.after) or change.replaced_fields:
            changes.append(change)
    return tuple(changes)


def _collect(spec: Spec | None, facts: Facts) -> Mapping[str, TargetFacts]:
    """Return the targets of a spec with the machine types that `apply` chooses."""
    if spec is None:
        return {}
    required = parse_size(spec.requires.ram) / 2**30 if spec.requires.ram else None
    targets = (target_facts(spec, facts, name) for name in spec.targets)
    return {
        target.name: target._replace(target=target.kind.chosen_target(target, required, facts))
        for target in targets
    }


def _find_replaced_fields(
    was: TargetFacts | None, now: TargetFacts | None, facts: Facts
) -> tuple[str, ...]:
    if was is None or now is None:
        return ()
    if was.kind.name != now.kind.name:
        return ("kind",)
    return now.kind.replaced_fields(was, now, facts)


def _describe(offer: MachineOffer | None) -> tuple[str, str, float] | None:
    return None if offer is None else (offer.machine.name, offer.region, offer.dollars)
