"""Orphans: running custom jobs with our labels that no state tracks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.adapters.google.custom_jobs import ENDED, state_of
from provision.effects.system import Reader
from provision.errors import ProvisionError
from provision.kinds import VertexJobTarget
from provision.spec import Spec
from provision.state import Ledger
from provision.targets.capabilities import Orphan, OrphanList
from provision.targets.vertex_job.records import JobRecord, ProgramsRecord, read_job_intent
from provision.targets.vertex_job.resource_names import RUN_LABEL, SPEC_LABEL, TARGET_LABEL
from provision.targets.workbench.resource_names import LINEAGE_LABEL, MANAGED_LABEL


def list_orphan_jobs(ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader) -> OrphanList | None:
    """Return the running jobs with our labels that none of the ledgers records or began.

    They are searched in the projects and regions that specs, states and journals name. Returns
    None without one.
    """
    known: set[tuple[str, str]] = set()
    places: dict[tuple[str, str], None] = {}
    for spec, ledger in ledgers:
        for job in _recorded_jobs(ledger):
            if not job.ended:
                known.add((job.nonce, job.lineage))
            places[job.project, job.region] = None
        for target in spec.targets.values():
            if isinstance(target, VertexJobTarget):
                places |= dict.fromkeys((target.project, region) for region in target.regions)
        for key, document in ledger.state.resources.items():
            if key.endswith(f"#{ProgramsRecord.part}"):
                programs = ProgramsRecord.from_json(document)
                places |= dict.fromkeys((programs.project, region) for region in programs.regions)
    if not places:
        return None
    orphans: list[Orphan] = []
    failed: dict[str, ProvisionError] = {}
    for project, region in places:
        try:
            jobs = reader.cloud().jobs(project, region, f"{MANAGED_LABEL}=1")
        except ProvisionError as error:
            failed[project] = error
            continue
        for found in jobs:
            labels = found.get("labels", {})
            identity = (str(labels.get(RUN_LABEL, "")), str(labels.get(LINEAGE_LABEL, "")))
            if state_of(found) not in ENDED and identity not in known:
                orphans.append(_to_orphan(found))
    return OrphanList(tuple(orphans), failed)


def _recorded_jobs(ledger: Ledger) -> Iterator[JobRecord]:
    for key, document in ledger.state.resources.items():
        if key.endswith(f"#{JobRecord.part}"):
            yield JobRecord.from_json(document)
    for intent in ledger.intents:
        if intent.part == JobRecord.part:
            yield read_job_intent(intent)


def _to_orphan(job: Mapping[str, Any]) -> Orphan:
    labels, name = job.get("labels", {}), str(job["name"])
    _, project, _, region, _, short_name = name.split("/")
    cancel = f"gcloud ai custom-jobs cancel {short_name} --project={project} --region={region}"
    spec, target = (str(labels.get(key, "")) for key in (SPEC_LABEL, TARGET_LABEL))
    return Orphan(name, state_of(job), str(job.get("createTime", "")), spec, target, cancel)
