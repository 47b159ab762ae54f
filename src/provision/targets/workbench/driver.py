"""A Workbench instance as a kind of place: what is there, what is refused, what would be done, what
is left behind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from provision.effects import CloudReader, Effect, Reader, RemoveTree
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

    def observe(
        self, context: TargetContext, ledger: Ledger, reader: Reader
    ) -> WorkbenchObservation:
        """Return what there is of the instance: looked for by its name in every zone of the
        project, whatever the state says.
        """
        state, facts, cloud = ledger.state, load_facts(), reader.cloud()
        names = build_resource_names(context, state.lineage)
        record, intent = (
            state.resource(context.address, INSTANCE_PART),
            ledger.find_interrupted(context.address),
        )
        zones = (
            (str(record["zone"]),)
            if record and record.get("zone") and record.get("project") == names.project
            else ()
        )
        found = find_instances(context, names, zones, cloud, adopt=context.adopt)
        target, card = (
            get_workbench_target(context),
            facts.card(context.spec.gpu.type) if not context.spec.gpu.is_none else None,
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
        chosen = choose_machine(context.spec, target, facts, card)
        fresh = hashlib.sha256(
            f"{state.lineage} {state.serial} {context.address} "
            f"{compute_declared_digest(context)}".encode()
        ).hexdigest()[:32]
        formers = tuple(plan_former_removals(state, context.address, names))
        observed = WorkbenchObservation(
            facts, names, *found, record, intent, chosen, picked, fresh, former_instances=formers
        )
        return _with_differences(context, observed, cloud)

    def refusals(
        self, context: TargetContext, observed: WorkbenchObservation
    ) -> tuple[Refusal, ...]:
        """Return what the spec asks for that this kind does not do, or that cannot be had."""
        # Beside one of ours, another is in the way only where the new one may have to lie.
        others = (one for one in observed.others if not is_owned(one, observed.names))
        foreign = tuple(
            one
            for one in others
            if not observed.exists
            or (
                observed.needs_replacement
                and str(one.get("name", "")).split("/")[3] in observed.names.zones
            )
        )
        return tuple(
            find_refusals(
                context,
                observed.facts,
                observed.machine_choice,
                observed.image_choice,
                foreign,
                observed.capacity,
            )
        )

    def plan(self, context: TargetContext, observed: WorkbenchObservation) -> tuple[Action, ...]:
        """Return the action on the instance, with all that runs on it, and the removals of former
        ones that a move left.
        """
        stays = observed.exists and not observed.needs_replacement
        taken = {
            observed.names.instance_resource_name(zone)
            for zone in ((observed.zone,) if stays else observed.names.zones)
        }  # names that the instance has, or may get
        return (
            *self._plan_instance(context, observed),
            *(action for name, action in observed.former_instances if name not in taken),
        )

    def _plan_instance(
        self, context: TargetContext, observed: WorkbenchObservation
    ) -> tuple[Action, ...]:
        if (
            observed.recorded is not None
            and observed.recorded.get("project") != observed.names.project
        ):
            return (plan_move(context, observed),)
        if observed.instance is None:
            return (plan_create(context, observed),)
        found = find_differences(context, observed, select_run(context, observed))
        return (
            plan_replace(context, observed, found)
            if observed.needs_replacement
            else plan_update(context, observed, found),
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

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run on the instance; the paths are the device's."""
        prefix = Path(get_prefix(context))
        return Interpreter(prefix / "bin/python", prefix, Path(STABLE_PREFIX))

    def get_environment_variables(
        self,
        context: TargetContext,
        caller: Mapping[str, str],  # noqa: ARG002
        *,
        partial: bool = False,  # noqa: ARG002
    ) -> dict[str, str]:
        """Return the declared variables; secrets are fetched on the instance."""
        return declared_variables(context.spec)

    def plan_rerun(
        self, context: TargetContext, observed: WorkbenchObservation, nonce: str
    ) -> tuple[tuple[Effect, ...], Mapping[str, Any]]:
        """Return the effects that have the instance verify itself again, and the record that it
        then has.
        """
        return plan_rerun_effects(context, observed, nonce)


def get_run_location(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return (nonce, gs:// folder of the run) of a recorded instance."""
    return str(record["nonce"]), f"{record['bucket']}{record['nonce']}/"


def _with_differences(
    context: TargetContext, observed: WorkbenchObservation, cloud: CloudReader
) -> WorkbenchObservation:
    """Return what was found with what differs; where an instance has to be made for it, with what
    is known of the chance to get one.
    """
    gpu = context.spec.gpu
    card = observed.facts.card(gpu.type) if not gpu.is_none else None
    if not observed.exists:
        return replace(observed, capacity=check_capacity(observed.names, card, gpu.count, cloud))
    if not observed.is_resolved:
        return observed
    found = find_differences(context, observed, select_run(context, observed))
    doomed = not observed.is_updatable or any(
        change.method is ChangeMethod.REPLACE for change in found
    )
    whole = observed.is_updatable and not observed.is_interrupted
    # The old one's cards come back only where it goes before the new one is made.
    held = _released_gpus(observed) if observed.zone in observed.names.zones else None
    outlook = (
        check_capacity(observed.names, card, gpu.count, cloud, held)
        if doomed
        else observed.capacity
    )
    return replace(
        observed,
        drift=tuple(change.path for change in found),
        is_complete=whole,
        needs_replacement=doomed,
        capacity=outlook,
    )


def _released_gpus(observed: WorkbenchObservation) -> ReleasedGpus | None:
    """Return the cards that a running instance holds of the quota; None where it holds none."""
    configs = (observed.instance or {}).get("gceSetup", {}).get("acceleratorConfigs") or ()
    if observed.is_stopped or not configs:
        return None
    return ReleasedGpus(
        str(configs[0].get("type", "")), observed.zone, int(configs[0].get("coreCount", 1))
    )
