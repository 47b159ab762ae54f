"""Orphans: instances with our labels that no state or journal tracks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.effects.system import Reader
from provision.errors import ProvisionError
from provision.kinds import WorkbenchTarget
from provision.spec import Spec
from provision.state import Ledger
from provision.targets.capabilities import Orphan, OrphanList
from provision.targets.workbench.records import InstanceRecord, is_instance_part
from provision.targets.workbench.resource_names import LINEAGE_LABEL, MANAGED_LABEL


def list_orphan_instances(
    ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
) -> OrphanList | None:
    """Return the instances with our labels that none of the ledgers records or began.

    The projects are those that the specs, states and journals name or ever named. A project that
    cannot be read does not hide the orphans of the others. Returns None without a project.
    """
    known: set[tuple[str, str]] = set()
    projects: dict[str, None] = {}
    for spec, ledger in ledgers:
        recorded = set(_recorded_instances(ledger))
        known |= recorded
        projects |= dict.fromkeys(
            target.project
            for target in spec.targets.values()
            if isinstance(target, WorkbenchTarget)
        )
        recorded_projects = {name.split("/")[1] for name, _ in recorded}
        projects |= dict.fromkeys(sorted(recorded_projects.union(ledger.state.accounts)))
    if not projects:
        return None
    orphans: list[Orphan] = []
    failed: dict[str, ProvisionError] = {}
    for project in projects:
        try:
            instances = reader.cloud().instances(project)
        except ProvisionError as error:
            failed[project] = error
            continue
        for instance in instances:
            labels = instance.get("labels", {})
            identity = (str(instance.get("name", "")), str(labels.get(LINEAGE_LABEL, "")))
            if labels.get(MANAGED_LABEL) == "1" and identity not in known:
                orphans.append(_to_orphan(instance))
    return OrphanList(tuple(orphans), failed)


def _recorded_instances(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Yield name and lineage of every instance that is recorded or may have been begun."""
    for key, record in ledger.state.resources.items():
        if is_instance_part(key.rpartition("#")[2]):
            for candidate in InstanceRecord.from_json(record).candidates:
                yield candidate.resource_name, candidate.lineage
    for intent in ledger.intents:
        if is_instance_part(intent.part):
            for name in intent.names:
                yield name, intent.details.get("lineage", "")


def _to_orphan(instance: Mapping[str, Any]) -> Orphan:
    labels = instance.get("labels", {})
    name, state, created = (str(instance.get(key, "")) for key in ("name", "state", "createTime"))
    spec, target = (str(labels.get(f"provision-{key}", "")) for key in ("spec", "target"))
    _, project, _, zone, _, short_name = name.split("/")
    delete = f"gcloud workbench instances delete {short_name} --project={project} --location={zone}"
    return Orphan(name, state, created, spec, target, delete)
