"""What is known of one instance: what was found, what is recorded, and what was decided from both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.facts import Facts
from provision.facts.places import family_and_day
from provision.plan import Action
from provision.state import Intent
from provision.targets.target import Place
from provision.targets.workbench import programs
from provision.targets.workbench.body import Choices, Run, body_of, made_of, run_on
from provision.targets.workbench.capacity import Outlook
from provision.targets.workbench.diff import Change, Way, changes
from provision.targets.workbench.document import document_of, holds, written
from provision.targets.workbench.image import Picked
from provision.targets.workbench.machine import Chosen
from provision.targets.workbench.naming import LINEAGE, Names

RUNNING = ("ACTIVE", "PROVISIONING", "STARTING", "INITIALIZING", "UPGRADING")
RESTING = ("STOPPED", "STOPPING", "SUSPENDED", "SUSPENDING")
_UNKNOWN = Outlook()


@dataclass(frozen=True, slots=True)
class Have:
    """What was found, and what was decided from it: the instance with its zone, what is recorded, machine type, image, quotas; `fresh` is the run to be.

    `others` bear the same name and are not the one; `doomed` tells that another instance is to take the place of the one that is there;
    `formers` are instances that a move left elsewhere: full name, and the action that removes it.
    """

    facts: Facts
    names: Names
    real: Mapping[str, Any] | None
    zone: str
    others: tuple[Mapping[str, Any], ...]
    recorded: Mapping[str, Any] | None
    intent: Intent | None
    chosen: Chosen
    picked: Picked
    fresh: str
    outlook: Outlook = _UNKNOWN
    drift: tuple[str, ...] = ()
    whole: bool = False
    doomed: bool = False
    formers: tuple[tuple[str, Action], ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the instance is there, and ours."""
        return self.real is not None

    @property
    def interrupted(self) -> bool:
        """Whether an earlier run was cut short at it."""
        return self.intent is not None

    @property
    def resting(self) -> bool:
        """Whether it is stopped, or on its way to that."""
        return self.state in RESTING

    @property
    def able(self) -> bool:
        """Whether it is in a state from which it can be changed."""
        return self.state in (*RUNNING, *RESTING)

    @property
    def decided(self) -> bool:
        """Whether enough is known to say what is wanted."""
        return bool(self.picked.name and self.chosen.machine_type and self.names.folder)

    @property
    def condition(self) -> str:
        """How it stands, in words."""
        if not self.exists:
            return "gone" if self.recorded else "absent"
        if self.interrupted or not self.whole:
            return "half-made"
        if self.drift:
            return "outdated"
        return "current, stopped" if self.resting else "current"

    @property
    def state(self) -> str:
        """The instance's state as the service tells it; "" where there is none."""
        return str(self.real.get("state", "")) if self.real else ""


def image_of(record: Mapping[str, Any] | None, real: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the image (project, name, family) that an instance was made from, as recorded, else as it says itself; None where there is no instance."""
    if real is None:
        return None
    if record and isinstance(record.get("image"), Mapping):
        image: Mapping[str, Any] = record["image"]
        return image
    image = made_of(real).get("gceSetup", {}).get("vmImage", {})
    name = str(image.get("name", ""))
    return {"project": str(image.get("project", "")), "name": name, "family": family_and_day(name)[0]} if name else None


def document_for(place: Place, have: Have) -> tuple[Run, bytes]:
    """Return the run to be, and its document."""
    document = written(document_of(place, have.names, have.fresh, programs.fetched(), programs.uv()))
    return Run(have.fresh, hashlib.sha256(document).hexdigest(), holds(place)), document


def run_at(place: Place, have: Have) -> Run:
    """Return the run that the instance is at, where that is ours and for what is declared now, else a new one."""
    told = run_on(have.real or {})
    ours = (have.intent.details.get("nonce") if have.intent else None) or (have.recorded or {}).get("nonce")
    if told is not None and told.holds == holds(place) and ours in (None, told.nonce) and told.document == f"{have.names.run(told.nonce)}document.json":
        return told
    return document_for(place, have)[0]


def body_for(place: Place, have: Have, run: Run) -> dict[str, Any]:
    """Return the body of the instance that is wanted, told of a run."""
    card = have.facts.card(place.spec.gpu.type) if not place.spec.gpu.none else None
    choices = Choices(have.chosen.machine_type, have.picked.project, have.picked.name, card, place.spec.gpu.count if card else 0)
    return body_of(place, have.names, choices, run, have.facts)


def differing(place: Place, have: Have, run: Run) -> tuple[Change, ...]:
    """Return what differs between the instance that is wanted, told of a run, and the one that is there."""
    sent = (have.recorded or {}).get("body") or made_of(have.real or {})
    found = changes(body_for(place, have, run), have.real or {}, sent)
    if have.zone not in have.names.zones:
        found = (*found, Change("zone", have.zone, ", ".join(have.names.zones), Way.REPLACE))
    # Two texts of the same values are the same run.
    return tuple(change for change in found if not (change.path.endswith("/provision-run") and _same_text(change.had, change.wants)))


def taken_over(have: Have) -> bool:
    """Tell whether the instance was made by another state."""
    return have.real is not None and have.real.get("labels", {}).get(LINEAGE) != have.names.lineage


def _same_text(one: Any, other: Any) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (TypeError, ValueError):
        return False
