"""Notebook execution jobs of Vertex AI: their record, their names, and whether they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from provision.state import Record
from provision.targets.capabilities import Orphan

_RUNNING = ("QUEUED", "PENDING", "RUNNING", "CANCELLING", "UPDATING")


@dataclass(frozen=True, slots=True)
class ExecutionRecord(Record):
    """An execution job, the last run of a target's notebook.

    Attributes:
        folder: gs:// address of the objects of the run, with a slash at its end.
        nonce: The request that its report answers.
        declared: Digest of what the run is about.
        ended: Why it ended without a report; "" if it has one or still runs.
        paths: The folder of its report, relative to the state folder.
    """

    part: ClassVar[str] = "execution"

    title: str
    project: str
    region: str
    job: str
    lineage: str
    folder: str
    nonce: str
    declared: str
    kind: str = "colab-enterprise"
    ended: str = ""
    paths: tuple[str, ...] = ()

    @property
    def resource_name(self) -> str:
        """The full name of the job."""
        parent = f"projects/{self.project}/locations/{self.region}"
        return f"{parent}/notebookExecutionJobs/{self.job}"


def to_job_name(nonce: str) -> str:
    """Return the short name of the job of a run: only this run can have requested it."""
    return f"provision-{nonce[:32]}"


def journal_name(resource_name: str) -> str:
    """Return the name of a resource in an intent: Google's full resource name.

    Names that begin with projects/ are those of Workbench, which is searched in their projects.
    """
    return f"//aiplatform.googleapis.com/{resource_name}"


def is_running(job: Mapping[str, Any]) -> bool:
    """Return whether a job runs or will run, and costs money."""
    return str(job.get("jobState", "")).removeprefix("JOB_STATE_") in _RUNNING


def has_template(job: Mapping[str, Any]) -> bool:
    """Return whether a job runs on the machine of a template; others have their own."""
    return "notebookRuntimeTemplateResourceName" in job


def to_orphan_job(job: Mapping[str, Any]) -> Orphan:
    """Return a labelled job that no state tracks, with the command that deletes it."""
    labels, name = job.get("labels", {}), str(job["name"])
    _, project, _, region, _, short_name = name.split("/")
    product = "colab" if has_template(job) else "workbench"
    delete = f"gcloud {product} executions delete {short_name} --project={project}"
    spec, target = (str(labels.get(f"provision-{key}", "")) for key in ("spec", "target"))
    created, state = str(job.get("createTime", "")), str(job.get("jobState", ""))
    return Orphan(name, state, created, spec, target, f"{delete} --region={region}")
