"""Observes an instance: finds it, chooses machine and image, and compares it with the spec."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from provision.effects.google import CloudReader
from provision.effects.system import Reader
from provision.facts import load_facts
from provision.state import Ledger
from provision.targets.context import TargetContext
from provision.targets.workbench.agent_config import compute_declared_digest
from provision.targets.workbench.capacity import ReleasedGpus, check_capacity
from provision.targets.workbench.diff import ChangeMethod
from provision.targets.workbench.former_instances import plan_former_removals
from provision.targets.workbench.image import choose_image, is_image_unpinned
from provision.targets.workbench.machine_type import choose_machine
from provision.targets.workbench.observation import (
    WorkbenchObservation,
    find_differences,
    get_source_image,
    select_run,
)
from provision.targets.workbench.ownership import find_instances
from provision.targets.workbench.records import INSTANCE_PART
from provision.targets.workbench.refusals import get_workbench_target
from provision.targets.workbench.resource_names import build_resource_names


def observe_instance(
    context: TargetContext, ledger: Ledger, reader: Reader
) -> WorkbenchObservation:
    """Return the instance of a target, by its name in every zone of the project."""
    state, facts, cloud = ledger.state, load_facts(), reader.cloud()
    names = build_resource_names(context, state.lineage)
    record = state.resource(context.address, INSTANCE_PART)
    zones: tuple[str, ...] = ()
    if record and record.get("zone") and record.get("project") == names.project:
        zones = (str(record["zone"]),)
    match = find_instances(context, names, zones, cloud, adopt=context.adopt)
    target, gpu = get_workbench_target(context), context.spec.gpu
    card = None if gpu.is_none else facts.card(gpu.type)
    image = get_source_image(record, match.instance)
    config = None
    chosen = image is not None and choose_image(target.image, facts, None, image).name
    if is_image_unpinned(target.image) and not chosen:
        config = cloud.config(names.project, names.zones[0])
    declared = compute_declared_digest(context)
    run = f"{state.lineage} {state.serial} {context.address} {declared}"
    observed = WorkbenchObservation(
        facts,
        names,
        *match,
        recorded=record,
        intent=ledger.find_interrupted(context.address),
        machine_choice=choose_machine(context.spec, target, facts, card),
        image_choice=choose_image(target.image, facts, config, image),
        next_nonce=hashlib.sha256(run.encode()).hexdigest()[:32],
        former_instances=tuple(plan_former_removals(state, context.address, names)),
    )
    return _compare(context, observed, cloud)


def _compare(
    context: TargetContext, observed: WorkbenchObservation, cloud: CloudReader
) -> WorkbenchObservation:
    """Return an observation with its differences, and the capacity if an instance is created."""
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
    """Return the GPUs in the quota of a running instance; None if it has none."""
    configs = (observed.instance or {}).get("gceSetup", {}).get("acceleratorConfigs") or ()
    if observed.is_stopped or not configs:
        return None
    return ReleasedGpus(
        str(configs[0].get("type", "")), observed.zone, int(configs[0].get("coreCount", 1))
    )
