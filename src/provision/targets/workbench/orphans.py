"""Orphans: instances with our labels that no state or journal tracks, and jobs on their images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.adapters.google.errors import CloudError
from provision.effects.system import Reader
from provision.errors import ProvisionError
from provision.facts import load_facts
from provision.facts.machines import region_of
from provision.kinds import WorkbenchTarget
from provision.spec import Spec
from provision.state import Ledger
from provision.targets.capabilities import Orphan, OrphanList
from provision.targets.execution_jobs import has_template, is_running, to_orphan_job
from provision.targets.workbench.image_records import list_recorded_jobs
from provision.targets.workbench.records import InstanceRecord, is_instance_part
from provision.targets.workbench.resource_names import LINEAGE_LABEL, MANAGED_LABEL


def list_orphan_instances(
    ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
) -> OrphanList | None:
    """Return the instances and running jobs with our labels that none of the ledgers knows.

    The projects are those that the specs, states and journals name or ever named; jobs are searched
    in the regions that these name. A project that cannot be read does not hide the orphans of the
    others. Returns None without a project.
    """
    known: set[tuple[str, str]] = set()
    projects: dict[str, None] = {}
    regions: set[tuple[str, str]] = set()
    for spec, ledger in ledgers:
        recorded = set(_recorded_instances(ledger))
        jobs = tuple(list_recorded_jobs(ledger))
        known |= recorded | {(job.resource_name, job.lineage) for job in jobs}
        regions |= {(job.project, job.region) for job in jobs} | set(_declared_regions(spec))
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
            searched = sorted(region for owner, region in regions if owner == project)
            running = [job for region in searched for job in _running_jobs(project, region, reader)]
        except ProvisionError as error:
            failed[project] = error
            continue
        orphans += [_to_orphan(item) for item in instances if _is_orphan(item, known)]
        orphans += [to_orphan_job(job) for job in running if _is_orphan(job, known)]
    return OrphanList(tuple(orphans), failed)


def _is_orphan(resource: Mapping[str, Any], known: set[tuple[str, str]]) -> bool:
    labels = resource.get("labels", {})
    identity = (str(resource.get("name", "")), str(labels.get(LINEAGE_LABEL, "")))
    return labels.get(MANAGED_LABEL) == "1" and identity not in known


def _declared_regions(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield project and region of every zone of a spec in whose region Vertex AI has jobs."""
    offered = load_facts().conditions["enterprise regions"].value.split()
    for target in spec.targets.values():
        if isinstance(target, WorkbenchTarget):
            regions = (region_of(zone) for zone in target.zones)
            yield from ((target.project, region) for region in regions if region in offered)


def _running_jobs(project: str, region: str, reader: Reader) -> Iterator[Mapping[str, Any]]:
    """Yield the running jobs on images; none for somebody who may not list them, nor start one."""
    try:
        jobs = reader.cloud().executions(project, region)
    except CloudError as error:
        if error.failure.kind in ("permission", "api-disabled"):
            return
        raise
    yield from (job for job in jobs if is_running(job) and not has_template(job))


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
