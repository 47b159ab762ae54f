"""Instances that another took the place of, elsewhere: each stays recorded until it is seen gone,
whatever cuts the move short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.effects.google import DeleteInstance, DeleteObjects
from provision.plan import Action, Operation
from provision.state import State
from provision.targets.workbench.cleanup import plan_instance_deletion
from provision.targets.workbench.planning import INSTANCE_PART
from provision.targets.workbench.resource_names import ResourceNames

_FORMER = "former-"
"""What the parts begin with that record an instance which is to go: former-ZONE.PROJECT."""


def is_former_part(part: str) -> bool:
    """Tell whether a part of a target records an instance that is to go."""
    return part.startswith(_FORMER)


def build_resource_name(record: Mapping[str, Any]) -> str:
    """Return the full name of a recorded instance."""
    return f"projects/{record['project']}/locations/{record['zone']}/instances/{record['instance']}"


def expand_zones(record: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    """Return a record once for each zone that its instance may be in: it is not always known which
    of those asked for took it.
    """
    if record is None:
        return ()
    return (
        (record,)
        if record.get("zone")
        else tuple({**record, "zone": zone} for zone in record.get("zones", ()))
    )


def record_former_instance(state: State, address: str, old: Mapping[str, Any]) -> State:
    """Return the state in which an instance is recorded as one that is to go."""
    title = (
        f"instance {old['instance']} in {old['zone']} of {old['project']}, whose place another took"
    )
    return state.with_record(address, _part_of(old), {**old, "title": title})


def forget_former_instance(state: State, address: str, record: Mapping[str, Any]) -> State:
    """Return the state in which this instance is not recorded as one that is to go."""
    part = _part_of(record)
    return (
        state.with_record(address, part, None)
        if state.resource(address, part) is not None
        else state
    )


def find_deleted_last(
    state: State, action: Action, names: tuple[str, ...]
) -> tuple[Mapping[str, Any], ...]:
    """Return the recorded instances that an action deletes and whose names the new one cannot have."""  # noqa: E501
    deleted = {effect.name for effect in action.effects if isinstance(effect, DeleteInstance)}
    return tuple(
        old
        for old in expand_zones(state.resource(action.address, INSTANCE_PART))
        if build_resource_name(old) in deleted and build_resource_name(old) not in names
    )


def plan_former_removals(
    state: State, address: str, names: ResourceNames
) -> Iterator[tuple[str, Action]]:
    """Yield the full names of former instances with the actions that remove them; the one that is
    current goes with the action on it.
    """
    current = state.resource(address, INSTANCE_PART)
    shared = DeleteObjects(
        names.folder
    )  # of one name and lineage, they keep their objects in one folder
    for part, record in state.parts(address).items():
        if is_former_part(part) and not (
            current is not None
            and current.get("zone")
            and build_resource_name(current) == build_resource_name(record)
        ):
            away = tuple(effect for effect in plan_instance_deletion(record) if effect != shared)
            yield (
                build_resource_name(record),
                Action(
                    Operation.DESTROY,
                    address,
                    part,
                    str(record["title"]),
                    "a move was cut short before it was deleted",
                    away,
                ),
            )


def _part_of(record: Mapping[str, Any]) -> str:
    return f"{_FORMER}{record['zone']}.{record['project']}"
