"""What is done at an instance, and what a plan says of it: made, changed, or replaced by another."""  # noqa: E501

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
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
from provision.targets.workbench.refusals import get_workbench_target
from provision.targets.workbench.request_body import STARTUP_PROGRAM, AgentRun, read_creation_body
from provision.targets.workbench.resource_names import MANAGED_LABEL, build_labels

INSTANCE_PART = "instance"
RESTART_NOTE = "it is stopped and started: running kernels end"
_NAMED = 3
"""Fields that a reason names one by one; the notes name all. Our choice."""


def plan_create(place: TargetContext, have: WorkbenchObservation) -> Action:
    """Return the action that makes the instance, where there is none."""
    because = "there is none yet"
    if have.intent is not None and have.intent.verb == Operation.REPLACE:
        because = "an earlier run deleted it to make another, and was cut short"
    elif have.recorded:
        because = "it is gone: someone deleted it"
    uploads, create, record = _prepare_creation(place, have)
    return Action(
        Operation.CREATE,
        place.address,
        INSTANCE_PART,
        _title(have),
        because,
        (*uploads, create),
        record,
        tuple(_notes(place, have)),
    )


def plan_replace(
    place: TargetContext, have: WorkbenchObservation, found: tuple[FieldChange, ...]
) -> Action:
    """Return the action that puts another instance in the place of the one that is there.

    Names are the same for everyone, and one zone holds each name once: within the same zones the
    old one has to go first. In other zones it goes last.
    """
    old = DeleteInstance(have.names.instance_resource_name(have.zone), have.names.lineage)
    first = have.zone in have.names.zones
    uploads, create, record = _prepare_creation(place, have, instead_of=old.name if first else "")
    effects: tuple[Effect, ...] = (old, *uploads, create) if first else (*uploads, create, old)
    never = tuple(change for change in found if change.method is ChangeMethod.REPLACE)
    because = (
        f"{_named(never, have)} cannot be changed in place"
        if never
        else f"its state is {have.state}"
    )
    order = (
        "the old one is deleted first, since the name is the same: if no zone has the machine "
        "then, there is none"
    )
    notes = (
        *_lines(found, have),
        f"lost: /home/jupyter and all else on the disks of {have.names.instance} in {have.zone}",
        order if first else "the old one is deleted once the new one is there",
        *_shrink_notes(never),
        *_notes(place, have),
    )
    return Action(
        Operation.REPLACE,
        place.address,
        INSTANCE_PART,
        _title(have),
        because,
        effects,
        record,
        notes,
    )


def plan_move(place: TargetContext, have: WorkbenchObservation) -> Action:
    """Return the action that makes the instance in another project, and then removes the one that
    is recorded.
    """
    old = have.recorded or {}
    uploads, create, record = _prepare_creation(place, have)
    because = "project cannot be changed in place"
    moved = f"project: {old.get('project')} -> {have.names.project}"
    notes = (
        moved,
        f"lost: /home/jupyter and all else on the disks of {old.get('instance')}",
        "the old one is deleted once the new one is there",
    )
    return Action(
        Operation.REPLACE,
        place.address,
        INSTANCE_PART,
        _title(have),
        because,
        (*uploads, create, *plan_instance_deletion(old)),
        record,
        (*notes, *_notes(place, have)),
    )


