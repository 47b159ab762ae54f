"""A Workbench instance as a kind of place: what is there, what is refused, what would be done, what is left behind."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from provision.effects import (
    CreateInstance,
    DeleteInstance,
    Effect,
    Reader,
    RemoveTree,
    StartInstance,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.facts import Facts
from provision.facts import load as load_facts
from provision.plan import Action, Verb
from provision.state import Intent, Ledger
from provision.targets.local import declared_variables
from provision.targets.target import Place, Refusal, Seat
from provision.targets.workbench import programs
from provision.targets.workbench.body import PROGRAM, Choices, Run, body_of, run_on
from provision.targets.workbench.capacity import Outlook, outlook_of
from provision.targets.workbench.diff import Change, Way, changes, patch
from provision.targets.workbench.document import STABLE, document_of, holds, prefix_of, written
from provision.targets.workbench.image import Picked, floats, pick
from provision.targets.workbench.leaving import instance_away, report_folder
from provision.targets.workbench.machine import Chosen, choose
from provision.targets.workbench.naming import MARK, Names, labels_of, names_of
from provision.targets.workbench.refusing import refusals_of, workbench

PART = "instance"
_RUNNING = ("ACTIVE", "PROVISIONING", "STARTING", "INITIALIZING", "UPGRADING")
_RESTING = ("STOPPED", "STOPPING", "SUSPENDED", "SUSPENDING")
_TOLD = 3
"""Changes that a plan names one by one. Our choice."""


@dataclass(frozen=True, slots=True)
class Have:
    """What was found, and what was decided from it: the instance with its zone, what is recorded, machine type, image, quotas; `run` is the run to be."""

    facts: Facts
    names: Names
    real: Mapping[str, Any] | None
    zone: str
    recorded: Mapping[str, Any] | None
    intent: Intent | None
    chosen: Chosen
    picked: Picked
    fresh: str
    outlook: Outlook
    drift: tuple[str, ...] = ()
    whole: bool = False

    @property
    def exists(self) -> bool:
        """Whether the instance is there."""
        return self.real is not None

    @property
    def interrupted(self) -> bool:
        """Whether an earlier run was cut short at it."""
        return self.intent is not None

    @property
    def ours(self) -> bool:
        """Whether the instance that is there is one of ours."""
        return self.real is not None and self.real.get("labels", {}).get(MARK) == "1"

    @property
    def condition(self) -> str:
        """How it stands, in words."""
        if not self.exists:
            return "gone" if self.recorded else "absent"
        if self.interrupted or not self.whole:
            return "half-made"
        if self.drift:
            return "outdated"
        return "current, stopped" if self.state in _RESTING else "current"

    @property
    def state(self) -> str:
        """The instance's state as the service tells it; "" where there is none."""
        return str(self.real.get("state", "")) if self.real else ""


