"""Observation of an instance: its actual state, its record, the choices, and their differences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from provision.effects.google import CloudReader
from provision.effects.system import Reader
from provision.facts import Facts, load_facts
from provision.facts.machines import region_of
from provision.facts.schema_platforms import split_image_name
from provision.plan import Action, Intent
from provision.state import Ledger
from provision.targets.context import TargetContext, find_card
from provision.targets.pinned_uv import read_pinned_uv
from provision.targets.workbench.agent_config import (
    build_agent_config,
    build_programs,
    compute_declared_digest,
    encode_config,
)
from provision.targets.workbench.capacity import CapacityCheck, ReleasedGpus, check_capacity
from provision.targets.workbench.choices import (
    ImageChoice,
    MachineChoice,
    choose_image,
    choose_machine,
    is_image_unpinned,
)
from provision.targets.workbench.cleanup import plan_former_removals
from provision.targets.workbench.diff import ChangeMethod, FieldChange, find_changes
from provision.targets.workbench.ownership import find_instances
from provision.targets.workbench.records import InstanceRecord
from provision.targets.workbench.request_body import (
    AgentRun,
    InstanceChoices,
    build_body,
    read_creation_body,
    read_run,
)
from provision.targets.workbench.resource_names import (
    LINEAGE_LABEL,
    ResourceNames,
    build_resource_names,
    get_workbench_target,
)

RUNNING_STATES = ("ACTIVE", "PROVISIONING", "STARTING", "INITIALIZING", "UPGRADING")
STOPPED_STATES = ("STOPPED", "STOPPING", "SUSPENDED", "SUSPENDING")
_NOT_CHECKED = CapacityCheck()


@dataclass(frozen=True, slots=True)
class WorkbenchObservation:
    """An instance with its zone and record, and the machine, image and quota chosen for it.

    Attributes:
        others: Other instances with the same name.
        next_nonce: Nonce of the run that would be started.
        needs_replacement: The instance is to be replaced with a new one.
        former_instances: Replaced instances elsewhere: full name, and the action that deletes it.
        image_note: The verification on its image that still applies; "" for none.
    """

    facts: Facts
    names: ResourceNames
    instance: Mapping[str, Any] | None
    zone: str
    others: tuple[Mapping[str, Any], ...]
    recorded: InstanceRecord | None
    intent: Intent | None
    machine_choice: MachineChoice
    image_choice: ImageChoice
    next_nonce: str
    capacity: CapacityCheck = _NOT_CHECKED
    drift: tuple[str, ...] = ()
    is_complete: bool = False
    needs_replacement: bool = False
    former_instances: tuple[tuple[str, Action], ...] = ()
    image_note: str = ""

    @property
    def exists(self) -> bool:
        """True if the instance exists and is ours."""
        return self.instance is not None

    @property
    def is_interrupted(self) -> bool:
        """True if an earlier run was interrupted at it."""
        return self.intent is not None

    @property
    def is_stopped(self) -> bool:
        """True if it is stopped or stopping."""
        return self.state in STOPPED_STATES

    @property
    def is_updatable(self) -> bool:
        """True if it is in a state from which it can be changed."""
        return self.state in (*RUNNING_STATES, *STOPPED_STATES)

    @property
    def is_resolved(self) -> bool:
        """True if machine, image and folder are known."""
        return bool(
            self.image_choice.name and self.machine_choice.machine_type and self.names.folder
        )

    @property
    def condition(self) -> str:
        """The condition of the instance, as `status` shows it."""
        if not self.exists:
            return "gone" if self.recorded else "absent"
        if self.is_interrupted or not self.is_complete:
            return "incomplete"
        if self.drift:
            return "outdated"
        return "current, stopped" if self.is_stopped else "current"

    @property
    def state(self) -> str:
        """The instance's state as the service reports it; "" if there is none."""
        return str(self.instance.get("state", "")) if self.instance else ""


def observe_instance(
    context: TargetContext, ledger: Ledger, reader: Reader
) -> WorkbenchObservation:
    """Return the instance of a target, by its name in every zone of the project."""
    state, facts, cloud = ledger.state, load_facts(), reader.cloud()
    names = build_resource_names(context, state.lineage)
    record = InstanceRecord.find(state, context.address)
    zones: tuple[str, ...] = ()
    if record and record.zone and record.project == names.project:
        zones = (record.zone,)
    match = find_instances(context, names, zones, cloud, adopt=context.adopt)
    target = get_workbench_target(context)
    image = _find_source_image(record, match.instance)
    config = None
    is_chosen = image is not None and choose_image(target.image, facts, None, image).name
    if is_image_unpinned(target.image) and not is_chosen:
        config = cloud.config(names.project, names.zones[0])
    run = f"{state.lineage} {state.serial} {context.address} {compute_declared_digest(context)}"
    observed = WorkbenchObservation(
        facts,
        names,
        *match,
        recorded=record,
        intent=ledger.find_interrupted(context.address),
        machine_choice=choose_machine(
            context.spec,
            target.machine_type,
            region_of(target.zones[0]),
            facts,
            find_card(context, facts),
            reserved=target.reservation is not None,
            # In other zones it is replaced, and prices and machines are others.
            existing=_find_machine_type(record, match.instance)
            if match.zone in names.zones
            else "",
        ),
        image_choice=choose_image(target.image, facts, config, image),
        next_nonce=hashlib.sha256(run.encode()).hexdigest()[:32],
        former_instances=tuple(plan_former_removals(state, context.address, names)),
    )
    return _compare(context, observed, cloud)


