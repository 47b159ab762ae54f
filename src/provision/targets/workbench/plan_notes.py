"""Reasons and notes in the plan of an instance."""

from __future__ import annotations

from collections.abc import Iterator

from provision.sanitize import escape_line
from provision.targets.context import TargetContext
from provision.targets.workbench.change_text import describe_changes
from provision.targets.workbench.diff import ChangeMethod, FieldChange
from provision.targets.workbench.observation import WorkbenchObservation, is_adopted
from provision.targets.workbench.ownership import describe_owner
from provision.targets.workbench.request_body import read_creation_body, read_metadata
from provision.targets.workbench.resource_names import MANAGED_LABEL

RESTART_NOTE = "it is restarted, which ends running kernels"
_NAMED = 3
"""Fields that a reason names one by one; the notes name all. Our choice."""


def explain_update(
    observed: WorkbenchObservation,
    changes: tuple[FieldChange, ...],
    digest: str,
    *,
    is_new_run: bool,
    restart: bool,
) -> str:
    """Return why an instance changes and whether it restarts; `digest` is the new environment."""
    recorded, names = observed.recorded, name_changes(changes, observed)
    ended = recorded.ended if recorded is not None else None
    reasons = []
    if is_adopted(observed):
        reasons.append("it is adopted from another state (--adopt)")
    elif recorded is None:
        reasons.append("it was created by an interrupted run and is now adopted")
    if ended:
        reasons.append(
            "its last run did not verify it "
            f"({escape_line(ended['why'])[:200].removesuffix('.')}), so it runs again"
        )
    if is_new_run and recorded is not None and recorded.digest != digest:
        reasons.append("the environment changed")
    elif is_new_run and not names and not ended and not is_adopted(observed):
        reasons.append("its declaration in the spec changed")
    if names:
        reasons.append(f"{names} changed")
    if observed.is_stopped:
        reasons.append("it is stopped, so it is started and verified again")
    elif restart:
        reasons.append(RESTART_NOTE)
    elif changes:
        reasons.append("it keeps running")
    return "; ".join(reasons or ["an earlier run was interrupted"])


def list_changes(changes: tuple[FieldChange, ...], observed: WorkbenchObservation) -> Iterator[str]:
    """Yield a line for each field of the spec that changes."""
    yield from (f"{field}: {values}" for field, values in describe_changes(changes, observed.facts))


def name_changes(changes: tuple[FieldChange, ...], observed: WorkbenchObservation) -> str:
    """Return the names of the first fields that change, and the number of the others."""
    fields = [
        field
        for field, _ in describe_changes(changes, observed.facts)
        if not field.startswith(f"labels.{MANAGED_LABEL}-")
    ]
    more = f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else ""
    return ", ".join(fields[:_NAMED]) + more


def update_notes(
    context: TargetContext, observed: WorkbenchObservation, changes: tuple[FieldChange, ...]
) -> Iterator[str]:
    """Yield the notes of a change: fields, the previous owner's reports, and how disks change."""
    yield from list_changes(changes, observed)
    instance = observed.instance or {}
    folder = read_metadata(instance, "post-startup-script").rpartition("/")[0]
    if is_adopted(observed) and folder:
        yield f"reports and logs from the previous state are kept in {folder}/"
    if observed.recorded is None and not read_creation_body(instance):
        yield (
            "its metadata does not contain its original settings: disks, service account, "
            "network and owner are not compared, and its image is compared only if the service "
            "reports it"
        )
    if any(change.method is ChangeMethod.GROW for change in changes):
        yield (
            "a disk cannot shrink again in place; if `df` still shows the old size, run `sudo "
            "resize2fs DEVICE` on the instance"
        )
    yield from machine_notes(context, observed)


def replacement_notes(
    context: TargetContext, observed: WorkbenchObservation, immutable: tuple[FieldChange, ...]
) -> Iterator[str]:
    """Yield the notes of a replacement that follow its order: how disks change, and the machine."""
    if any(change.path in ("gceSetup/bootDisk", "gceSetup/dataDisks") for change in immutable):
        yield ("disks: the size can grow in place but not shrink; the type and key cannot change")
    yield from machine_notes(context, observed)


def machine_notes(context: TargetContext, observed: WorkbenchObservation) -> Iterator[str]:
    """Yield machine, zone, price, image and capacity."""
    gpu = "" if context.spec.gpu.is_none else f" with {context.spec.gpu}"
    image, zones = observed.image_choice, ", ".join(observed.names.zones)
    is_new = observed.instance is None
    yield f"machine: {observed.machine_choice.machine_type}{gpu}"
    if not is_new and not observed.needs_replacement:
        yield f"zone: {observed.zone}"
    elif observed.zone:
        order = ", in this order" if len(observed.names.zones) > 1 else ""
        yield f"zone: the instance is in {observed.zone}; the new one is created in {zones}{order}"
    else:
        yield f"zones, in this order: {zones}"
    yield f"cost: {observed.machine_choice.price}"
    yield from observed.machine_choice.notes
    if image.family:
        is_newest = is_new and observed.recorded is None
        yield f"image: {image.name}" + (f", the newest in {image.family}" if is_newest else "")
    if observed.image_note and (is_new or observed.needs_replacement):
        yield observed.image_note
    yield from observed.capacity.notes
    for other in observed.others:
        yield f"another instance with this name exists and costs money: {describe_owner(other)}"
