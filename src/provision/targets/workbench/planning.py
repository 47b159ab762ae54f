"""What is done at an instance, and what a plan says of it: made, changed, or replaced by another."""  # noqa: E501

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from provision.effects import (
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    Effect,
    ResizeDisk,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.plan import Action, Operation
from provision.sanitize import escape_line
from provision.targets.base import TargetContext
from provision.targets.workbench import programs
from provision.targets.workbench.change_text import describe_changes
from provision.targets.workbench.cleanup import has_own_names, plan_instance_deletion
from provision.targets.workbench.diff import ChangeMethod, FieldChange, build_patch
from provision.targets.workbench.observation import (
    WorkbenchObservation,
    build_desired_body,
    find_differences,
    is_adopted,
    prepare_run,
    select_run,
)
from provision.targets.workbench.ownership import describe_duplicates
from provision.targets.workbench.records import INSTANCE_PART, build_intent, find_replaced
from provision.targets.workbench.refusals import get_workbench_target
from provision.targets.workbench.request_body import STARTUP_PROGRAM, AgentRun, read_creation_body
from provision.targets.workbench.resource_names import MANAGED_LABEL, build_labels

RESTART_NOTE = "it is stopped and started: running kernels end"
_NAMED = 3
"""Fields that a reason names one by one; the notes name all. Our choice."""


def plan_create(context: TargetContext, observed: WorkbenchObservation) -> Action:
    """Return the action that makes the instance, where there is none."""
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
        tuple(_notes(context, observed)),
    )


