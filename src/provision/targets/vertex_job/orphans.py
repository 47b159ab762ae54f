"""Orphans: running custom jobs with our labels that no state tracks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provision.adapters.google.custom_jobs import ENDED, state_of
from provision.effects.system import Reader
from provision.kinds import VertexJobTarget
from provision.spec import Spec
from provision.state import Ledger
from provision.targets.capabilities import Orphan, OrphanList
from provision.targets.orphan_search import collect_orphans
from provision.targets.vertex_job.records import (
    JOB_RECORDS,
    JobRecord,
    ProgramsRecord,
    read_job_intent,
)
from provision.targets.vertex_job.resource_names import RUN_LABEL
from provision.targets.workbench.resource_names import (
    LINEAGE_LABEL,
    MANAGED_LABEL,
    SPEC_LABEL,
    TARGET_LABEL,
)


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

    def list_orphans(project: str, region: str) -> list[Orphan]:
        jobs = reader.cloud().jobs(project, region, f"{MANAGED_LABEL}=1")
        return [_to_orphan(job) for job in jobs if _is_orphan(job, known)]

    return collect_orphans(places, list_orphans)


def _is_orphan(job: Mapping[str, Any], known: set[tuple[str, str]]) -> bool:
    labels = job.get("labels", {})
    identity = (str(labels.get(RUN_LABEL, "")), str(labels.get(LINEAGE_LABEL, "")))
    return state_of(job) not in ENDED and identity not in known


def _recorded_jobs(ledger: Ledger) -> Iterator[JobRecord]:
    for key, document in ledger.state.resources.items():
        kind = JOB_RECORDS.get(key.rpartition("#")[2])
        if kind is not None:
            yield kind.from_json(document)
    for intent in ledger.intents:
        if intent.part in JOB_RECORDS:
            yield read_job_intent(intent)


def _to_orphan(job: Mapping[str, Any]) -> Orphan:
    labels, name = job.get("labels", {}), str(job["name"])
    _, project, _, region, _, short_name = name.split("/")
    cancel = f"gcloud ai custom-jobs cancel {short_name} --project={project} --region={region}"
    spec, target = (str(labels.get(key, "")) for key in (SPEC_LABEL, TARGET_LABEL))
    return Orphan(name, state_of(job), str(job.get("createTime", "")), spec, target, cancel)