class Workbench:
    """Instances of Vertex AI Workbench (see provision.targets.Target)."""

    platform: str | None = "linux-x86_64"

    def look(self, place: Place, ledger: Ledger, reader: Reader) -> Have:
        """Return what there is of the instance: asked for by its name in every zone that it may be in, whatever the state says."""
        facts, names, cloud = load_facts(), names_of(place), reader.cloud()
        record, intent = ledger.state.resource(place.address, PART), ledger.cut_short(place.address)
        zones = dict.fromkeys([*([str(record["zone"])] if record and record.get("zone") and record.get("project") == names.project else []), *names.zones])
        found = next(((zone, real) for zone in zones if (real := cloud.instance(names.full(zone))) is not None), ("", None))
        target, card = workbench(place), facts.card(place.spec.gpu.type) if not place.spec.gpu.none else None
        image = record.get("image") if record and found[1] else None
        asked = floats(target.image) and (image is None or not pick(target.image, facts, None, image).name)
        picked = pick(target.image, facts, cloud.config(names.project, names.zones[0]) if asked else None, image)
        chosen = choose(place.spec, target, facts, card)
        state = ledger.state
        fresh = hashlib.sha256(f"{state.lineage} {state.serial} {place.address} {holds(place)}".encode()).hexdigest()[:32]
        outlook = outlook_of(names, card, place.spec.gpu.count, cloud) if found[1] is None else Outlook()
        have = Have(facts, names, found[1], found[0], record, intent, chosen, picked, fresh, outlook)
        if not have.ours or not picked.name or not chosen.machine_type or not names.folder:
            return have
        differing = _differing(place, have)
        return replace(have, drift=tuple(change.path for change in differing), whole=have.state in (*_RUNNING, *_RESTING) and not have.interrupted)

    def refusals(self, place: Place, have: Have) -> tuple[Refusal, ...]:
        """Return what the spec asks for that this kind does not do, or that cannot be had."""
        foreign = have.exists and not have.ours
        return tuple(refusals_of(place, have.facts, have.chosen, have.picked, have.names.full(have.zone) if foreign else "", have.outlook))

    def plan(self, place: Place, have: Have) -> tuple[Action, ...]:
        """Return the one action: the instance, with all that runs on it."""
        if have.recorded is not None and have.recorded.get("project") != have.names.project:
            return (self._moved(place, have),)
        if have.real is None:
            because = "it is gone: someone deleted it" if have.recorded else "there is none yet"
            return (_creating(place, have, Verb.CREATE, because),)
        found = _differing(place, have)
        never = tuple(change for change in found if change.way is Way.REPLACE)
        if never or have.state not in (*_RUNNING, *_RESTING):
            because = f"{_named(never)} cannot be changed in place; /home/jupyter and all that lies in it goes" if never else f"its state is {have.state}"
            return (_creating(place, have, Verb.REPLACE, because, (DeleteInstance(have.names.full(have.zone)),)),)
        return (_changing(place, have, found),)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove the instance of an address, its objects in the bucket and its reports, half-made ones included."""
        actions = []
        for part, record in ledger.state.parts(address).items():
            effects = tuple(instance_away(record)) if part == PART else tuple(RemoveTree(report_folder(folder, path)) for path in record.get("paths", ()))
            notes = ("its disks go with it: /home/jupyter and all that lies there",) if part == PART else ()
            actions.append(Action(Verb.DESTROY, address, part, str(record.get("title", part)), "destroy was asked for", effects, notes=notes))
        if (intent := ledger.cut_short(address)) is not None and intent.names:
            gone = [effect.name for action in actions for effect in action.effects if isinstance(effect, DeleteInstance)]
            effects = tuple(DeleteInstance(name) for name in intent.names if name not in gone)
            actions.insert(0, Action(Verb.DESTROY, address, intent.part, "half-made instance", "an interrupted run may have left it", effects))
        return tuple(actions)

    def seat(self, place: Place) -> Seat:
        """Return where programs run on the instance; the paths are the device's."""
        prefix = Path(prefix_of(place))
        return Seat(prefix / "bin/python", prefix, Path(STABLE))

    def variables(self, place: Place, caller: Mapping[str, str], *, partial: bool = False) -> dict[str, str]:  # noqa: ARG002 - the caller's variables stay here
        """Return the declared variables; secrets are fetched on the instance."""
        return declared_variables(place.spec)

    def rerun(self, place: Place, have: Have, nonce: str) -> tuple[tuple[Effect, ...], dict[str, Any]]:
        """Return the effects that have the instance verify itself again, and the record that it then has."""
        new = replace(have, fresh=nonce)
        effects, _, run = _started(place, new)
        name = have.names.full(have.zone)
        body, mask = patch(changes(_body(place, new, run), have.real or {}, (have.recorded or {}).get("body")))
        return (*effects, UpdateInstance(name, body, mask), StopInstance(name), StartInstance(name)), _record(place, new, run)

    def _moved(self, place: Place, have: Have) -> Action:
        old = have.recorded or {}
        return _creating(place, have, Verb.REPLACE, f"it moves from project {old.get('project')}", tuple(instance_away(old)))


