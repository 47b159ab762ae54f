"""Ownership of instances: whether an instance with our name is ours."""

from __future__ import annotations

from collections.abc import Mapping
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

    `first` are the zones to query first. With `adopt` the only instance of this spec and target
    counts as ours, even if another state created it.
    """
    # A list may lack a new instance, and may have zones that the spec does not name.
    instances: dict[str, Body] = {}
    for zone in dict.fromkeys((*first, *names.zones)):
        instance = cloud.instance(names.instance_resource_name(zone))
        if instance is not None:
            instances[zone] = instance
    for instance in cloud.instances(names.project):
        parent, _, name = str(instance.get("name", "")).partition("/instances/")
        if name == names.instance:
            instances.setdefault(parent.partition("/locations/")[2], instance)
    own = [zone for zone, instance in instances.items() if is_owned(instance, names)]
    if not own and adopt and len(instances) == 1:
        own = [zone for zone, instance in instances.items() if is_made_for(instance, context)]
    if not own:
        return InstanceMatch(None, "", tuple(instances.values()))
    return InstanceMatch(instances.pop(own[0]), own[0], tuple(instances.values()))


def is_owned(instance: Body, names: ResourceNames) -> bool:
    """Return whether this state created an instance."""
    labels = instance.get("labels", {})
    return bool(
        labels.get(MANAGED_LABEL) == "1"
        and names.lineage
        and labels.get(LINEAGE_LABEL) == names.lineage
    )


def is_made_for(instance: Body, context: TargetContext) -> bool:
    """Return whether provision created an instance for a spec and target with these names."""
    labels = instance.get("labels", {})
    return bool(
        labels.get(MANAGED_LABEL) == "1"
        and (labels.get("provision-spec"), labels.get("provision-target"))
        == (to_label_value(context.stem), to_label_value(context.target))
    )


def describe_owner(instance: Body) -> str:
    """Return the name of an instance, its labels, and its creation."""
    labels, names = (
        instance.get("labels", {}),
        ("provision-spec", "provision-target", LINEAGE_LABEL),
    )
    known = ", ".join(f"{name}={labels[name]}" for name in names if name in labels)
    state = instance.get("state", "state unknown")
    text = f"{instance.get('name', '')} ({state}); labels: {known or 'none from provision'}"
    origin = [
        f"{word} {instance[key]}"
        for word, key in (("created", "createTime"), ("by", "creator"))
        if instance.get(key)
    ]
    return f"{text}; {' '.join(origin)}" if origin else text
