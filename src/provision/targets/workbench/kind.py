"""A Workbench instance as a kind of place: what is there, what is refused, what would be done, what is left behind."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from provision.effects import CloudReader, Effect, Reader, RemoveTree
from provision.facts import load as load_facts
from provision.plan import Action, Verb
from provision.state import Ledger
from provision.targets.local import declared_variables
from provision.targets.recorded_paths import own_folder
from provision.targets.target import Place, Refusal, Seat
from provision.targets.workbench.capacity import Held, outlook_of
from provision.targets.workbench.diff import Way
from provision.targets.workbench.document import STABLE, holds, prefix_of
from provision.targets.workbench.former import formers_away, is_former
from provision.targets.workbench.having import Have, differing, image_of, run_at
from provision.targets.workbench.image import floats, pick
from provision.targets.workbench.leaving import half_made_away, instance_away
from provision.targets.workbench.machine import choose
from provision.targets.workbench.naming import names_of
from provision.targets.workbench.owning import find, owned
from provision.targets.workbench.planning import PART, changing, creating, effects_of_rerun, moving, replacing
from provision.targets.workbench.refusing import refusals_of, workbench

__all__ = ["PART", "Have", "Workbench", "run_of"]


class Workbench:
    """Instances of Vertex AI Workbench (see provision.targets.Target)."""

    platform: str | None = "linux-x86_64"

    def look(self, place: Place, ledger: Ledger, reader: Reader) -> Have:
        """Return what there is of the instance: looked for by its name in every zone of the project, whatever the state says."""
        state, facts, cloud = ledger.state, load_facts(), reader.cloud()
        names = names_of(place, state.lineage)
        record, intent = state.resource(place.address, PART), ledger.cut_short(place.address)
        zones = (str(record["zone"]),) if record and record.get("zone") and record.get("project") == names.project else ()
        found = find(place, names, zones, cloud, adopt=place.adopt)
        target, card = workbench(place), facts.card(place.spec.gpu.type) if not place.spec.gpu.none else None
        image = image_of(record, found.real)
        asked = floats(target.image) and (image is None or not pick(target.image, facts, None, image).name)
        picked = pick(target.image, facts, cloud.config(names.project, names.zones[0]) if asked else None, image)
        chosen = choose(place.spec, target, facts, card)
        fresh = hashlib.sha256(f"{state.lineage} {state.serial} {place.address} {holds(place)}".encode()).hexdigest()[:32]
        formers = tuple(formers_away(state, place.address, names))
        have = Have(facts, names, *found, record, intent, chosen, picked, fresh, formers=formers)
        return _weighed(place, have, cloud)

    def refusals(self, place: Place, have: Have) -> tuple[Refusal, ...]:
        """Return what the spec asks for that this kind does not do, or that cannot be had."""
        # Beside one of ours, another is in the way only where the new one may have to lie.
        others = (one for one in have.others if not owned(one, have.names))
        foreign = tuple(one for one in others if not have.exists or (have.doomed and str(one.get("name", "")).split("/")[3] in have.names.zones))
        return tuple(refusals_of(place, have.facts, have.chosen, have.picked, foreign, have.outlook))

    def plan(self, place: Place, have: Have) -> tuple[Action, ...]:
        """Return the action on the instance, with all that runs on it, and the removals of former ones that a move left."""
        stays = have.exists and not have.doomed
        taken = {have.names.full(zone) for zone in ((have.zone,) if stays else have.names.zones)}  # names that the instance has, or may get
        return (*self._of_instance(place, have), *(action for name, action in have.formers if name not in taken))

    def _of_instance(self, place: Place, have: Have) -> tuple[Action, ...]:
        if have.recorded is not None and have.recorded.get("project") != have.names.project:
            return (moving(place, have),)
        if have.real is None:
            return (creating(place, have),)
        found = differing(place, have, run_at(place, have))
        return (replacing(place, have, found) if have.doomed else changing(place, have, found),)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove the instance of an address, its objects in the bucket and its reports, half-made ones included."""
        actions = []
        for part, record in ledger.state.parts(address).items():
            made = part == PART or is_former(part)
            effects = tuple(instance_away(record)) if made else tuple(RemoveTree(own_folder(folder, path, address)) for path in record.get("paths", ()))
            notes = ("its disks go with it: /home/jupyter and all that lies there",) if made else ()
            actions.append(Action(Verb.DESTROY, address, part, str(record.get("title", part)), "destroy was asked for", effects, notes=notes))
        for intent in (one for one in ledger.all_cut_short(address) if one.names):
            effects = tuple(half_made_away(intent, tuple(effect for action in actions for effect in action.effects)))
            actions.insert(0, Action(Verb.DESTROY, address, intent.part, "half-made instance", "an interrupted run may have left it", effects))
        return tuple(actions)

    def seat(self, place: Place) -> Seat:
        """Return where programs run on the instance; the paths are the device's."""
        prefix = Path(prefix_of(place))
        return Seat(prefix / "bin/python", prefix, Path(STABLE))

    def variables(self, place: Place, caller: Mapping[str, str], *, partial: bool = False) -> dict[str, str]:  # noqa: ARG002 - the caller's variables stay here
        """Return the declared variables; secrets are fetched on the instance."""
        return declared_variables(place.spec)

    def rerun(self, place: Place, have: Have, nonce: str) -> tuple[tuple[Effect, ...], Mapping[str, Any]]:
        """Return the effects that have the instance verify itself again, and the record that it then has."""
        return effects_of_rerun(place, have, nonce)


def run_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return (nonce, gs:// folder of the run) of a recorded instance."""
    return str(record["nonce"]), f"{record['bucket']}{record['nonce']}/"


def _weighed(place: Place, have: Have, cloud: CloudReader) -> Have:
    """Return what was found with what differs; where an instance has to be made for it, with what is known of the chance to get one."""
    gpu = place.spec.gpu
    card = have.facts.card(gpu.type) if not gpu.none else None
    if not have.exists:
        return replace(have, outlook=outlook_of(have.names, card, gpu.count, cloud))
    if not have.decided:
        return have
    found = differing(place, have, run_at(place, have))
    doomed = not have.able or any(change.way is Way.REPLACE for change in found)
    whole = have.able and not have.interrupted
    # The old one's cards come back only where it goes before the new one is made.
    held = _held(have) if have.zone in have.names.zones else None
    outlook = outlook_of(have.names, card, gpu.count, cloud, held) if doomed else have.outlook
    return replace(have, drift=tuple(change.path for change in found), whole=whole, doomed=doomed, outlook=outlook)


def _held(have: Have) -> Held | None:
    """Return the cards that a running instance holds of the quota; None where it holds none."""
    configs = (have.real or {}).get("gceSetup", {}).get("acceleratorConfigs") or ()
    if have.resting or not configs:
        return None
    return Held(str(configs[0].get("type", "")), have.zone, int(configs[0].get("coreCount", 1)))
