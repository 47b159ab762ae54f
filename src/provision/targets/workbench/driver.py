"""A Workbench instance as a kind of place: what is there, what is refused, what would be done, what
is left behind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from provision.effects.google import CloudReader
from provision.effects.local import RemoveTree
from provision.effects.system import Effect, Reader
from provision.facts import load_facts
from provision.plan import Action, Operation
from provision.state import Ledger
from provision.targets.base import Interpreter, Refusal, TargetContext
from provision.targets.local.driver import declared_variables
from provision.targets.recorded_paths import resolve_own_folder
from provision.targets.workbench.agent_config import (
    STABLE_PREFIX,
    compute_declared_digest,
    get_prefix,
)
from provision.targets.workbench.capacity import ReleasedGpus, check_capacity
from provision.targets.workbench.cleanup import plan_instance_deletion, plan_interrupted_deletion
from provision.targets.workbench.diff import ChangeMethod
from provision.targets.workbench.former_instances import is_former_part, plan_former_removals
from provision.targets.workbench.image import choose_image, is_image_unpinned
from provision.targets.workbench.machine_type import choose_machine
from provision.targets.workbench.observation import (
    WorkbenchObservation,
    find_differences,
    get_source_image,
    select_run,
)
from provision.targets.workbench.ownership import find_instances, is_owned
from provision.targets.workbench.planning import (
    INSTANCE_PART,
    plan_create,
    plan_move,
    plan_replace,
    plan_rerun_effects,
    plan_update,
)
from provision.targets.workbench.refusals import find_refusals, get_workbench_target
from provision.targets.workbench.resource_names import build_resource_names

__all__ = ["INSTANCE_PART", "WorkbenchDriver", "WorkbenchObservation", "get_run_location"]


class WorkbenchDriver:
    """Instances of Vertex AI Workbench (see provision.targets.Target)."""

    platform: str | None = "linux-x86_64"

    def observe(self, place: TargetContext, ledger: Ledger, reader: Reader) -> WorkbenchObservation:
        """Return what there is of the instance: looked for by its name in every zone of the
        project, whatever the state says.
        """
        state, facts, cloud = ledger.state, load_facts(), reader.cloud()
        names = build_resource_names(place, state.lineage)
        record, intent = (
            state.resource(place.address, INSTANCE_PART),
            ledger.find_interrupted(place.address),
        )
        zones = (
            (str(record["zone"]),)
            if record and record.get("zone") and record.get("project") == names.project
            else ()
        )
        found = find_instances(place, names, zones, cloud, adopt=place.adopt)
        target, card = (
            get_workbench_target(place),
            facts.card(place.spec.gpu.type) if not place.spec.gpu.is_none else None,
        )
        image = get_source_image(record, found.instance)
        asked = is_image_unpinned(target.image) and (
            image is None or not choose_image(target.image, facts, None, image).name
        )
        picked = choose_image(
            target.image,
            facts,
            cloud.config(names.project, names.zones[0]) if asked else None,
            image,
        )
        chosen = choose_machine(place.spec, target, facts, card)
        fresh = hashlib.sha256(
            f"{state.lineage} {state.serial} {place.address} "
            f"{compute_declared_digest(place)}".encode()
        ).hexdigest()[:32]
        formers = tuple(plan_former_removals(state, place.address, names))
        have = WorkbenchObservation(
            facts, names, *found, record, intent, chosen, picked, fresh, former_instances=formers
        )
        return _with_differences(place, have, cloud)

    def refusals(self, place: TargetContext, have: WorkbenchObservation) -> tuple[Refusal, ...]:
        """Return what the spec asks for that this kind does not do, or that cannot be had."""
        # Beside one of ours, another is in the way only where the new one may have to lie.
        others = (one for one in have.others if not is_owned(one, have.names))
        foreign = tuple(
            one
            for one in others
            if not have.exists
            or (
                have.needs_replacement
                and str(one.get("name", "")).split("/")[3] in have.names.zones
            )
        )
        return tuple(
            find_refusals(
                place, have.facts, have.machine_choice, have.image_choice, foreign, have.capacity
            )
        )

    def plan(self, place: TargetContext, have: WorkbenchObservation) -> tuple[Action, ...]:
        """Return the action on the instance, with all that runs on it, and the removals of former
        ones that a move left.
        """
        stays = have.exists and not have.needs_replacement
        taken = {
            have.names.instance_resource_name(zone)
            for zone in ((have.zone,) if stays else have.names.zones)
        }  # names that the instance has, or may get
        return (
            *self._plan_instance(place, have),
            *(action for name, action in have.former_instances if name not in taken),
        )

    def _plan_instance(
        self, place: TargetContext, have: WorkbenchObservation
    ) -> tuple[Action, ...]:
        if have.recorded is not None and have.recorded.get("project") != have.names.project:
            return (plan_move(place, have),)
        if have.instance is None:
            return (plan_create(place, have),)
        found = find_differences(place, have, select_run(place, have))
        return (
            plan_replace(place, have, found)
            if have.needs_replacement
            else plan_update(place, have, found),
        )

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove the instance of an address, its objects in the bucket and
        its reports, half-made ones included.
        """
        actions = []
        for part, record in ledger.state.parts(address).items():
            made = part == INSTANCE_PART or is_former_part(part)
            effects = (
                tuple(plan_instance_deletion(record))
                if made
                else tuple(
                    RemoveTree(resolve_own_folder(folder, path, address))
                    for path in record.get("paths", ())
                )
            )
            notes = ("its disks go with it: /home/jupyter and all that lies there",) if made else ()
            actions.append(
                Action(
                    Operation.DESTROY,
                    address,
                    part,
                    str(record.get("title", part)),
                    "destroy was asked for",
                    effects,
                    notes=notes,
                )
            )
        for intent in (one for one in ledger.find_all_interrupted(address) if one.names):
            effects = tuple(
                plan_interrupted_deletion(
                    intent, tuple(effect for action in actions for effect in action.effects)
                )
            )
            actions.insert(
                0,
                Action(
                    Operation.DESTROY,
                    address,
                    intent.part,
                    "half-made instance",
                    "an interrupted run may have left it",
                    effects,
                ),
            )
        return tuple(actions)

    def get_interpreter(self, place: TargetContext) -> Interpreter:
        """Return where programs run on the instance; the paths are the device's."""
        prefix = Path(get_prefix(place))
        return Interpreter(prefix / "bin/python", prefix, Path(STABLE_PREFIX))

    def get_environment_variables(
        self,
        place: TargetContext,
        caller: Mapping[str, str],  # noqa: ARG002
        *,
        partial: bool = False,  # noqa: ARG002
    ) -> dict[str, str]:
        """Return the declared variables; secrets are fetched on the instance."""
        return declared_variables(place.spec)

    def plan_rerun(
        self, place: TargetContext, have: WorkbenchObservation, nonce: str
    ) -> tuple[tuple[Effect, ...], Mapping[str, Any]]:
        """Return the effects that have the instance verify itself again, and the record that it
        then has.
        """
        return plan_rerun_effects(place, have, nonce)


