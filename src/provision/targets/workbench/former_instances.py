"""Deletion of replaced instances that an interrupted move left elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from provision.effects.google import DeleteObjects
from provision.plan import Action, Operation
from provision.state import State
from provision.targets.workbench.cleanup import plan_instance_deletion
from provision.targets.workbench.records import (
    INSTANCE_PART,
    build_resource_name,
    is_former_part,
)
from provision.targets.workbench.resource_names import ResourceNames


def plan_former_removals(
    state: State, address: str, names: ResourceNames
) -> Iterator[tuple[str, Action]]:
    """Yield the full names of replaced instances with the actions that delete them.

    The current one is left out, whatever part records it: it goes with the action on itself.
    """
    current = state.resource(address, INSTANCE_PART)
    current_name = ""
    if current is not None and current.get("zone"):
        current_name = build_resource_name(current)
    # Instances of one name and lineage share a folder of objects, so it stays.
    shared = DeleteObjects(names.folder)
    for part, record in state.parts(address).items():
        if not is_former_part(part) or build_resource_name(record) == current_name:
            continue
        deletion = tuple(effect for effect in plan_instance_deletion(record) if effect != shared)
        reason = "a move was cut short before it was deleted"
        title = str(record["title"])
        action = Action(Operation.DESTROY, address, part, title, reason, deletion)
        yield build_resource_name(record), action
