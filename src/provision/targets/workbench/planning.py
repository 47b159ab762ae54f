"""Actions on an instance: creation, change, replacement, move, and a new run."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provision.effects.google import (
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    ResizeDisk,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.effects.system import Effect
from provision.plan import Action, Operation
from provision.targets.context import TargetContext
from provision.targets.workbench import programs
from provision.targets.workbench.cleanup import has_own_names, plan_instance_deletion
from provision.targets.workbench.diff import ChangeMethod, FieldChange, build_patch
from provision.targets.workbench.observation import (
    WorkbenchObservation,
    build_desired_body,
    find_differences,
    prepare_run,
    select_run,
)
from provision.targets.workbench.plan_notes import (
    adoption_notes,
    explain_update,
    growth_notes,
    list_changes,
    machine_notes,
    name_changes,
    shrink_notes,
    unknown_creation_notes,
)
from provision.targets.workbench.records import INSTANCE_PART, build_intent, find_replaced
from provision.targets.workbench.refusals import get_workbench_target
from provision.targets.workbench.request_body import STARTUP_PROGRAM, AgentRun
from provision.targets.workbench.resource_names import build_labels


def plan_create(context: TargetContext, observed: WorkbenchObservation) -> Action:
    """Return the action that creates the instance."""
    because = "there is none yet"
    if observed.intent is not None and observed.intent.verb == Operation.REPLACE:
        because = "an earlier run deleted it to make another, and was cut short"
    elif observed.recorded:
        because = "it is gone: someone deleted it"
    uploads, create, record = _prepare_creation(context, observed)
    return _action(
        Operation.CREATE,
        context,
        observed,
        because,
        (*uploads, create),
        record,
        tuple(machine_notes(context, observed)),
    )


def plan_replace(
    context: TargetContext, observed: WorkbenchObservation, found: tuple[FieldChange, ...]
) -> Action:
    """Return the action that replaces the instance by another.

    Names are the same for everyone, and a zone has each name once: within the same zones the old
    instance is deleted first, in other zones last.
    """
    old = DeleteInstance(
        observed.names.instance_resource_name(observed.zone), observed.names.lineage
    )
    zone = observed.zone
    first = zone in observed.names.zones
    uploads, create, record = _prepare_creation(
        context, observed, instead_of=old.name if first else ""
    )
    effects: tuple[Effect, ...] = (old, *uploads, create) if first else (*uploads, create, old)
    never = tuple(change for change in found if change.method is ChangeMethod.REPLACE)
    because = (
        f"{name_changes(never, observed)} cannot be changed in place"
        if never
        else f"its state is {observed.state}"
    )
    order = (
        "the old one is deleted first, since the name is the same: if no zone has the machine "
        "then, there is none"
    )
    notes = (
        *list_changes(found, observed),
        f"lost: /home/jupyter and all else on the disks of {observed.names.instance} in {zone}",
        order if first else "the old one is deleted once the new one is there",
        *shrink_notes(never),
        *machine_notes(context, observed),
    )
    return _action(
        Operation.REPLACE,
        context,
        observed,
        because,
        effects,
        record,
        notes,
    )


def plan_move(context: TargetContext, observed: WorkbenchObservation) -> Action:
    """Return the action that moves the instance to another project."""
    old = observed.recorded or {}
    uploads, create, record = _prepare_creation(context, observed)
    because = "project cannot be changed in place"
    moved = f"project: {old.get('project')} -> {observed.names.project}"
    notes = (
        moved,
        f"lost: /home/jupyter and all else on the disks of {old.get('instance')}",
        "the old one is deleted once the new one is there",
    )
    return _action(
        Operation.REPLACE,
        context,
        observed,
        because,
        (*uploads, create, *plan_instance_deletion(old)),
        record,
        (*notes, *machine_notes(context, observed)),
    )


def plan_update(
    context: TargetContext, observed: WorkbenchObservation, found: tuple[FieldChange, ...]
) -> Action:
    """Return the action that changes an instance: not at all, while it runs, or with a restart.

    A started instance does its run once, so a restart of ours brings a new run, and the device
    verifies itself again.
    """
    run = select_run(context, observed)
    uploads: tuple[UploadObjects, ...] = ()
    again = any(change.path.endswith("/provision-run") for change in found)
    restart = again or any(
        change.method in (ChangeMethod.STOPPED, ChangeMethod.GROW) for change in found
    )
    if restart or observed.is_stopped:
        uploads, _, run = prepare_start(context, observed)
        found = find_differences(context, observed, run)
    steps = _steps(observed, found, restart=restart)
    record = build_record(context, observed, run)
    notes = (
        *list_changes(found, observed),
        *adoption_notes(observed),
        *unknown_creation_notes(observed),
        *growth_notes(found),
        *machine_notes(context, observed),
    )
    if not steps and observed.recorded is not None and not observed.is_interrupted:
        return _action(
            Operation.KEEP,
            context,
            observed,
            "it is as declared",
            (),
            record,
            notes,
        )
    because = explain_update(
        observed, found, context.environment.digest, again=again, restart=restart
    )
    return _action(
        Operation.CHANGE,
        context,
        observed,
        because,
        (*uploads, *steps),
        record,
        notes,
    )


def prepare_start(
    context: TargetContext, observed: WorkbenchObservation
) -> tuple[tuple[UploadObjects, ...], dict[str, Any], AgentRun]:
    """Return the uploads for a new run, the body that starts it, and the run."""
    run, document = prepare_run(context, observed)
    parts = programs.build_programs()
    objects = [
        (observed.names.folder + STARTUP_PROGRAM, programs.read_startup_program()),
        *((observed.names.folder + part.file, part.content) for part in parts.values()),
    ]
    upload = UploadObjects(
        (*objects, (f"{observed.names.run_folder(run.nonce)}document.json", document))
    )
    return (upload,), build_desired_body(context, observed, run), run


def build_record(
    context: TargetContext, observed: WorkbenchObservation, run: AgentRun
) -> dict[str, Any]:
    """Return what the state records of an instance."""
    target, names = get_workbench_target(context), observed.names
    return {
        "title": _title(observed),
        "kind": "workbench",
        "project": names.project,
        "zones": list(names.zones),
        "zone": observed.zone,
        "instance": names.instance,
        "lineage": names.lineage,
        "bucket": names.folder,
        "image": {
            "project": observed.image_choice.project,
            "name": observed.image_choice.name,
            "family": observed.image_choice.family,
        },
        "body": build_desired_body(context, observed, run),
        "nonce": run.nonce,
        "digest": context.environment.digest,
        "lock": context.lock.digest,
        "on_failure": target.on_failure,
        "labels": build_labels(context, names),
    }


def _action(
    operation: Operation,
    context: TargetContext,
    observed: WorkbenchObservation,
    reason: str,
    effects: tuple[Effect, ...],
    record: dict[str, Any],
    notes: tuple[str, ...] = (),
) -> Action:
    """Return an action on the instance, with its journal entry and what it replaces."""
    intent = build_intent(context.address, operation, record)
    return Action(
        operation,
        context.address,
        INSTANCE_PART,
        _title(observed),
        reason,
        effects,
        record,
        notes,
        intent,
        replaced=find_replaced(observed.recorded, effects, intent.names),
        settles=intent.names if record["zone"] else (),
    )


def _prepare_creation(
    context: TargetContext, observed: WorkbenchObservation, instead_of: str = ""
) -> tuple[tuple[UploadObjects, ...], CreateInstance, dict[str, Any]]:
    new = replace(observed, instance=None, recorded=None, zone="")
    uploads, body, run = prepare_start(context, new)
    # One request for one plan: made again it is the same request to the service.
    request = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{observed.names.instance} {run.nonce}"))
    return (
        uploads,
        CreateInstance(
            observed.names.project,
            observed.names.zones,
            observed.names.instance,
            body,
            request,
            instead_of,
        ),
        build_record(context, new, run),
    )


def _steps(
    observed: WorkbenchObservation, found: tuple[FieldChange, ...], *, restart: bool
) -> tuple[Effect, ...]:
    """Return the steps of a change.

    If they are interrupted, the instance stays stopped, and the next run starts it.
    """
    name = observed.names.instance_resource_name(observed.zone)
    patched = tuple(
        change for change in found if change.method in (ChangeMethod.RUNNING, ChangeMethod.STOPPED)
    )
    steps: tuple[Effect, ...] = (UpdateInstance(name, *build_patch(patched)),) if patched else ()
    steps += tuple(
        _resize_disk(name, change) for change in found if change.method is ChangeMethod.GROW
    )
    if restart or observed.is_stopped:
        before = (StopInstance(name),) if observed.state != "STOPPED" else ()
        steps = (*before, *steps, StartInstance(name))
    elif observed.state != "ACTIVE":
        steps = (*steps, StartInstance(name))  # waits for what an interrupted run had begun
    return (*steps, *_delete_old_objects(observed))


def _delete_old_objects(observed: WorkbenchObservation) -> Iterator[Effect]:
    """Yield the deletion of our objects in the folder before a change of `bucket`."""
    old = observed.recorded or {}
    if old.get("bucket") and old["bucket"] != observed.names.folder and has_own_names(old):
        yield DeleteObjects(str(old["bucket"]))


def _resize_disk(name: str, change: FieldChange) -> ResizeDisk:
    wants = change.desired[0] if isinstance(change.desired, list) else change.desired
    return ResizeDisk(
        name,
        "bootDisk" if change.path.endswith("bootDisk") else "dataDisk",
        str(wants["diskSizeGb"]),
    )


def _title(observed: WorkbenchObservation) -> str:
    return f"instance {observed.names.instance}"


def plan_rerun(context: TargetContext, observed: WorkbenchObservation, nonce: str) -> Action:
    """Return the action that makes an instance verify itself again under a nonce."""
    new = replace(observed, next_nonce=nonce)
    uploads, _, run = prepare_start(context, new)
    changes = find_differences(context, new, run)
    effects = (*uploads, *_steps(new, changes, restart=True))
    record = build_record(context, new, run)
    reason = "it is to verify itself again"
    return _action(Operation.CHANGE, context, new, reason, effects, record)
