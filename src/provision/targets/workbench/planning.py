"""Actions on an instance: creation, change, replacement, move, and a new run."""

from __future__ import annotations

import uuid
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
from provision.targets.workbench.agent_config import build_programs, read_startup_program
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
    explain_update,
    list_changes,
    machine_notes,
    name_changes,
    replacement_notes,
    update_notes,
)
from provision.targets.workbench.records import InstanceRecord, build_intent, find_replaced
from provision.targets.workbench.request_body import STARTUP_PROGRAM, AgentRun
from provision.targets.workbench.resource_names import build_labels, get_workbench_target


def plan_create(context: TargetContext, observed: WorkbenchObservation) -> Action:
    """Return the action that creates the instance."""
    reason = "it does not exist yet"
    if observed.intent is not None and observed.intent.verb == Operation.REPLACE:
        reason = "an earlier run deleted it to replace it, but was interrupted"
    elif observed.recorded:
        reason = "it was deleted outside of provision"
    effects, record = _prepare_creation(context, observed)
    notes = tuple(machine_notes(context, observed))
    return _action(Operation.CREATE, context, observed, reason, effects, record, notes)


def plan_replace(
    context: TargetContext, observed: WorkbenchObservation, changes: tuple[FieldChange, ...]
) -> Action:
    """Return the action that replaces the instance with a new one.

    Old and new instance have the same name, which is unique in a zone: in the same zones the old
    instance is deleted first, in other zones last.
    """
    names, zone = observed.names, observed.zone
    old = DeleteInstance(names.instance_resource_name(zone), names.lineage)
    deleted_first = zone in names.zones
    creation, record = _prepare_creation(context, observed, old.name if deleted_first else "")
    immutable = tuple(change for change in changes if change.method is ChangeMethod.REPLACE)
    reason = f"its state is {observed.state}"
    if immutable:
        reason = f"{name_changes(immutable, observed)} cannot be changed in place"
    effects, order = (*creation, old), "the old instance is deleted once the new one exists"
    if deleted_first:
        effects = (old, *creation)
        order = (
            "the old instance is deleted first, because the new one has the same name: if no "
            "zone then has the machine, there is no instance"
        )
    notes = (
        *list_changes(changes, observed),
        f"lost: /home/jupyter and everything else on the disks of {names.instance} in {zone}",
        order,
        *replacement_notes(context, observed, immutable),
    )
    return _action(Operation.REPLACE, context, observed, reason, effects, record, notes)


def plan_move(
    context: TargetContext, observed: WorkbenchObservation, old: InstanceRecord
) -> Action:
    """Return the action that moves the instance to another project."""
    creation, record = _prepare_creation(context, observed)
    notes = (
        f"project: {old.project} -> {observed.names.project}",
        f"lost: /home/jupyter and everything else on the disks of {old.instance}",
        "the old instance is deleted once the new one exists",
        *machine_notes(context, observed),
    )
    reason = "the project cannot be changed in place"
    effects = (*creation, *plan_instance_deletion(old))
    return _action(Operation.REPLACE, context, observed, reason, effects, record, notes)


def plan_update(
    context: TargetContext, observed: WorkbenchObservation, changes: tuple[FieldChange, ...]
) -> Action:
    """Return the action on an instance: keep it, change it while it runs, or with a restart.

    An instance performs each run once, so a restart needs a new run, which verifies it again.
    """
    run = select_run(context, observed)
    uploads: tuple[UploadObjects, ...] = ()
    is_new_run = any(change.path.endswith("/provision-run") for change in changes)
    needs_stop = (ChangeMethod.STOPPED, ChangeMethod.GROW)
    restart = is_new_run or any(change.method in needs_stop for change in changes)
    if restart or observed.is_stopped:
        upload, _, run = _prepare_start(context, observed)
        uploads = (upload,)
        changes = find_differences(context, observed, run)
    steps = _steps(observed, changes, restart=restart)
    record = build_record(context, observed, run)
    notes = tuple(update_notes(context, observed, changes))
    if not steps and observed.recorded is not None and not observed.is_interrupted:
        reason = "it is up to date"
        return _action(Operation.KEEP, context, observed, reason, (), record, notes)
    reason = explain_update(
        observed, changes, context.environment.digest, is_new_run=is_new_run, restart=restart
    )
    effects = (*uploads, *steps)
    return _action(Operation.CHANGE, context, observed, reason, effects, record, notes)


