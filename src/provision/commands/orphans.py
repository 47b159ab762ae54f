"""Instances that carry our labels and that no state here knows: what may cost money unseen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from provision.commands.loading import Loaded
from provision.effects import World
from provision.errors import UsageError
from provision.places import WorkbenchTarget
from provision.stores import LocalStore
from provision.targets.workbench import LINEAGE

_MARK = "provision"


@dataclass(frozen=True, slots=True)
class Orphan:
    """An instance without a record: its full name, state, day of making, and the spec and target that its labels name."""

    name: str
    state: str
    created: str
    spec: str
    target: str

    @property
    def delete(self) -> str:
        """The command line that deletes it."""
        _, project, _, zone, _, instance = self.name.split("/")
        return f"gcloud workbench instances delete {instance} --project={project} --location={zone}"


def orphans(specs: Iterable[Loaded], world: World) -> tuple[Orphan, ...]:
    """Return the instances that carry our labels and stand in no state or journal beside these specs, in all projects that spec, state or journal names.

    Raises UsageError where none names a project.
    """
    known: set[tuple[str, str]] = set()
    projects: dict[str, None] = {}
    for loaded in specs:
        spec = loaded.declared or loaded.spec
        projects |= dict.fromkeys(target.project for target in spec.targets.values() if isinstance(target, WorkbenchTarget))
        recorded = set(_recorded(loaded, world))
        projects |= dict.fromkeys(sorted(name.split("/")[1] for name, _ in recorded))  # those that a spec no longer names included
        known |= recorded
    if not projects:
        raise UsageError("no project was asked: none of these specs has a target of kind workbench", hint="name the specs whose instances may be left")
    found = [instance for project in projects for instance in world.cloud().instances(project)]
    return tuple(_orphan(one) for one in found if one.get("labels", {}).get(_MARK) == "1" and _owner(one) not in known)


def _owner(instance: Mapping[str, Any]) -> tuple[str, str]:
    return str(instance.get("name", "")), str(instance.get("labels", {}).get(LINEAGE, ""))


def _recorded(loaded: Loaded, world: World) -> Iterable[tuple[str, str]]:
    """Yield name and lineage of every instance that the state beside a spec knows, or that a run which was cut short may have made."""
    ledger = LocalStore(loaded.folder, world).ledger()
    for record in ledger.state.resources.values():
        if record.get("instance"):
            zones = [record["zone"]] if record.get("zone") else record.get("zones", ())
            names = (f"projects/{record['project']}/locations/{zone}/instances/{record['instance']}" for zone in zones)
            yield from ((name, str(record.get("lineage", ""))) for name in names)
    for intent in ledger.intents:
        yield from ((name, intent.details.get("lineage", "")) for name in intent.names)


def _orphan(instance: object) -> Orphan:
    told = instance if isinstance(instance, dict) else {}
    labels = told.get("labels", {})
    name, state, created = (str(told.get(key, "")) for key in ("name", "state", "createTime"))
    return Orphan(name, state, created, str(labels.get("provision-spec", "")), str(labels.get("provision-target", "")))
