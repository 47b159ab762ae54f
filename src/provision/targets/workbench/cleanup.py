"""Deletion of instances: only those that provision creates, whatever the state contains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provision.effects.google import DeleteInstance, DeleteObjects
from provision.effects.local import RemoveTree
from provision.effects.system import Effect
from provision.errors import Refused
from provision.plan import Action, Intent, Operation
from provision.state import Ledger, State, resolve_own_folder
from provision.targets.workbench.image_records import (
    ImageJobRecord,
    plan_job_removals,
    without_image_jobs,
)
from provision.targets.workbench.records import InstanceRecord, is_former_part, is_instance_part
from provision.targets.workbench.resource_names import ResourceNames


def plan_removals(address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
    """Return the removal of all that is recorded or was begun at an address."""
    actions = [
        _plan_removal(address, part, record, folder)
        for part, record in ledger.state.parts(address).items()
        if part != ImageJobRecord.part
    ]
    actions += plan_job_removals(address, ledger)
    for intent in without_image_jobs(ledger).find_all_interrupted(address):
        if not intent.names:
            continue
        gone = tuple(effect for action in actions for effect in action.effects)
        effects = tuple(plan_interrupted_deletion(intent, gone))
        reason = "an interrupted run may have left it behind"
        title = "incomplete instance"
        action = Action(Operation.DESTROY, address, intent.part, title, reason, effects)
        actions.insert(0, action)
    return tuple(actions)


def _plan_removal(address: str, part: str, record: Mapping[str, Any], folder: Path) -> Action:
    title, reason = str(record.get("title", part)), "destroy was requested"
    if is_instance_part(part):
        effects = plan_instance_deletion(InstanceRecord.from_json(record))
        notes = ("its disks are also deleted, including /home/jupyter",)
        return Action(Operation.DESTROY, address, part, title, reason, effects, notes=notes)
    paths = record.get("paths", ())
    removals = tuple(RemoveTree(resolve_own_folder(folder, path, address)) for path in paths)
    return Action(Operation.DESTROY, address, part, title, reason, removals)


def plan_instance_deletion(record: InstanceRecord) -> tuple[Effect, ...]:
    """Return the effects that delete a recorded instance and the objects of its state.

    Raises:
        Refused: the record names an instance that provision would not create.
    """
    if not has_own_names(record.instance, record.bucket, record.lineage):
        raise Refused(
            f"refusing to delete {record.instance or 'the instance'}",
            why="the state lists an instance or a bucket that `provision` could not have created",
            hint="compare the state file with `gcloud workbench instances list`, and restore "
            "the file if it was edited",
        )
    names = (candidate.resource_name for candidate in record.candidates)
    instances = (DeleteInstance(name, record.lineage) for name in names)
    return (*instances, DeleteObjects(record.bucket))


def plan_interrupted_deletion(intent: Intent, deleted: tuple[Effect, ...]) -> Iterator[Effect]:
    """Yield the effects that delete the rest of an interrupted run, except `deleted`."""
    instance, bucket, lineage = (
        str(intent.details.get(key, "")) for key in ("instance", "bucket", "lineage")
    )
    effects: list[Effect] = [DeleteInstance(name, lineage) for name in intent.names]
    if has_own_names(instance, bucket, lineage):
        effects.append(DeleteObjects(bucket))
    return (effect for effect in effects if effect not in deleted)


def has_own_names(instance: str, bucket: str, lineage: str) -> bool:
    """Return whether an instance and a folder are named as provision names them."""
    named = instance.startswith("provision-") and re.fullmatch(r"[a-z0-9_-]+", lineage) is not None
    return named and bucket.startswith("gs://") and bucket.endswith(f"/{instance}/{lineage}/")


def plan_former_removals(
    state: State, address: str, names: ResourceNames
) -> Iterator[tuple[str, Action]]:
    """Yield the full names of replaced instances with the actions that delete them.

    The current instance is left out, whatever part records it: its own action deletes it.
    """
    current = InstanceRecord.find(state, address)
    # Instances of one name and lineage share a folder of objects, so it stays.
    shared = DeleteObjects(names.folder)
    for part, document in state.parts(address).items():
        if not is_former_part(part):
            continue
        former = InstanceRecord.from_json(document)
        if current is not None and current.resource_name == former.resource_name:
            continue
        deletion = tuple(effect for effect in plan_instance_deletion(former) if effect != shared)
        reason = "an earlier run was interrupted before deleting the old instance"
        action = Action(Operation.DESTROY, address, part, former.title, reason, deletion)
        yield former.resource_name, action
