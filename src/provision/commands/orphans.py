"""Instances that carry our labels and that no state here knows: what may cost money unseen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from provision.commands.shared.load import LoadedSpec
from provision.effects import System
from provision.errors import ProvisionError, UsageError
from provision.kinds.models import WorkbenchTarget
from provision.state import Ledger
from provision.state_store import LocalStore
from provision.targets.workbench import LINEAGE_LABEL

_MANAGED_LABEL = "provision"


@dataclass(frozen=True, slots=True)
class Orphan:
    """An instance without a record: its full name, state, day of making, and the spec and target
    that its labels name.
    """

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


@dataclass(frozen=True, slots=True)
class OrphanList:
    """The orphans of all projects that answered, and the errors of those that did not, by project."""  # noqa: E501

    orphans: tuple[Orphan, ...]
    failed: Mapping[str, ProvisionError]

    @property
    def exit_code(self) -> int:
        """1 when there are orphans, else the code of the first error, else 0."""
        return 1 if self.orphans else next((error.exit_code for error in self.failed.values()), 0)


def list_orphans(specs: Iterable[LoadedSpec], system: System) -> OrphanList:
    """Return the instances that carry our labels and are in no state or journal next to these
    specs.

    All projects are asked that a spec, a state or a journal names, and those that a state ever
    named. One that does not answer hides no other.

    Raises:
        UsageError: none of them names a project.
    """
    known: set[tuple[str, str]] = set()
    projects: dict[str, None] = {}
    for loaded in specs:
        spec, ledger = (
            loaded.declared or loaded.spec,
            LocalStore(loaded.folder, system).load_ledger(),
        )
        projects |= dict.fromkeys(
            target.project
            for target in spec.targets.values()
            if isinstance(target, WorkbenchTarget)
        )
        recorded = set(_recorded(ledger))
        projects |= dict.fromkeys(
            sorted({*(name.split("/")[1] for name, _ in recorded), *ledger.state.projects})
        )
        known |= recorded
    if not projects:
        raise UsageError(
            "no project was asked: none of these specs has a target of kind workbench",
            hint="name the specs whose instances may be left",
        )
    orphans, failed = list[Orphan](), dict[str, ProvisionError]()
    for project in projects:
        try:
            instances = system.cloud().instances(project)
        except ProvisionError as error:
            failed[project] = error
            continue
        orphans += [
            _orphan(one)
            for one in instances
            if one.get("labels", {}).get(_MANAGED_LABEL) == "1" and _owner(one) not in known
        ]
    return OrphanList(tuple(orphans), failed)


def _owner(instance: Mapping[str, Any]) -> tuple[str, str]:
    return str(instance.get("name", "")), str(instance.get("labels", {}).get(LINEAGE_LABEL, ""))


def _recorded(ledger: Ledger) -> Iterable[tuple[str, str]]:
    """Yield name and lineage of every instance that the state records, or that an interrupted run
    may have made.
    """
    for record in ledger.state.resources.values():
        if record.get("instance"):
            zones = [record["zone"]] if record.get("zone") else record.get("zones", ())
            names = (
                f"projects/{record['project']}/locations/{zone}/instances/{record['instance']}"
                for zone in zones
            )
            yield from ((name, str(record.get("lineage", ""))) for name in names)
    for intent in ledger.intents:
        yield from ((name, intent.details.get("lineage", "")) for name in intent.names)


def _orphan(instance: object) -> Orphan:
    told = instance if isinstance(instance, dict) else {}
    labels = told.get("labels", {})
    name, state, created = (str(told.get(key, "")) for key in ("name", "state", "createTime"))
    return Orphan(
        name,
        state,
        created,
        str(labels.get("provision-spec", "")),
        str(labels.get("provision-target", "")),
    )
