"""Performs the effects on Vertex AI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provision.adapters import files
from provision.adapters.google.client import GoogleClient
from provision.adapters.google.custom_jobs import cancel_job, is_listed, start_job
from provision.adapters.google.errors import CloudError, fatal_error
from provision.adapters.google.execution_polling import await_execution
from provision.adapters.google.job_polling import await_job
from provision.adapters.google.program_polling import follow_program
from provision.adapters.google.report_polling import PollingClock
from provision.adapters.google.vertex import VertexApi
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback
from provision.effects.vertex import (
    AwaitExecution,
    AwaitJob,
    CancelJob,
    CreateTemplate,
    DeleteExecution,
    DeleteTemplate,
    FollowProgram,
    SettleJob,
    StartExecution,
    StartJob,
    UpdateTemplate,
)

_LINEAGE_LABEL = "provision-lineage"


def perform(
    effect: ServiceEffect, client: GoogleClient, clock: PollingClock, progress: ProgressCallback
) -> None:
    """Perform one effect. May block for hours.

    Raises:
        CloudError: Google Cloud refused a call or cannot be reached.
        ReportUnavailable: no acceptable report came.
    """
    vertex = client.vertex
    match effect:
        case CreateTemplate():
            _create_template(effect, vertex, progress)
        case UpdateTemplate(name, body, mask):
            progress(f"update: {mask}")
            vertex.update(name, body, mask)
        case StartExecution():
            _start_execution(effect, vertex, progress)
        case AwaitExecution():
            report = await_execution(effect, client, clock, progress)
            files.write(effect.report, report, 0o600)
        case StartJob():
            start_job(effect, client, progress)
        case SettleJob(name, nonce):
            progress("looking for the job of an interrupted command")
            is_listed(name, nonce, client)
        case AwaitJob():
            await_job(effect, client, clock, progress)
        case FollowProgram():
            follow_program(effect, client, clock, progress)
        case CancelJob():
            cancel_job(effect, client, progress)
        case DeleteTemplate(name, lineage):
            _delete_own(name, lineage, vertex.get(name), vertex, progress)
        case DeleteExecution(name, lineage):
            _delete_own(name, lineage, vertex.get(name), vertex, progress)
        case _:
            raise AssertionError(f"internal error: unexpected effect for Vertex AI: {effect!r}")


def _create_template(effect: CreateTemplate, vertex: VertexApi, progress: ProgressCallback) -> None:
    """Create a template; a repeated request finds the one that the first request created."""
    progress(f"request: {effect.name.rpartition('/')[2]}")
    try:
        vertex.create(effect.name, effect.body, progress)
    except CloudError as error:
        if error.failure.kind != "exists":
            raise
        template = vertex.get(effect.name) or {}
        lineage = template.get("labels", {}).get(_LINEAGE_LABEL)
        if not lineage or lineage != effect.body["labels"][_LINEAGE_LABEL]:
            raise fatal_error(
                "foreign",
                "a runtime template with this name exists, but it does not belong to this target",
                f"{effect.name} does not have the label of this state",
                "rename the spec file or the target, or delete the template yourself",
            ) from error


def _start_execution(effect: StartExecution, vertex: VertexApi, progress: ProgressCallback) -> None:
    progress(f"request: execution job {effect.name.rpartition('/')[2]}")
    try:
        vertex.create(effect.name, effect.body, progress)
    except CloudError as error:
        # Its name has the nonce of the run: only this run can have requested it.
        if error.failure.kind != "exists":
            if vertex.get(effect.name) is None:
                error.still_running = ()
            raise


def _delete_own(
    name: str,
    lineage: str,
    resource: Mapping[str, Any] | None,
    vertex: VertexApi,
    progress: ProgressCallback,
) -> None:
    """Delete a resource if it exists and has the label of a state."""
    if resource is not None and resource.get("labels", {}).get(_LINEAGE_LABEL) == lineage:
        progress(f"delete: {name.rpartition('/')[2]}")
        vertex.delete(name, progress)