def run_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return (nonce, gs:// folder of the run) of a recorded instance."""
    return str(record["nonce"]), f"{record['bucket']}{record['nonce']}/"


def _creating(place: Place, have: Have, verb: Verb, because: str, before: tuple[Effect, ...] = ()) -> Action:
    new = replace(have, real=None, recorded=None, zone="")
    uploads, body, run = _started(place, new)
    # One request for one plan: made again it is the same request to the service.
    request = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{have.names.instance} {run.nonce}"))
    create = CreateInstance(have.names.project, have.names.zones, have.names.instance, body, request)
    title = _title(have)
    return Action(verb, place.address, PART, title, because, (*before, *uploads, create), _record(place, new, run), (*_notes(place, have), *have.outlook.notes))


def _changing(place: Place, have: Have, found: tuple[Change, ...]) -> Action:
    name, resting = have.names.full(have.zone), have.state in _RESTING
    run = _run(place, have)
    again = any(change.path.endswith("/provision-run") for change in found)
    uploads = _started(place, have)[0] if again else ()
    update = (UpdateInstance(name, *patch(found)),) if found else ()
    restart = again or any(change.way is Way.STOPPED for change in found)
    steps: tuple[Effect, ...] = update
    if resting:
        steps = (*update, StartInstance(name))
    elif any(change.way is Way.STOPPED for change in found):
        steps = (StopInstance(name), *update, StartInstance(name))
    elif restart:
        steps = (*update, StopInstance(name), StartInstance(name))
    elif have.state != "ACTIVE":
        # Waits for what an interrupted run had begun.
        steps = (*update, StartInstance(name))
    record = _record(place, have, run)
    if not steps and have.recorded is not None and not have.interrupted:
        return Action(Verb.KEEP, place.address, PART, _title(have), "it is as declared", (), record, tuple(_notes(place, have)))
    reasons = [*(["an earlier run was cut short, and the instance is there: it is adopted"] if have.recorded is None else [])]
    reasons += ["the environment or what is promised of it changed"] if again else []
    if rest := tuple(change for change in found if not change.path.endswith(("/provision-run", "/provision-lock"))):
        reasons.append(f"{_named(rest)} changed")
    reasons += ["it is stopped" if resting else "an earlier run was cut short"] if not reasons else []
    because = "; ".join(reasons) + ("; it is stopped and started" if restart and not resting else "; it is started" if resting and found else "")
    return Action(Verb.CHANGE, place.address, PART, _title(have), because, (*uploads, *steps), record, tuple(_notes(place, have)))


def _started(place: Place, have: Have) -> tuple[tuple[Effect, ...], dict[str, Any], Run]:
    """Return the uploads for a run, the body that starts it, and the run."""
    run, document = _fresh(place, have)
    parts = programs.fetched()
    objects = [(have.names.folder + PROGRAM, programs.startup()), *((have.names.folder + part.file, part.content) for part in parts.values())]
    upload = UploadObjects((*objects, (f"{have.names.run(run.nonce)}document.json", document)))
    return (upload,), _body(place, have, run), run


def _fresh(place: Place, have: Have) -> tuple[Run, bytes]:
    document = written(document_of(place, have.names, have.fresh, programs.fetched(), programs.uv()))
    return Run(have.fresh, hashlib.sha256(document).hexdigest(), holds(place)), document


def _run(place: Place, have: Have) -> Run:
    """Return the run that the instance is at, where that is ours and for what is declared now, else a new one."""
    told = run_on(have.real or {})
    ours = (have.intent.details.get("nonce") if have.intent else None) or (have.recorded or {}).get("nonce")
    if told is not None and told.holds == holds(place) and ours in (None, told.nonce):
        return told
    return _fresh(place, have)[0]


def _differing(place: Place, have: Have) -> tuple[Change, ...]:
    sent = (have.recorded or {}).get("body")
    found = changes(_body(place, have, _run(place, have)), have.real or {}, sent)
    if have.zone not in have.names.zones:
        found = (*found, Change("zone", have.zone, have.names.zones[0], Way.REPLACE))
    # Two texts of the same values are the same run.
    return tuple(change for change in found if not (change.path.endswith("/provision-run") and _same_text(change.had, change.wants)))


def _same_text(one: Any, other: Any) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (TypeError, ValueError):
        return False


def _body(place: Place, have: Have, run: Run) -> dict[str, Any]:
    card = have.facts.card(place.spec.gpu.type) if not place.spec.gpu.none else None
    choices = Choices(have.chosen.machine_type, have.picked.project, have.picked.name, card, place.spec.gpu.count if card else 0)
    return body_of(place, choices, run, have.facts)


def _record(place: Place, have: Have, run: Run) -> dict[str, Any]:
    target, names = workbench(place), have.names
    return {
        "title": _title(have),
        "kind": "workbench",
        "project": names.project,
        "zones": list(names.zones),
        "zone": have.zone,
        "instance": names.instance,
        "bucket": names.folder,
        "image": {"project": have.picked.project, "name": have.picked.name, "family": have.picked.family},
        "body": _body(place, have, run),
        "nonce": run.nonce,
        "digest": place.environment.digest,
        "lock": place.lock.digest,
        "on_failure": target.on_failure,
        "labels": labels_of(place),
    }


def _title(have: Have) -> str:
    return f"instance {have.names.instance}"


def _notes(place: Place, have: Have) -> Iterator[str]:
    gpu = "" if place.spec.gpu.none else f" with {place.spec.gpu}"
    yield f"machine: {have.chosen.machine_type}{gpu}"
    yield f"zone: {have.zone}" if have.zone else f"zones, in this order: {', '.join(have.names.zones)}"
    yield f"cost: {have.chosen.price}"
    if have.picked.family:
        yield f"image: {have.picked.name}, the newest of {have.picked.family}" if have.recorded is None else f"image: {have.picked.name}"


def _named(found: tuple[Change, ...]) -> str:
    words = [change.path.replace("gceSetup/", "").replace("/", ".") for change in found]
    return ", ".join(words[:_TOLD]) + (f" and {len(words) - _TOLD} more" if len(words) > _TOLD else "")