def plan_update(
    place: TargetContext, have: WorkbenchObservation, found: tuple[FieldChange, ...]
) -> Action:
    """Return the action that brings an instance to what is wanted: nothing, while it runs, or with
    one stop and one start.

    An instance that is started does its run once, so a start that comes from here brings a new
    run, and the device verifies itself anew.
    """
    run = select_run(place, have)
    uploads: tuple[UploadObjects, ...] = ()
    again = any(change.path.endswith("/provision-run") for change in found)
    restart = again or any(
        change.method in (ChangeMethod.STOPPED, ChangeMethod.GROW) for change in found
    )
    if restart or have.is_stopped:
        uploads, _, run = prepare_start(place, have)
        found = find_differences(place, have, run)
    steps = _steps(have, found, restart=restart)
    record = build_record(place, have, run)
    notes = (
        *_lines(found, have),
        *_adoption_notes(have),
        *_unknown_creation_notes(have),
        *_growth_notes(found),
        *_notes(place, have),
    )
    if not steps and have.recorded is not None and not have.is_interrupted:
        return Action(
            Operation.KEEP,
            place.address,
            INSTANCE_PART,
            _title(have),
            "it is as declared",
            (),
            record,
            notes,
        )
    because = _reason(have, found, place.environment.digest, again=again, restart=restart)
    return Action(
        Operation.CHANGE,
        place.address,
        INSTANCE_PART,
        _title(have),
        because,
        (*uploads, *steps),
        record,
        notes,
    )


def prepare_start(
    place: TargetContext, have: WorkbenchObservation
) -> tuple[tuple[UploadObjects, ...], dict[str, Any], AgentRun]:
    """Return the uploads for a new run, the body that starts it, and the run."""
    run, document = prepare_run(place, have)
    parts = programs.build_programs()
    objects = [
        (have.names.folder + STARTUP_PROGRAM, programs.read_startup_program()),
        *((have.names.folder + part.file, part.content) for part in parts.values()),
    ]
    upload = UploadObjects(
        (*objects, (f"{have.names.run_folder(run.nonce)}document.json", document))
    )
    return (upload,), build_desired_body(place, have, run), run


def build_record(place: TargetContext, have: WorkbenchObservation, run: AgentRun) -> dict[str, Any]:
    """Return what the state records of an instance."""
    target, names = get_workbench_target(place), have.names
    return {
        "title": _title(have),
        "kind": "workbench",
        "project": names.project,
        "zones": list(names.zones),
        "zone": have.zone,
        "instance": names.instance,
        "lineage": names.lineage,
        "bucket": names.folder,
        "image": {
            "project": have.image_choice.project,
            "name": have.image_choice.name,
            "family": have.image_choice.family,
        },
        "body": build_desired_body(place, have, run),
        "nonce": run.nonce,
        "digest": place.environment.digest,
        "lock": place.lock.digest,
        "on_failure": target.on_failure,
        "labels": build_labels(place, names),
    }


def _prepare_creation(
    place: TargetContext, have: WorkbenchObservation, instead_of: str = ""
) -> tuple[tuple[UploadObjects, ...], CreateInstance, dict[str, Any]]:
    new = replace(have, instance=None, recorded=None, zone="")
    uploads, body, run = prepare_start(place, new)
    # One request for one plan: made again it is the same request to the service.
    request = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{have.names.instance} {run.nonce}"))
    return (
        uploads,
        CreateInstance(
            have.names.project, have.names.zones, have.names.instance, body, request, instead_of
        ),
        build_record(place, new, run),
    )


def _steps(
    have: WorkbenchObservation, found: tuple[FieldChange, ...], *, restart: bool
) -> tuple[Effect, ...]:
    """Return the steps of a change. What is cut short among them leaves the instance stopped, and
    the next run starts it.
    """
    name = have.names.instance_resource_name(have.zone)
    patched = tuple(
        change for change in found if change.method in (ChangeMethod.RUNNING, ChangeMethod.STOPPED)
    )
    steps: tuple[Effect, ...] = (UpdateInstance(name, *build_patch(patched)),) if patched else ()
    steps += tuple(
        _resize_disk(name, change) for change in found if change.method is ChangeMethod.GROW
    )
    if restart or have.is_stopped:
        before = (StopInstance(name),) if have.state != "STOPPED" else ()
        steps = (*before, *steps, StartInstance(name))
    elif have.state != "ACTIVE":
        steps = (*steps, StartInstance(name))  # waits for what an interrupted run had begun
    return (*steps, *_delete_old_objects(have))


def _delete_old_objects(have: WorkbenchObservation) -> Iterator[Effect]:
    """Yield what removes our objects from the folder that the instance had before its `bucket`
    changed.
    """
    old = have.recorded or {}
    if old.get("bucket") and old["bucket"] != have.names.folder and has_own_names(old):
        yield DeleteObjects(str(old["bucket"]))


