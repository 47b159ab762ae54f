"""Observation of an instance: what exists, what is recorded, and what was chosen from both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.facts import Facts
from provision.facts.schema_platforms import split_image_name
from provision.plan import Action, Intent
from provision.targets.context import TargetContext
from provision.targets.workbench import programs
from provision.targets.workbench.agent_config import (
    build_agent_config,
    compute_declared_digest,
    encode_config,
)
from provision.targets.workbench.capacity import CapacityCheck
from provision.targets.workbench.diff import ChangeMethod, FieldChange, find_changes
from provision.targets.workbench.image import ImageChoice
from provision.targets.workbench.machine_type import MachineChoice
from provision.targets.workbench.request_body import (
    AgentRun,
    InstanceChoices,
    build_body,
    read_creation_body,
    read_run,
)
from provision.targets.workbench.resource_names import LINEAGE_LABEL, ResourceNames

RUNNING_STATES = ("ACTIVE", "PROVISIONING", "STARTING", "INITIALIZING", "UPGRADING")
STOPPED_STATES = ("STOPPED", "STOPPING", "SUSPENDED", "SUSPENDING")
_NOT_CHECKED = CapacityCheck()


@dataclass(frozen=True, slots=True)
class WorkbenchObservation:
    """An instance with its zone and record, and the machine, image and quota chosen for it.

    Attributes:
        others: Other instances with the same name.
        next_nonce: Nonce of the run that would be started.
        needs_replacement: Another instance is to take its place.
        former_instances: Replaced instances elsewhere: full name, and the action that deletes it.
    """

    facts: Facts
    names: ResourceNames
    instance: Mapping[str, Any] | None
    zone: str
    others: tuple[Mapping[str, Any], ...]
    recorded: Mapping[str, Any] | None
    intent: Intent | None
    machine_choice: MachineChoice
    image_choice: ImageChoice
    next_nonce: str
    capacity: CapacityCheck = _NOT_CHECKED
    drift: tuple[str, ...] = ()
    is_complete: bool = False
    needs_replacement: bool = False
    former_instances: tuple[tuple[str, Action], ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the instance is there, and ours."""
        return self.instance is not None

    @property
    def is_interrupted(self) -> bool:
        """Whether an earlier run was cut short at it."""
        return self.intent is not None

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped, or on its way to that."""
        return self.state in STOPPED_STATES

    @property
    def is_updatable(self) -> bool:
        """Whether it is in a state from which it can be changed."""
        return self.state in (*RUNNING_STATES, *STOPPED_STATES)

    @property
    def is_resolved(self) -> bool:
        """Whether enough is known to say what is wanted."""
        return bool(
            self.image_choice.name and self.machine_choice.machine_type and self.names.folder
        )

    @property
    def condition(self) -> str:
        """The condition of the instance, as `status` shows it."""
        if not self.exists:
            return "gone" if self.recorded else "absent"
        if self.is_interrupted or not self.is_complete:
            return "half-made"
        if self.drift:
            return "outdated"
        return "current, stopped" if self.is_stopped else "current"

    @property
    def state(self) -> str:
        """The instance's state as the service reports it; "" if there is none."""
        return str(self.instance.get("state", "")) if self.instance else ""


def get_source_image(
    record: Mapping[str, Any] | None, real: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the image (project, name, family) of an instance; None if there is no instance.

    The record decides, else what the instance says itself.
    """
    if real is None:
        return None
    if record and isinstance(record.get("image"), Mapping):
        image: Mapping[str, Any] = record["image"]
        return image
    image = read_creation_body(real).get("gceSetup", {}).get("vmImage", {})
    name = str(image.get("name", ""))
    return (
        {
            "project": str(image.get("project", "")),
            "name": name,
            "family": split_image_name(name)[0],
        }
        if name
        else None
    )


def prepare_run(context: TargetContext, observed: WorkbenchObservation) -> tuple[AgentRun, bytes]:
    """Return the run to be, and its document."""
    document = encode_config(
        build_agent_config(
            context,
            observed.names,
            observed.next_nonce,
            programs.build_programs(),
            programs.read_pinned_uv(),
        )
    )
    return AgentRun(
        observed.next_nonce, hashlib.sha256(document).hexdigest(), compute_declared_digest(context)
    ), document


def select_run(context: TargetContext, observed: WorkbenchObservation) -> AgentRun:
    """Return the instance's run if it is ours and for what is declared; else a new one."""
    told = read_run(observed.instance or {})
    ours = (observed.intent.details.get("nonce") if observed.intent else None) or (
        observed.recorded or {}
    ).get("nonce")
    if (
        told is not None
        and told.declared_digest == compute_declared_digest(context)
        and ours in (None, told.nonce)
        and told.config_uri == f"{observed.names.run_folder(told.nonce)}document.json"
    ):
        return told
    return prepare_run(context, observed)[0]


def build_desired_body(
    context: TargetContext, observed: WorkbenchObservation, run: AgentRun
) -> dict[str, Any]:
    """Return the body of the desired instance, with a run."""
    card = observed.facts.card(context.spec.gpu.type) if not context.spec.gpu.is_none else None
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
    sent = (observed.recorded or {}).get("body") or read_creation_body(observed.instance or {})
    found = find_changes(build_desired_body(context, observed, run), observed.instance or {}, sent)
    if observed.zone not in observed.names.zones:
        found = (
            *found,
            FieldChange(
                "zone", observed.zone, ", ".join(observed.names.zones), ChangeMethod.REPLACE
            ),
        )
    # Two texts of the same values are the same run.
    return tuple(
        change
        for change in found
        if not (
            change.path.endswith("/provision-run") and _is_same_json(change.actual, change.desired)
        )
    )


def is_adopted(observed: WorkbenchObservation) -> bool:
    """Return whether the instance was made by another state."""
    return (
        observed.instance is not None
        and observed.instance.get("labels", {}).get(LINEAGE_LABEL) != observed.names.lineage
    )


def _is_same_json(one: Any, other: Any) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (TypeError, ValueError):
        return False
