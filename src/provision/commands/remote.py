"""Verifying where the device is elsewhere: its program does it at each start, we wait for the report and file it; and what happens when there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from provision.commands.filing import file_report
from provision.effects import AwaitReport, CreateInstance, DeleteInstance, DeleteObjects, MakeFolder, RemoveTree, StopInstance, Tell, World
from provision.errors import Refused, WorldError
from provision.grammar import seconds_of
from provision.plan import Action, Verb
from provision.state import Intent, Ledger, State
from provision.stores import LocalStore
from provision.targets import TARGETS, Place
from provision.targets.workbench import LINEAGE, PART, Workbench, run_of
from provision.verification import Report
from provision.verification.report import LIMIT, read_report
from provision.world.awaiting import NoReport

_BOOT_AND_INSTALL_S = 75 * 60
"""Seconds beside the verification's own: the driver has 15 minutes, the packages an hour. Our choice."""


class Proven(NamedTuple):
    """The report with its files and the state that records it; `taken` says what became of an instance that was not verified."""

    report: Report
    json_path: Path
    html_path: Path
    state: State
    taken: str = ""


def is_remote(place: Place) -> bool:
    """Tell whether the device is elsewhere."""
    return isinstance(TARGETS[place.spec.targets[place.target].kind], Workbench)


def name_of(record: Any) -> str:
    """Return the full name of a recorded instance."""
    return f"projects/{record['project']}/locations/{record['zone']}/instances/{record['instance']}"


def begun(action: Action, now: str) -> Intent | None:
    """Return the intent of an action on an instance: the names that it may have, and what finds its run again; None for other actions."""
    record = action.record
    if action.part != PART or record is None:
        return None
    zones = [record["zone"]] if record["zone"] else record["zones"]
    names = tuple(f"projects/{record['project']}/locations/{zone}/instances/{record['instance']}" for zone in zones)
    details = {key: str(record[key]) for key in ("project", "instance", "lineage", "bucket", "nonce", "on_failure", "title")}
    return Intent(action.address, action.part, str(action.verb), (), now, names, details)


def found_again(intent: Intent, world: World) -> dict[str, Any] | None:
    """Return a record of what an intent that was cut short had begun, where the instance is there; None where nothing is left of it."""
    for name in intent.names:
        if _bears(world.cloud().instance(name), intent.details.get("lineage")):
            zone = name.split("/")[3]
            return {**intent.details, "kind": "workbench", "zone": zone, "zones": [zone]}
    return None


def rerun(place: Place, store: LocalStore, state: State, world: World, tell: Tell) -> State:
    """Have the instance verify itself again under a new nonce; returns the state that records it. Raises Refused where there is none."""
    kind = TARGETS[place.spec.targets[place.target].kind]
    assert isinstance(kind, Workbench)  # noqa: S101 - asked after is_remote
    have = kind.look(place, Ledger(state), world)
    if not have.exists:
        raise Refused(f"there is no instance for {place.address}", hint=f"make it: provision apply --target {place.target}")
    effects, record = kind.rerun(place, have, world.token())
    action = Action(Verb.CHANGE, place.address, PART, record["title"], "it is to verify itself again", effects, dict(record))
    tell(f"~ {action.title}: {action.because}")
    intent = begun(action, world.now())
    assert intent is not None  # noqa: S101 - it is of an instance
    store.begin(intent)
    for effect in effects:
        world.perform(effect, tell)
    after = state.after(action)
    store.save(after, expecting=state.serial)
    store.end()
    return after


def await_and_file(place: Place, state: State, store: LocalStore, world: World, tell: Tell) -> Proven:
    """Wait for the report of the run that is recorded, file it, and do what `on_failure` says where the instance is not verified."""
    record = state.resource(place.address, PART)
    if record is None or not record.get("zone"):
        raise Refused(f"nothing is recorded of an instance for {place.address}", hint="make it with `provision apply`")
    nonce, uri = run_of(record)
    folder = place.folder / "reports" / f"{place.stem}.{place.target}"
    path = folder / "report.json"
    world.perform(MakeFolder(folder, 0o700), tell)
    world.perform(RemoveTree(path), tell)
    limit = _BOOT_AND_INSTALL_S + seconds_of(place.spec.verify.timeout)
    try:
        world.perform(AwaitReport(name_of(record), record["project"], record["zone"], uri, nonce, path, limit), tell)
        report = _read(path, nonce, world)
    except NoReport as error:  # any other error says nothing of the device: it runs on, and `attach` waits on
        taken, _ = aftermath(place, record, state, store, world, tell)
        raise type(error)(error.what, why=error.why, hint=f"{error.hint}\n{taken}") from error
    filed = file_report(report, path, place, state, store, world, tell, nonce=nonce)
    fine = report.verdict == "verified" or (report.verdict == "simulated" and place.stand_in is not None)
    if fine:
        return Proven(report, path, filed.html_path, filed.state)
    taken, after = aftermath(place, record, filed.state, store, world, tell)
    return Proven(report, path, filed.html_path, after, taken)


def _read(path: Path, nonce: str, world: World) -> Report:
    try:
        return read_report(world.read(path, LIMIT), str(path), nonce=nonce)
    except WorldError as error:
        raise NoReport(error.what, why=error.why, hint=error.hint) from error


def aftermath(place: Place, record: Any, state: State, store: LocalStore, world: World, tell: Tell) -> tuple[str, State]:
    """Do with an instance that was not verified what the spec says; returns it in words, and the state after."""
    name, wish = name_of(record), str(record.get("on_failure", "stop"))
    instance = record["instance"]
    if wish == "keep":
        return f"{instance} runs on, and costs (on_failure: keep): provision destroy --target {place.target}", state
    if wish == "stop":
        world.perform(StopInstance(name), tell)
        return f"{instance} is stopped; its disks still cost (on_failure: stop)", state
    world.perform(DeleteInstance(name, str(record["lineage"])), tell)
    world.perform(DeleteObjects(str(record["bucket"])), tell)
    after = state.recording(place.address, PART, None)
    store.save(after, expecting=state.serial)
    return f"{instance} is deleted (on_failure: delete)", after


def nothing_left(action: Action, state: State, store: LocalStore) -> None:
    """Close the intent of an action that left no instance; one that was deleted to be replaced is no longer recorded."""
    if any(isinstance(effect, CreateInstance) and effect.instead_of for effect in action.effects):
        store.save(state.recording(action.address, action.part, None), expecting=state.serial)
    store.end()


def settled(action: Action, world: World) -> Action:
    """Return an action with its record completed by what only the world knows once it is done: the zone that an instance is in."""
    record = action.record
    if action.part != PART or record is None or record.get("zone"):
        return action
    zones = [zone for zone in record["zones"] if _bears(world.cloud().instance(name_of({**record, "zone": zone})), record["lineage"])]
    return replace(action, record={**record, "zone": zones[0]}) if zones else action


def _bears(instance: Any, lineage: object) -> bool:
    """Tell whether an instance is there and bears the label of a state."""
    return bool(lineage) and isinstance(instance, Mapping) and instance.get("labels", {}).get(LINEAGE) == lineage
