"""Ownership of instances: which of those with our name is ours, and whose the others are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from provision.effects.google import CloudReader
from provision.targets.context import TargetContext
from provision.targets.workbench.resource_names import (
    LINEAGE_LABEL,
    MANAGED_LABEL,
    ResourceNames,
    to_label_value,
)

Body = Mapping[str, Any]


class InstanceMatch(NamedTuple):
    """Instances with one name: ours with its zone (None and "" if there is none), the others."""

    instance: Body | None
    zone: str
    others: tuple[Body, ...] = ()


def find_instances(
    context: TargetContext,
    names: ResourceNames,
    first: tuple[str, ...],
    cloud: CloudReader,
    *,
    adopt: bool,
) -> InstanceMatch:
    """Return the instances with a target's name, in any zone of the project.

    `first` are the zones to look in first. With `adopt` the only instance of this spec and target
    counts as ours, whichever state made it.
    """
    asked = tuple(dict.fromkeys((*first, *names.zones)))
    # A list may be late with a new instance, and may have zones that the spec does not name.
    there = {
        zone: real
        for zone in asked
        if (real := cloud.instance(names.instance_resource_name(zone))) is not None
    }
    for one in cloud.instances(names.project):
        zone, _, instance = (
            str(one.get("name", "")).partition("/locations/")[2].partition("/instances/")
        )
        if instance == names.instance:
            there.setdefault(zone, one)
    ours = [zone for zone, real in there.items() if is_owned(real, names)]
    if not ours and adopt and len(there) == 1:
        ours = [zone for zone, real in there.items() if is_made_for(real, context)]
    if not ours:
        return InstanceMatch(None, "", tuple(there.values()))
    return InstanceMatch(
        there[ours[0]], ours[0], tuple(real for zone, real in there.items() if zone != ours[0])
    )


def is_owned(real: Body, names: ResourceNames) -> bool:
    """Return whether an instance was made by this state."""
    labels = real.get("labels", {})
    return bool(
        labels.get(MANAGED_LABEL) == "1"
        and names.lineage
        and labels.get(LINEAGE_LABEL) == names.lineage
    )


def is_made_for(real: Body, context: TargetContext) -> bool:
    """Return whether provision made an instance for a spec and target of these names."""
    labels = real.get("labels", {})
    return bool(
        labels.get(MANAGED_LABEL) == "1"
        and (labels.get("provision-spec"), labels.get("provision-target"))
        == (to_label_value(context.stem), to_label_value(context.target))
    )


def describe_owner(real: Body) -> str:
    """Return where an instance is and what its labels say about its owner."""
    labels = real.get("labels", {})
    told = (
        ", ".join(
            f"{key}={labels[key]}"
            for key in ("provision-spec", "provision-target", LINEAGE_LABEL)
            if key in labels
        )
        or "none of ours"
    )
    more = [
        f"{word} {real[key]}"
        for word, key in (("made", "createTime"), ("by", "creator"))
        if real.get(key)
    ]
    return "; ".join(
        [
            f"{real.get('name', '')} ({real.get('state', 'of an unknown state')})",
            f"labels: {told}",
            *([" ".join(more)] if more else []),
        ]
    )


def describe_duplicates(found: tuple[Body, ...]) -> Iterator[str]:
    """Yield the notes of a plan about other instances with our name."""
    for real in found:
        yield f"another instance bears this name, and costs: {describe_owner(real)}"