def get_run_location(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return (nonce, gs:// folder of the run) of a recorded instance."""
    return str(record["nonce"]), f"{record['bucket']}{record['nonce']}/"


def _with_differences(
    place: TargetContext, have: WorkbenchObservation, cloud: CloudReader
) -> WorkbenchObservation:
    """Return what was found with what differs; where an instance has to be made for it, with what
    is known of the chance to get one.
    """
    gpu = place.spec.gpu
    card = have.facts.card(gpu.type) if not gpu.is_none else None
    if not have.exists:
        return replace(have, capacity=check_capacity(have.names, card, gpu.count, cloud))
    if not have.is_resolved:
        return have
    found = find_differences(place, have, select_run(place, have))
    doomed = not have.is_updatable or any(change.method is ChangeMethod.REPLACE for change in found)
    whole = have.is_updatable and not have.is_interrupted
    # The old one's cards come back only where it goes before the new one is made.
    held = _released_gpus(have) if have.zone in have.names.zones else None
    outlook = check_capacity(have.names, card, gpu.count, cloud, held) if doomed else have.capacity
    return replace(
        have,
        drift=tuple(change.path for change in found),
        is_complete=whole,
        needs_replacement=doomed,
        capacity=outlook,
    )


def _released_gpus(have: WorkbenchObservation) -> ReleasedGpus | None:
    """Return the cards that a running instance holds of the quota; None where it holds none."""
    configs = (have.instance or {}).get("gceSetup", {}).get("acceleratorConfigs") or ()
    if have.is_stopped or not configs:
        return None
    return ReleasedGpus(
        str(configs[0].get("type", "")), have.zone, int(configs[0].get("coreCount", 1))
    )
