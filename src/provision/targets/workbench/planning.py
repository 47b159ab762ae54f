"""What is done at an instance, and what a plan says of it: made, changed, or replaced by another."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provision.effects import CreateInstance, DeleteInstance, DeleteObjects, Effect, ResizeDisk, StartInstance, StopInstance, UpdateInstance, UploadObjects
from provision.plan import Action, Verb
from provision.safe import safe_line
from provision.targets.target import Place
from provision.targets.workbench import programs
from provision.targets.workbench.body import PROGRAM, Run, made_of
from provision.targets.workbench.diff import Change, Way, patch
from provision.targets.workbench.having import Have, body_for, differing, document_for, run_at, taken_over
from provision.targets.workbench.leaving import instance_away, lies_in
from provision.targets.workbench.naming import MARK, labels_of
from provision.targets.workbench.owning import beside
from provision.targets.workbench.refusing import workbench
from provision.targets.workbench.telling import told

PART = "instance"
RESTARTED = "it is stopped and started: running kernels end"
_NAMED = 3
"""Fields that a reason names one by one; the notes name all. Our choice."""


def creating(place: Place, have: Have) -> Action:
    """Return the action that makes the instance, where there is none."""
    because = "there is none yet"
    if have.intent is not None and have.intent.verb == Verb.REPLACE:
        because = "an earlier run deleted it to make another, and was cut short"
    elif have.recorded:
        because = "it is gone: someone deleted it"
    uploads, create, record = _creation(place, have)
    return Action(Verb.CREATE, place.address, PART, _title(have), because, (*uploads, create), record, tuple(_notes(place, have)))


def replacing(place: Place, have: Have, found: tuple[Change, ...]) -> Action:
    """Return the action that puts another instance in the place of the one that is there.

    Names are the same for everyone, and one zone holds each name once: within the same zones the old one has to go first. In other zones it goes last.
    """
    old = DeleteInstance(have.names.full(have.zone), have.names.lineage)
    first = have.zone in have.names.zones
    uploads, create, record = _creation(place, have, instead_of=old.name if first else "")
    effects: tuple[Effect, ...] = (old, *uploads, create) if first else (*uploads, create, old)
    never = tuple(change for change in found if change.way is Way.REPLACE)
    because = f"{_named(never, have)} cannot be changed in place" if never else f"its state is {have.state}"
    order = "the old one is deleted first, since the name is the same: if no zone has the machine then, there is none"
    notes = (
        *_lines(found, have),
        f"lost: /home/jupyter and all else on the disks of {have.names.instance} in {have.zone}",
        order if first else "the old one is deleted once the new one is there",
        *_of_shrinking(never),
        *_notes(place, have),
    )
    return Action(Verb.REPLACE, place.address, PART, _title(have), because, effects, record, notes)


def moving(place: Place, have: Have) -> Action:
    """Return the action that makes the instance in another project, and then removes the one that is recorded."""
    old = have.recorded or {}
    uploads, create, record = _creation(place, have)
    because = "project cannot be changed in place"
    moved = f"project: {old.get('project')} -> {have.names.project}"
    notes = (moved, f"lost: /home/jupyter and all else on the disks of {old.get('instance')}", "the old one is deleted once the new one is there")
    return Action(Verb.REPLACE, place.address, PART, _title(have), because, (*uploads, create, *instance_away(old)), record, (*notes, *_notes(place, have)))


def changing(place: Place, have: Have, found: tuple[Change, ...]) -> Action:
    """Return the action that brings an instance to what is wanted: nothing, while it runs, or with one stop and one start.

    An instance that is started does its run once, so a start that comes from here brings a new run, and the device verifies itself anew.
    """
    run = run_at(place, have)
    uploads: tuple[UploadObjects, ...] = ()
    again = any(change.path.endswith("/provision-run") for change in found)
    restart = again or any(change.way in (Way.STOPPED, Way.GROW) for change in found)
    if restart or have.resting:
        uploads, _, run = started(place, have)
        found = differing(place, have, run)
    steps = _steps(have, found, restart=restart)
    record = record_of(place, have, run)
    notes = (*_lines(found, have), *_of_before(have), *_of_unknown(have), *_of_growing(found), *_notes(place, have))
    if not steps and have.recorded is not None and not have.interrupted:
        return Action(Verb.KEEP, place.address, PART, _title(have), "it is as declared", (), record, notes)
    because = _because(have, found, place.environment.digest, again=again, restart=restart)
    return Action(Verb.CHANGE, place.address, PART, _title(have), because, (*uploads, *steps), record, notes)


def started(place: Place, have: Have) -> tuple[tuple[UploadObjects, ...], dict[str, Any], Run]:
    """Return the uploads for a new run, the body that starts it, and the run."""
    run, document = document_for(place, have)
    parts = programs.fetched()
    objects = [(have.names.folder + PROGRAM, programs.startup()), *((have.names.folder + part.file, part.content) for part in parts.values())]
    upload = UploadObjects((*objects, (f"{have.names.run(run.nonce)}document.json", document)))
    return (upload,), body_for(place, have, run), run


def record_of(place: Place, have: Have, run: Run) -> dict[str, Any]:
    """Return what the state records of an instance."""
    target, names = workbench(place), have.names
    return {
        "title": _title(have),
        "kind": "workbench",
        "project": names.project,
        "zones": list(names.zones),
        "zone": have.zone,
        "instance": names.instance,
        "lineage": names.lineage,
        "bucket": names.folder,
        "image": {"project": have.picked.project, "name": have.picked.name, "family": have.picked.family},
        "body": body_for(place, have, run),
        "nonce": run.nonce,
        "digest": place.environment.digest,
        "lock": place.lock.digest,
        "on_failure": target.on_failure,
        "labels": labels_of(place, names),
    }


def _creation(place: Place, have: Have, instead_of: str = "") -> tuple[tuple[UploadObjects, ...], CreateInstance, dict[str, Any]]:
    new = replace(have, real=None, recorded=None, zone="")
    uploads, body, run = started(place, new)
    # One request for one plan: made again it is the same request to the service.
    request = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{have.names.instance} {run.nonce}"))
    return uploads, CreateInstance(have.names.project, have.names.zones, have.names.instance, body, request, instead_of), record_of(place, new, run)


def _steps(have: Have, found: tuple[Change, ...], *, restart: bool) -> tuple[Effect, ...]:
    """Return the steps of a change. What is cut short among them leaves the instance stopped, and the next run starts it."""
    name = have.names.full(have.zone)
    patched = tuple(change for change in found if change.way in (Way.RUNNING, Way.STOPPED))
    steps: tuple[Effect, ...] = (UpdateInstance(name, *patch(patched)),) if patched else ()
    steps += tuple(_grown(name, change) for change in found if change.way is Way.GROW)
    if restart or have.resting:
        before = (StopInstance(name),) if have.state != "STOPPED" else ()
        steps = (*before, *steps, StartInstance(name))
    elif have.state != "ACTIVE":
        steps = (*steps, StartInstance(name))  # waits for what an interrupted run had begun
    return (*steps, *_left_behind(have))


def _left_behind(have: Have) -> Iterator[Effect]:
    """Yield what removes our objects from the folder that the instance had before its `bucket` changed."""
    old = have.recorded or {}
    if old.get("bucket") and old["bucket"] != have.names.folder and lies_in(old):
        yield DeleteObjects(str(old["bucket"]))


def _grown(name: str, change: Change) -> ResizeDisk:
    wants = change.wants[0] if isinstance(change.wants, list) else change.wants
    return ResizeDisk(name, "bootDisk" if change.path.endswith("bootDisk") else "dataDisk", str(wants["diskSizeGb"]))


def _because(have: Have, found: tuple[Change, ...], digest: str, *, again: bool, restart: bool) -> str:
    """Return why an instance changes, and what that costs it; `digest` is of the environment that is wanted."""
    reasons = []
    if taken_over(have):
        reasons.append("it is taken over from another state (--adopt)")
    elif have.recorded is None:
        reasons.append("an earlier run was cut short, and the instance is there: it is adopted")
    words, ended = _named(found, have), (have.recorded or {}).get("ended")
    if ended:
        reasons.append(f"its last run ended without a proof ({safe_line(str(ended['why']))[:200]}): it runs again")
    if again and have.recorded is not None and have.recorded.get("digest") != digest:
        reasons.append("the environment changed")
    elif again and not words and not ended and not taken_over(have):
        reasons.append("what is declared for the device changed")
    if words:
        reasons.append(f"{words} changed")
    if have.resting:
        reasons.append("it is stopped: it is started, and verifies itself anew")
    elif restart:
        reasons.append(RESTARTED)
    elif found:
        reasons.append("it runs on")
    return "; ".join(reasons or ["an earlier run was cut short"])


def _lines(found: tuple[Change, ...], have: Have) -> Iterator[str]:
    yield from (f"{field}: {words}" for field, words in told(found, have.facts))


def _named(found: tuple[Change, ...], have: Have) -> str:
    words = [field for field, _ in told(found, have.facts) if not field.startswith(f"labels.{MARK}-")]
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _of_before(have: Have) -> Iterator[str]:
    folder = str((have.real or {}).get("gceSetup", {}).get("metadata", {}).get("post-startup-script", "")).rpartition("/")[0]
    if taken_over(have) and folder:
        yield f"reports and logs of the state before stay in {folder}/"


def _of_unknown(have: Have) -> Iterator[str]:
    if have.real is not None and have.recorded is None and not made_of(have.real):
        yield "it does not say how it was made: disks, service account, network and owner are not compared, its image only where the service tells it"


def _of_growing(found: tuple[Change, ...]) -> Iterator[str]:
    if any(change.way is Way.GROW for change in found):
        yield "a disk that grew never shrinks again in place; if df shows the old size then: sudo resize2fs DEVICE on the instance"


def _of_shrinking(never: tuple[Change, ...]) -> Iterator[str]:
    disks = [change for change in never if change.path in ("gceSetup/bootDisk", "gceSetup/dataDisks")]
    if disks:
        yield "disks: size can grow in place, but never shrink; type and key are those that the disk was made with"


def _title(have: Have) -> str:
    return f"instance {have.names.instance}"


def _notes(place: Place, have: Have) -> Iterator[str]:
    gpu = "" if place.spec.gpu.none else f" with {place.spec.gpu}"
    tried = ", ".join(have.names.zones)
    yield f"machine: {have.chosen.machine_type}{gpu}"
    if have.real is None or have.doomed:
        ordered = f"{tried}, in this order" if len(have.names.zones) > 1 else tried
        yield f"zone: it is in {have.zone}; the new one is tried in {ordered}" if have.zone else f"zones, in this order: {tried}"
    else:
        yield f"zone: {have.zone}"
    yield f"cost: {have.chosen.price}"
    if have.picked.family:
        yield f"image: {have.picked.name}, the newest of {have.picked.family}" if have.recorded is None and have.real is None else f"image: {have.picked.name}"
    yield from have.outlook.notes
    yield from beside(have.others)


def effects_of_rerun(place: Place, have: Have, nonce: str) -> tuple[tuple[Effect, ...], Mapping[str, Any]]:
    """Return the effects that have an instance verify itself again under a nonce, and the record that it then has."""
    new = replace(have, fresh=nonce)
    uploads, _, run = started(place, new)
    found = differing(place, new, run)
    return (*uploads, *_steps(new, found, restart=True)), record_of(place, new, run)