def _compare(
    context: TargetContext, observed: WorkbenchObservation, cloud: CloudReader
) -> WorkbenchObservation:
    """Return an observation with its differences, and the capacity if an instance is created."""
    card, count = find_card(context, observed.facts), context.spec.gpu.count
    if not observed.exists:
        return replace(observed, capacity=check_capacity(observed.names, card, count, cloud))
    if not observed.is_resolved:
        return observed
    changes = find_differences(context, observed, select_run(context, observed))
    capacity = observed.capacity
    is_replaced = not observed.is_updatable or any(
        change.method is ChangeMethod.REPLACE for change in changes
    )
    if is_replaced:
        # The old GPUs are released in time only if the old instance is deleted first.
        in_zones = observed.zone in observed.names.zones
        released = _released_gpus(observed) if in_zones else None
        capacity = check_capacity(observed.names, card, count, cloud, released)
    return replace(
        observed,
        drift=tuple(change.path for change in changes),
        is_complete=observed.is_updatable and not observed.is_interrupted,
        needs_replacement=is_replaced,
        capacity=capacity,
    )


def _released_gpus(observed: WorkbenchObservation) -> ReleasedGpus | None:
    """Return the GPUs in the quota of a running instance; None if it has none."""
    configs = (observed.instance or {}).get("gceSetup", {}).get("acceleratorConfigs") or ()
    if observed.is_stopped or not configs:
        return None
    count = int(configs[0].get("coreCount", 1))
    return ReleasedGpus(str(configs[0].get("type", "")), observed.zone, count)


def _find_source_image(
    record: InstanceRecord | None, instance: Mapping[str, Any] | None
) -> Mapping[str, str] | None:
    """Return the image (project, name, family) of an instance; None if there is no instance.

    The record is used if it has an image, else the instance's own metadata.
    """
    if instance is None:
        return None
    if record and record.image:
        return record.image
    image = read_creation_body(instance).get("gceSetup", {}).get("vmImage", {})
    name = str(image.get("name", ""))
    if not name:
        return None
    project, family = str(image.get("project", "")), split_image_name(name)[0]
    return {"project": project, "name": name, "family": family}


def _find_machine_type(record: InstanceRecord | None, instance: Mapping[str, Any] | None) -> str:
    """Return the machine type that was requested for an instance; "" if there is no instance."""
    if instance is None:
        return ""
    if record is not None and record.body:
        return record.machine_type
    body = read_creation_body(instance)
    return str(body.get("gceSetup", {}).get("machineType", "")).rpartition("/")[2]


def prepare_run(context: TargetContext, observed: WorkbenchObservation) -> tuple[AgentRun, bytes]:
    """Return the next run, and its document."""
    nonce, names = observed.next_nonce, observed.names
    agent_programs, uv = build_programs(context), read_pinned_uv()
    document = encode_config(build_agent_config(context, names, nonce, agent_programs, uv))
    digest = hashlib.sha256(document).hexdigest()
    return AgentRun(nonce, digest, compute_declared_digest(context)), document


def select_run(context: TargetContext, observed: WorkbenchObservation) -> AgentRun:
    """Return the instance's run if it is ours and matches the declaration, else a new run."""
    run = read_run(observed.instance or {})
    nonce = observed.intent.details.get("nonce") if observed.intent else None
    if not nonce and observed.recorded:
        nonce = observed.recorded.nonce
    if (
        run is not None
        and run.declared_digest == compute_declared_digest(context)
        and nonce in (None, run.nonce)
        and run.config_uri == f"{observed.names.run_folder(run.nonce)}document.json"
    ):
        return run
    return prepare_run(context, observed)[0]


def build_desired_body(
    context: TargetContext, observed: WorkbenchObservation, run: AgentRun
) -> dict[str, Any]:
    """Return the body of the desired instance, with a run."""
    card = find_card(context, observed.facts)
    choices = InstanceChoices(
        observed.machine_choice.machine_type,
        observed.image_choice.project,
        observed.image_choice.name,
        card,
        context.spec.gpu.count if card else 0,
    )
    return build_body(context, observed.names, choices, run, observed.facts)


def find_differences(
    context: TargetContext, observed: WorkbenchObservation, run: AgentRun
) -> tuple[FieldChange, ...]:
    """Return the differences between the desired instance, with a run, and the one that exists."""
    recorded, instance, zones = observed.recorded, observed.instance or {}, observed.names.zones
    sent = (recorded.body if recorded else None) or read_creation_body(instance)
    changes = find_changes(build_desired_body(context, observed, run), instance, sent)
    if observed.zone not in zones:
        moved = FieldChange("zone", observed.zone, ", ".join(zones), ChangeMethod.REPLACE)
        changes = (*changes, moved)
    # Different JSON texts of the same values are the same run.
    return tuple(
        change
        for change in changes
        if not change.path.endswith("/provision-run")
        or not _is_same_json(change.actual, change.desired)
    )


def is_adopted(observed: WorkbenchObservation) -> bool:
    """Return whether the instance was made by another state."""
    return (
        observed.instance is not None
        and observed.instance.get("labels", {}).get(LINEAGE_LABEL) != observed.names.lineage
    )


def _is_same_json(actual: Any, desired: Any) -> bool:
    try:
        return bool(json.loads(actual) == json.loads(desired))
    except (TypeError, ValueError):
        return False