def _resize_disk(name: str, change: FieldChange) -> ResizeDisk:
    wants = change.desired[0] if isinstance(change.desired, list) else change.desired
    return ResizeDisk(
        name,
        "bootDisk" if change.path.endswith("bootDisk") else "dataDisk",
        str(wants["diskSizeGb"]),
    )


def _reason(
    have: WorkbenchObservation,
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
    if is_adopted(have):
        reasons.append("it is taken over from another state (--adopt)")
    elif have.recorded is None:
        reasons.append("an earlier run was cut short, and the instance is there: it is adopted")
    words, ended = _named(found, have), (have.recorded or {}).get("ended")
    if ended:
        reasons.append(
            f"its last run ended without a proof ({escape_line(str(ended['why']))[:200]}): "
            "it runs again"
        )
    if again and have.recorded is not None and have.recorded.get("digest") != digest:
        reasons.append("the environment changed")
    elif again and not words and not ended and not is_adopted(have):
        reasons.append("what is declared for the device changed")
    if words:
        reasons.append(f"{words} changed")
    if have.is_stopped:
        reasons.append("it is stopped: it is started, and verifies itself anew")
    elif restart:
        reasons.append(RESTART_NOTE)
    elif found:
        reasons.append("it runs on")
    return "; ".join(reasons or ["an earlier run was cut short"])


def _lines(found: tuple[FieldChange, ...], have: WorkbenchObservation) -> Iterator[str]:
    yield from (f"{field}: {words}" for field, words in describe_changes(found, have.facts))


def _named(found: tuple[FieldChange, ...], have: WorkbenchObservation) -> str:
    words = [
        field
        for field, _ in describe_changes(found, have.facts)
        if not field.startswith(f"labels.{MANAGED_LABEL}-")
    ]
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _adoption_notes(have: WorkbenchObservation) -> Iterator[str]:
    folder = str(
        (have.instance or {}).get("gceSetup", {}).get("metadata", {}).get("post-startup-script", "")
    ).rpartition("/")[0]
    if is_adopted(have) and folder:
        yield f"reports and logs of the state before stay in {folder}/"


def _unknown_creation_notes(have: WorkbenchObservation) -> Iterator[str]:
    if (
        have.instance is not None
        and have.recorded is None
        and not read_creation_body(have.instance)
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


def _title(have: WorkbenchObservation) -> str:
    return f"instance {have.names.instance}"


def _notes(place: TargetContext, have: WorkbenchObservation) -> Iterator[str]:
    gpu = "" if place.spec.gpu.is_none else f" with {place.spec.gpu}"
    tried = ", ".join(have.names.zones)
    yield f"machine: {have.machine_choice.machine_type}{gpu}"
    if have.instance is None or have.needs_replacement:
        ordered = f"{tried}, in this order" if len(have.names.zones) > 1 else tried
        yield (
            f"zone: it is in {have.zone}; the new one is tried in {ordered}"
            if have.zone
            else f"zones, in this order: {tried}"
        )
    else:
        yield f"zone: {have.zone}"
    yield f"cost: {have.machine_choice.price}"
    if have.image_choice.family:
        yield (
            f"image: {have.image_choice.name}, the newest of {have.image_choice.family}"
            if have.recorded is None and have.instance is None
            else f"image: {have.image_choice.name}"
        )
    yield from have.capacity.notes
    yield from describe_duplicates(have.others)


def plan_rerun_effects(
    place: TargetContext, have: WorkbenchObservation, nonce: str
) -> tuple[tuple[Effect, ...], Mapping[str, Any]]:
    """Return the effects that have an instance verify itself again under a nonce, and the record
    that it then has.
    """
    new = replace(have, next_nonce=nonce)
    uploads, _, run = prepare_start(place, new)
    found = find_differences(place, new, run)
    return (*uploads, *_steps(new, found, restart=True)), build_record(place, new, run)
