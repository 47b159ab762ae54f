"""The effects on Vertex AI.

A `name` is projects/PROJECT/locations/REGION/notebookRuntimeTemplates/TEMPLATE, or one of
notebookExecutionJobs; a body is the REST JSON of aiplatform v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from provision.effects.google import GoogleEffect


@dataclass(frozen=True, slots=True)
class VertexEffect(GoogleEffect):
    """A change at Vertex AI."""

    service: ClassVar[str] = "provision.adapters.services:perform_on_vertex"

    name: str


@dataclass(frozen=True, slots=True)
class CreateTemplate(VertexEffect):
    """Create a runtime template; one with this name and the same lineage counts as created.

    A template costs nothing; the runtimes that are made from it do.
    """

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UpdateTemplate(VertexEffect):
    """Change the fields of a runtime template that `mask` lists, joined by commas."""

    body: Mapping[str, Any]
    mask: str


@dataclass(frozen=True, slots=True)
class DeleteTemplate(VertexEffect):
    """Delete a runtime template.

    One without the label of `lineage` belongs to another state and is left alone.
    """

    lineage: str


@dataclass(frozen=True, slots=True)
class StartExecution(VertexEffect):
    """Run a notebook as an execution job; a job with this name counts as started."""

    is_billable: ClassVar[bool] = True

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AwaitExecution(VertexEffect):
    """Wait for the end of an execution job, and write its report to `report`.

    A report is accepted if it has the `nonce`, and the sha256 in the status next to it. Both are
    objects in `folder` (gs://BUCKET/.../), where the notebook writes them. `subject` is what is not
    verified without one, `timeout_hint` the advice for a job that takes too long.
    """

    folder: str
    nonce: str
    report: Path
    timeout_s: int
    subject: str = "the template"
    timeout_hint: str = "increase max_duration, or use a larger machine"


@dataclass(frozen=True, slots=True)
class DeleteExecution(VertexEffect):
    """Delete an execution job, which ends it; one of another `lineage` is left alone."""

    lineage: str


@dataclass(frozen=True, slots=True)
class StartJob(VertexEffect):
    """Create a custom job, which runs at once, in the region `name` (projects/P/locations/REGION).

    The service knows no id by which a repeated call is recognized. The label `provision-run` with
    the `nonce` is: a doubtful answer is settled by listing it before another job is created.
    """

    is_billable: ClassVar[bool] = True

    body: Mapping[str, Any]
    nonce: str


@dataclass(frozen=True, slots=True)
class SettleJob(VertexEffect):
    """Wait until the custom job with a `nonce` is listed, or would have been.

    The command that requested it was interrupted before the response came.
    """

    nonce: str


@dataclass(frozen=True, slots=True)
class AwaitJob(VertexEffect):
    """Wait for the end of the custom job with a `nonce` in the region `name`.

    The reports of all `replicas` are written to the folder `reports` as REPLICA.json, and the one
    that decides to report.json. They are accepted if the job's index lists them with their sha256,
    and if each has the nonce. `folder` is a gs:// address with a slash at its end. `timeout_s`
    limits the whole wait, `pending_s` the part of it before the machines run.
    """

    nonce: str
    folder: str
    replicas: tuple[str, ...]
    reports: Path
    timeout_s: int
    pending_s: int


@dataclass(frozen=True, slots=True)
class FollowProgram(VertexEffect):
    """Show the output of the program of a custom job until the job ends.

    The job is the one with the `nonce` in the region `name`. Progress receives the output of the
    replicas in `shown`. The records of what the program used are written to `files` as
    REPLICA.json, and the end as end.json. With `is_repeated`, the service starts lost
    machines of the job again. The other fields are those of `AwaitJob`.
    """

    nonce: str
    folder: str
    replicas: tuple[str, ...]
    shown: tuple[str, ...]
    files: Path
    timeout_s: int
    pending_s: int
    is_repeated: bool


@dataclass(frozen=True, slots=True)
class CancelJob(VertexEffect):
    """Cancel the custom job with a `nonce` in the region `name`, and wait until it has ended.

    A job that has ended is left as the service's record; one of another `lineage` is left alone.
    """

    nonce: str
    lineage: str