def plan_replace(
    context: TargetContext, observed: WorkbenchObservation, found: tuple[FieldChange, ...]
) -> Action:
    """Return the action that puts another instance in the place of the one that is there.

    Names are the same for everyone, and one zone holds each name once: within the same zones the
    old one has to go first. In other zones it goes last.
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
        f"{_named(never, observed)} cannot be changed in place"
        if never
        else f"its state is {observed.state}"
    )
    order = (
        "the old one is deleted first, since the name is the same: if no zone has the machine "
        "then, there is none"
    )
    notes = (
        *_lines(found, observed),
        f"lost: /home/jupyter and all else on the disks of {observed.names.instance} in {zone}",
        order if first else "the old one is deleted once the new one is there",
        *_shrink_notes(never),
        *_notes(context, observed),
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
    """Return the action that makes the instance in another project, and then removes the one that
    is recorded.
    """
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
        (*notes, *_notes(context, observed)),
    )


def plan_update(
    context: TargetContext, observed: WorkbenchObservation, found: tuple[FieldChange, ...]
) -> Action:
    """Return the action that brings an instance to what is wanted: nothing, while it runs, or with
    one stop and one start.

    An instance that is started does its run once, so a start that comes from here brings a new
    run, and the device verifies itself anew.
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
        *_lines(found, observed),
        *_adoption_notes(observed),
        *_unknown_creation_notes(observed),
        *_growth_notes(found),
        *_notes(context, observed),
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
    because = _reason(observed, found, context.environment.digest, again=again, restart=restart)
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
    """Return the steps of a change. What is cut short among them leaves the instance stopped, and
    the next run starts it.
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
    """Yield what removes our objects from the folder that the instance had before its `bucket`
    changed.
    """
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


def _reason(
    observed: WorkbenchObservation,
    found: tuple[FieldChange, ...],
    digest: str,
    *,
    again: bool,
    restart: bool,
) -> str:
    """Return why an instance changes, and what that costs it; `digest` is of the environment that
    is wanted.
    """
    reasons = []
    if is_adopted(observed):
        reasons.append("it is taken over from another state (--adopt)")
    elif observed.recorded is None:
        reasons.append("an earlier run was cut short, and the instance is there: it is adopted")
    words, ended = _named(found, observed), (observed.recorded or {}).get("ended")
    if ended:
        reasons.append(
            f"its last run ended without a proof ({escape_line(str(ended['why']))[:200]}): "
            "it runs again"
        )
    if again and observed.recorded is not None and observed.recorded.get("digest") != digest:
        reasons.append("the environment changed")
    elif again and not words and not ended and not is_adopted(observed):
        reasons.append("what is declared for the device changed")
    if words:
        reasons.append(f"{words} changed")
    if observed.is_stopped:
        reasons.append("it is stopped: it is started, and verifies itself anew")
    elif restart:
        reasons.append(RESTART_NOTE)
    elif found:
        reasons.append("it runs on")
    return "; ".join(reasons or ["an earlier run was cut short"])


def _lines(found: tuple[FieldChange, ...], observed: WorkbenchObservation) -> Iterator[str]:
    yield from (f"{field}: {words}" for field, words in describe_changes(found, observed.facts))


def _named(found: tuple[FieldChange, ...], observed: WorkbenchObservation) -> str:
    words = [
        field
        for field, _ in describe_changes(found, observed.facts)
        if not field.startswith(f"labels.{MANAGED_LABEL}-")
    ]
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _adoption_notes(observed: WorkbenchObservation) -> Iterator[str]:
    folder = str(
        (observed.instance or {})
        .get("gceSetup", {})
        .get("metadata", {})
        .get("post-startup-script", "")
    ).rpartition("/")[0]
    if is_adopted(observed) and folder:
        yield f"reports and logs of the state before stay in {folder}/"


def _unknown_creation_notes(observed: WorkbenchObservation) -> Iterator[str]:
    if (
        observed.instance is not None
        and observed.recorded is None
        and not read_creation_body(observed.instance)
    ):
        (
            yield "it does not say how it was made: disks, service account, network and owner are "
            "not compared, its image only where the service tells it"
        )


def _growth_notes(found: tuple[FieldChange, ...]) -> Iterator[str]:
    if any(change.method is ChangeMethod.GROW for change in found):
        (
            yield "a disk that grew never shrinks again in place; if df shows the old size then: "
            "sudo resize2fs DEVICE on the instance"
        )


def _shrink_notes(never: tuple[FieldChange, ...]) -> Iterator[str]:
    disks = [
        change for change in never if change.path in ("gceSetup/bootDisk", "gceSetup/dataDisks")
    ]
    if disks:
        (
            yield "disks: size can grow in place, but never shrink; type and key are those that "
            "the "
            "disk was made with"
        )


def _title(observed: WorkbenchObservation) -> str:
    return f"instance {observed.names.instance}"


def _notes(context: TargetContext, observed: WorkbenchObservation) -> Iterator[str]:
    gpu = "" if context.spec.gpu.is_none else f" with {context.spec.gpu}"
    tried = ", ".join(observed.names.zones)
    yield f"machine: {observed.machine_choice.machine_type}{gpu}"
    if observed.instance is None or observed.needs_replacement:
        ordered = f"{tried}, in this order" if len(observed.names.zones) > 1 else tried
        yield (
            f"zone: it is in {observed.zone}; the new one is tried in {ordered}"
            if observed.zone
            else f"zones, in this order: {tried}"
        )
    else:
        yield f"zone: {observed.zone}"
    yield f"cost: {observed.machine_choice.price}"
    if observed.image_choice.family:
        yield (
            f"image: {observed.image_choice.name}, the newest of {observed.image_choice.family}"
            if observed.recorded is None and observed.instance is None
            else f"image: {observed.image_choice.name}"
        )
    yield from observed.capacity.notes
    yield from describe_duplicates(observed.others)


def plan_rerun(context: TargetContext, observed: WorkbenchObservation, nonce: str) -> Action:
    """Return the action that makes an instance verify itself again under a nonce."""
    new = replace(observed, next_nonce=nonce)
    uploads, _, run = prepare_start(context, new)
    changes = find_differences(context, new, run)
    effects = (*uploads, *_steps(new, changes, restart=True))
    record = build_record(context, new, run)
    reason = "it is to verify itself again"
    return _action(Operation.CHANGE, context, new, reason, effects, record)
