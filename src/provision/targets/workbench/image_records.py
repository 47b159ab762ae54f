"""Records of the execution job that verifies the image of an instance, and its deletion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from provision.effects.google import DeleteObjects
from provision.effects.system import Effect
from provision.effects.vertex import DeleteExecution
from provision.errors import Refused
from provision.plan import Action, Intent, Operation
from provision.state import FOREIGN_RECORD_HINT, Ledger
from provision.targets.base import Journal
from provision.targets.execution_jobs import ExecutionRecord, journal_name
from provision.targets.stored_verdict import ImageVerificationRecord
from provision.targets.workbench.resource_names import LINEAGE_LABEL


@dataclass(frozen=True, slots=True)
class ImageJobRecord(ExecutionRecord):
    """An execution job on the image of an instance; dropped once it is deleted with its objects."""

    part: ClassVar[str] = "image-job"

    kind: str = "workbench"

    def as_ended(self, reason: str) -> Self:
        """Return the record once the job is deleted; its objects are kept."""
        return replace(self, ended=reason)


def is_image_part(part: str) -> bool:
    """Return whether a part is about the image of an instance, not about the instance."""
    return part in (ImageJobRecord.part, ImageVerificationRecord.part)


def without_image_jobs(ledger: Ledger) -> Ledger:
    """Return the ledger as the instance sees it: without the intents of jobs on its image."""
    intents = tuple(intent for intent in ledger.intents if not is_image_part(intent.part))
    return replace(ledger, intents=intents)


def build_job_intent(address: str, job: ImageJobRecord) -> Intent:
    """Return the journal entry of the start of a job."""
    details = {key: str(value) for key, value in replace(job, paths=()).to_json().items()}
    names = (journal_name(job.resource_name),)
    return Intent(address, job.part, str(Operation.CREATE), names=names, details=details)


def find_recorded_job(address: str, ledger: Ledger) -> ImageJobRecord | None:
    """Return the job that the state records, or that an interrupted run may have started."""
    for intent in reversed(ledger.find_all_interrupted(address)):
        if intent.part == ImageJobRecord.part:
            return ImageJobRecord.from_json(intent.details)
    return ImageJobRecord.find(ledger.state, address)


def list_recorded_jobs(ledger: Ledger) -> Iterator[ImageJobRecord]:
    """Yield the jobs of all addresses that are recorded or may have been started."""
    for key, document in ledger.state.resources.items():
        if key.endswith(f"#{ImageJobRecord.part}"):
            yield ImageJobRecord.from_json(document)
    for intent in ledger.intents:
        if intent.part == ImageJobRecord.part:
            yield ImageJobRecord.from_json(intent.details)


def recover_image_job(intent: Intent, journal: Journal) -> None:
    """Record the job that an interrupted run started, if it exists; `orphans` lists a later one."""
    record = ImageJobRecord.from_json(intent.details)
    job = journal.system.cloud().execution(record.resource_name) or {}
    if job.get("labels", {}).get(LINEAGE_LABEL) == record.lineage:
        journal.record(intent.address, intent.part, record.to_json())
    journal.close_intent(intent)


def plan_job_deletion(job: ImageJobRecord) -> tuple[Effect, ...]:
    """Return the effects that end a job, and delete the objects of its run.

    Raises:
        Refused: the record names a job or a folder that provision would not create.
    """
    own_folder = rf"gs://.+/provision-[^/]+/{re.escape(job.lineage)}/{re.escape(job.nonce)}/"
    is_own = job.lineage and job.nonce and job.job.startswith("provision-")
    if not is_own or not re.fullmatch(own_folder, job.folder):
        raise Refused(
            f"refusing to delete {job.job or 'the execution job'}",
            why="the state lists a job or a folder that `provision` could not have created",
            hint=FOREIGN_RECORD_HINT,
        )
    return DeleteExecution(job.resource_name, job.lineage), DeleteObjects(job.folder)


def plan_job_removals(address: str, ledger: Ledger) -> Iterator[Action]:
    """Yield the removal of the jobs that are recorded or may have been started at an address."""
    recorded = ImageJobRecord.find(ledger.state, address)
    names = set[str]()
    if recorded is not None:
        names.add(recorded.resource_name)
        yield remove_job(address, recorded, "destroy was requested")
    for intent in ledger.find_all_interrupted(address):
        if intent.part != ImageJobRecord.part:
            continue
        job = ImageJobRecord.from_json(intent.details)
        if job.resource_name not in names:
            yield remove_job(address, job, "an interrupted run may have left it behind")


def remove_job(address: str, job: ImageJobRecord, reason: str) -> Action:
    """Return the action that deletes a job and its objects."""
    effects = plan_job_deletion(job)
    return Action(Operation.DESTROY, address, job.part, job.title, reason, effects)


def describe_running_job(address: str, ledger: Ledger) -> str:
    """Return which job may still run; "" for none."""
    job = find_recorded_job(address, ledger)
    if job is None or job.ended:
        return ""
    return f"{job.title} may still be running in {job.region} and costing money"
