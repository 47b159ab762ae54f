"""Records of a job target in state and journal: its programs in the bucket, and its last job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from provision.plan import Intent, Operation
from provision.state import Record


@dataclass(frozen=True, slots=True)
class ProgramsRecord(Record):
    """The programs that the replicas of a job start from.

    Attributes:
        folder: gs:// address of all objects of the target, with a slash at its end.
        folders: That of each region.
        digest: Digest of the programs.
    """

    part: ClassVar[str] = "job-programs"

    title: str
    project: str
    regions: tuple[str, ...]
    lineage: str
    folders: tuple[str, ...]
    digest: str
    kind: str = "vertex-job"


@dataclass(frozen=True, slots=True)
class JobRecord(Record):
    """A custom job, the last run of a target.

    Attributes:
        folder: gs:// address of the objects of the run, with a slash at its end.
        nonce: The request that its reports answer, and the label by which it is found.
        declared: Digest of what the run is about.
        replicas: Number of its machines.
        attempts: Regions that were tried before, each with the reason, as "REGION: REASON".
        ended: Why it ended without a report; "" if it has one or still runs.
        is_moving: It was ended for the next region, whose job does not exist yet.
        paths: The folder of its reports, relative to the state folder.
    """

    part: ClassVar[str] = "custom-job"

    title: str
    project: str
    region: str
    lineage: str
    folder: str
    nonce: str
    declared: str
    replicas: int
    kind: str = "vertex-job"
    attempts: tuple[str, ...] = ()
    ended: str = ""
    paths: tuple[str, ...] = ()
    is_moving: bool = False

    @property
    def parent(self) -> str:
        """The full name of the job's region."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def identity(self) -> str:
        """The job's name in an intent: the service chooses the real one."""
        return f"//aiplatform.googleapis.com/{self.parent}/customJobs/{self.nonce}"


@dataclass(frozen=True, slots=True)
class ProgramRecord(JobRecord):
    """The last job that runs a program of the user.

    Attributes:
        run: File name of the record of what it uses; "" for none.
    """

    part: ClassVar[str] = "program-job"

    run: str = ""


JOB_RECORDS: Mapping[str, type[JobRecord]] = {
    record.part: record for record in (JobRecord, ProgramRecord)
}
"""The records of jobs, by their part."""
_FOUND_BY = ("title", "project", "region", "lineage", "folder", "nonce", "declared")


def build_job_intent(address: str, record: JobRecord) -> Intent:
    """Return the journal entry of a job's creation."""
    details = {key: str(getattr(record, key)) for key in (*_FOUND_BY, "replicas")}
    names = (record.identity,)
    return Intent(address, record.part, str(Operation.CREATE), names=names, details=details)


def read_job_intent(intent: Intent, paths: tuple[str, ...] = ()) -> JobRecord:
    """Return the record of a job whose creation was begun."""
    kind = JOB_RECORDS[intent.part]
    values: Mapping[str, Any] = {key: intent.details.get(key, "") for key in _FOUND_BY}
    count = intent.details.get("replicas", "")
    return kind(**values, replicas=int(count) if count.isdecimal() else 1, paths=paths)
