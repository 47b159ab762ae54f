"""Instances that another took the place of, elsewhere: each stays recorded until it is seen gone, whatever cuts the move short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.effects import DeleteInstance, DeleteObjects
from provision.plan import Action, Verb
from provision.state import State
from provision.targets.workbench.leaving import instance_away
from provision.targets.workbench.naming import Names
from provision.targets.workbench.planning import PART

_FORMER = "former-"
"""What the parts begin with that record an instance which is to go: former-ZONE.PROJECT."""


def is_former(part: str) -> bool:
    """Tell whether a part of a target records an instance that is to go."""
    return part.startswith(_FORMER)


def full_name(record: Mapping[str, Any]) -> str:
    """Return the full name of a recorded instance."""
    return f"projects/{record['project']}/locations/{record['zone']}/instances/{record['instance']}"


def places_of(record: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    """Return a record once for each zone that its instance may be in: it is not always known which of those asked for took it."""
    if record is None:
        return ()
    return (record,) if record.get("zone") else tuple({**record, "zone": zone} for zone in record.get("zones", ()))


def with_former(state: State, address: str, old: Mapping[str, Any]) -> State:
    """Return the state in which an instance is recorded as one that is to go."""
    title = f"instance {old['instance']} in {old['zone']} of {old['project']}, whose place another took"
    return state.recording(address, _part_of(old), {**old, "title": title})


def without_former(state: State, address: str, record: Mapping[str, Any]) -> State:
    """Return the state in which this instance is not recorded as one that is to go."""
    part = _part_of(record)
    return state.recording(address, part, None) if state.resource(address, part) is not None else state


def go_last(state: State, action: Action, names: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
    """Return the recorded instances that an action deletes and whose names the new one cannot have."""
    deleted = {effect.name for effect in action.effects if isinstance(effect, DeleteInstance)}
    return tuple(old for old in places_of(state.resource(action.address, PART)) if full_name(old) in deleted and full_name(old) not in names)


def formers_away(state: State, address: str, names: Names) -> Iterator[tuple[str, Action]]:
    """Yield the full names of former instances with the actions that remove them; the one that is current goes with the action on it."""
    current = state.resource(address, PART)
    shared = DeleteObjects(names.folder)  # of one name and lineage, they keep their objects in one folder
    for part, record in state.parts(address).items():
        if is_former(part) and not (current is not None and current.get("zone") and full_name(current) == full_name(record)):
            away = tuple(effect for effect in instance_away(record) if effect != shared)
            yield full_name(record), Action(Verb.DESTROY, address, part, str(record["title"]), "a move was cut short before it was deleted", away)


def _part_of(record: Mapping[str, Any]) -> str:
    return f"{_FORMER}{record['zone']}.{record['project']}"