def _prepare_start(
    context: TargetContext, observed: WorkbenchObservation
) -> tuple[UploadObjects, dict[str, Any], AgentRun]:
    """Return the upload for a new run, the body that starts it, and the run."""
    run, document = prepare_run(context, observed)
    names = observed.names
    objects = [(names.folder + STARTUP_PROGRAM, read_startup_program())]
    programs = build_programs(context).values()
    objects += ((names.folder + program.file, program.content) for program in programs)
    objects.append((f"{names.run_folder(run.nonce)}document.json", document))
    return UploadObjects(tuple(objects)), build_desired_body(context, observed, run), run


def build_record(
    context: TargetContext, observed: WorkbenchObservation, run: AgentRun
) -> InstanceRecord:
    """Return the record of an instance."""
    names, image = observed.names, observed.image_choice
    return InstanceRecord(
        f"instance {names.instance}",
        names.project,
        names.zones,
        observed.zone,
        names.instance,
        names.lineage,
        names.folder,
        run.nonce,
        get_workbench_target(context).on_failure,
        image={"project": image.project, "name": image.name, "family": image.family},
        body=build_desired_body(context, observed, run),
        digest=context.environment.digest,
        lock=context.lock.digest,
        labels=build_labels(context, names),
    )


def _action(
    operation: Operation,
    context: TargetContext,
    observed: WorkbenchObservation,
    reason: str,
    effects: tuple[Effect, ...],
    record: InstanceRecord,
    notes: tuple[str, ...] = (),
) -> Action:
    """Return an action on the instance, with its journal entry and what it replaces."""
    intent = build_intent(context.address, operation, record)
    return Action(
        operation,
        context.address,
        record.part,
        record.title,
        reason,
        effects,
        record.to_json(),
        notes,
        intent,
        replaced=find_replaced(observed.recorded, effects, intent.names),
        settles=intent.names if record.zone else (),
    )


def _prepare_creation(
    context: TargetContext, observed: WorkbenchObservation, instead_of: str = ""
) -> tuple[tuple[Effect, ...], InstanceRecord]:
    """Return the effects that create an instance, and its record."""
    new = replace(observed, instance=None, recorded=None, zone="")
    uploads, body, run = _prepare_start(context, new)
    names = observed.names
    # The request id follows from the plan: the service ignores a repeated request.
    request = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{names.instance} {run.nonce}"))
    create = CreateInstance(names.project, names.zones, names.instance, body, request, instead_of)
    return (uploads, create), build_record(context, new, run)


def _steps(
    observed: WorkbenchObservation, changes: tuple[FieldChange, ...], *, restart: bool
) -> tuple[Effect, ...]:
    """Return the steps of a change.

    If they are interrupted, the instance stays stopped, and the next run starts it.
    """
    name = observed.names.instance_resource_name(observed.zone)
    steps: list[Effect] = []
    in_place = (ChangeMethod.RUNNING, ChangeMethod.STOPPED)
    if patched := tuple(change for change in changes if change.method in in_place):
        steps.append(UpdateInstance(name, *build_patch(patched)))
    growing = (change for change in changes if change.method is ChangeMethod.GROW)
    steps += (_resize_disk(name, change) for change in growing)
    if restart or observed.is_stopped:
        if observed.state != "STOPPED":
            steps.insert(0, StopInstance(name))
        steps.append(StartInstance(name))
    elif observed.state != "ACTIVE":
        steps.append(StartInstance(name))  # waits for the start that an interrupted run requested
    # Our objects in the folder before a change of `bucket`.
    old = observed.recorded
    is_moved = old is not None and old.bucket not in ("", observed.names.folder)
    if old and is_moved and has_own_names(old.instance, old.bucket, old.lineage):
        steps.append(DeleteObjects(old.bucket))
    return tuple(steps)


def _resize_disk(name: str, change: FieldChange) -> ResizeDisk:
    disk = change.desired[0] if isinstance(change.desired, list) else change.desired
    field = "bootDisk" if change.path.endswith("bootDisk") else "dataDisk"
    return ResizeDisk(name, field, str(disk["diskSizeGb"]))


def plan_rerun(context: TargetContext, observed: WorkbenchObservation, nonce: str) -> Action:
    """Return the action that verifies an instance again under a nonce."""
    new = replace(observed, next_nonce=nonce)
    upload, _, run = _prepare_start(context, new)
    effects = (upload, *_steps(new, find_differences(context, new, run), restart=True))
    record = build_record(context, new, run)
    reason = "it is verified again"
    return _action(Operation.CHANGE, context, new, reason, effects, record)
