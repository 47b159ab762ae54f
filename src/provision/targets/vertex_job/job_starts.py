"""Starts the jobs of a target, region after region, and ends them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from provision.adapters.google.custom_jobs import JobInternalError, JobUnplaced
from provision.effects.google import UploadObjects
from provision.effects.vertex import StartJob
from provision.errors import ExternalError
from provision.field_types import parse_duration
from provision.plan import Action, Operation
from provision.state import to_folder_name
from provision.targets.base import AnyDriver, Journal
from provision.targets.context import TargetContext
from provision.targets.vertex_job.agent_config import build_job_config, list_objects
from provision.targets.vertex_job.job_body import build_job_body, repeat_lost_machines
from provision.targets.vertex_job.observation import (
    JobObservation,
    compute_declared_digest,
    observe_job,
)
from provision.targets.vertex_job.planning import cancel_job
from provision.targets.vertex_job.records import JobRecord, ProgramRecord, build_job_intent
from provision.targets.vertex_job.resource_names import get_job_target, region_name

_PENDING_S = 45 * 60
"""Seconds that a job may have no machines: a stockout shows after about 20 minutes. Our choice."""

_INTERNAL = "internal error in Vertex AI"


class NoRegionLeft(ExternalError):
    """No region took the job."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The purpose of a job: a verification, or the user's program.

    Attributes:
        reason: Why it is created.
        program: The program as the job's document has it; None for a verification.
        run: File name of the record of what the program uses; "" for none.
    """

    reason: str
    program: Mapping[str, Any] | None = None
    run: str = ""


def read_limits(context: TargetContext) -> tuple[int, int]:
    """Return how many seconds a whole job may take, and how many of them without its machines."""
    target, pending_s = get_job_target(context), _PENDING_S
    if target.capacity.flex_start is not None:
        pending_s += parse_duration(target.capacity.flex_start)
    return pending_s + parse_duration(target.max_duration), pending_s


def start_job(
    driver: AnyDriver,
    context: TargetContext,
    journal: Journal,
    request: JobRequest,
    attempts: tuple[str, ...] = (),
) -> None:
    """Create a job in the first region that was not tried and takes it.

    Raises:
        NoRegionLeft: none takes it.
    """
    observed = observe_job(context, journal.ledger, journal.system)
    last = None
    for region in _list_regions(observed.names.regions, attempts):
        if region in observed.short_quotas:
            attempts = (*attempts, f"{region}: {observed.short_quotas[region]}")
            journal.progress(attempts[-1])
            continue
        try:
            action = _plan_job(context, journal, observed, region, request, attempts)
            journal.perform(driver, action)
        except JobUnplaced as error:
            attempts = (*attempts, f"{region}: {error.what}")
            journal.progress(attempts[-1])
            last = error
        else:
            return
    kind = JobRecord if request.program is None else ProgramRecord
    stored = kind.find(journal.state, context.address)
    if stored is not None and stored.is_moving:  # the next command begins with the first region
        ended = replace(stored, is_moving=False)
        journal.record(context.address, stored.part, ended.to_json())
    hint = "list more regions, or use `capacity: {flex_start: 6h}` or a reservation"
    why = "\n".join(attempts)
    if last is not None and len(attempts) == 1:
        hint, why = last.hint, f"{why}\n{last.why}"
    raise NoRegionLeft("no region accepted the job", why=why, hint=hint)


def _list_regions(regions: tuple[str, ...], attempts: tuple[str, ...]) -> list[str]:
    """Return the regions that were not tried; after an internal error, else the same one again."""
    tried = [attempt.partition(":")[0] for attempt in attempts]
    untried = [region for region in regions if region not in tried]
    if not untried and attempts and attempts[-1].endswith(f": {_INTERNAL}"):
        return tried[-1:]
    return untried


def move_job(
    driver: AnyDriver,
    context: TargetContext,
    journal: Journal,
    record: JobRecord,
    error: JobUnplaced,
    request: JobRequest,
) -> None:
    """End a job that its region does not run, and start it in the next one.

    Raises:
        NoRegionLeft: no region takes it, or it ended with an internal error before.
    """
    is_internal = isinstance(error, JobInternalError)
    what = _INTERNAL if is_internal else error.what
    reason = f"{record.region}: {what}"
    journal.progress(reason)
    attempts = (*record.attempts, reason)
    if is_internal and any(attempt.endswith(f": {_INTERNAL}") for attempt in record.attempts):
        record_end(driver, context, journal, record, error.why or error.what)
        raise NoRegionLeft(
            "the job failed twice with an internal error in Vertex AI",
            why="\n".join(attempts),
            hint=error.hint,
        )
    moving = replace(record, attempts=attempts, is_moving=True)
    end_job(driver, context, journal, moving, error.why or error.what)
    start_job(driver, context, journal, request, attempts)


def find_attempts(journal: Journal, record: JobRecord | None) -> tuple[str, ...]:
    """Return the regions that a command tried that was interrupted on its way to the next one."""
    if record is None or not record.is_moving:
        return ()
    for attempt in record.attempts:
        journal.progress(f"{attempt} (tried by an interrupted command)")
    return record.attempts


def _plan_job(
    context: TargetContext,
    journal: Journal,
    observed: JobObservation,
    region: str,
    request: JobRequest,
    attempts: tuple[str, ...],
) -> Action:
    """Return the action that starts a job under a fresh nonce."""
    names, nonce = observed.names, journal.system.token()
    programs, folder = dict(observed.programs), names.run_folder(region, nonce)
    document = build_job_config(context, names, region, nonce, programs, request.program)
    document_uri = f"{folder}document.json"
    run = {
        "device.pyz": {
            "uri": f"{names.folders[region]}programs/{programs['device'].file}",
            "sha256": programs["device"].sha256,
        },
        "document.json": {
            "uri": document_uri,
            "sha256": hashlib.sha256(document).hexdigest(),
        },
    }
    title = f"custom job {nonce[:8]} in {region}"
    values = (
        title,
        names.project,
        region,
        names.lineage,
        folder,
        nonce,
        compute_declared_digest(context),
        get_job_target(context).replicas,
    )
    paths = (f"reports/{to_folder_name(context.address)}",)
    record = JobRecord(*values, attempts=attempts, paths=paths)
    if request.program is not None:
        record = ProgramRecord(*values, attempts=attempts, paths=paths, run=request.run)
    objects = (*list_objects(names.folders[region], programs), (document_uri, document))
    job_spec = observed.job_spec
    if request.program is not None and request.program["restarts"]:
        job_spec = repeat_lost_machines(job_spec)
    body = build_job_body(context, names, job_spec, nonce, run)
    parent = region_name(names.project, region)
    intent = build_job_intent(context.address, record)
    return Action(
        Operation.CREATE,
        context.address,
        record.part,
        record.title,
        request.reason if not attempts else f"the last attempt failed: {attempts[-1]}",
        (UploadObjects(objects), StartJob(parent, body, nonce)),
        record.to_json(),
        intent=intent,
        settles=intent.names,
    )


def end_job(
    driver: AnyDriver, context: TargetContext, journal: Journal, record: JobRecord, reason: str
) -> None:
    """Cancel a job, wait until it has ended, and record why."""
    record_end(driver, context, journal, record, reason, cancel=True)


def record_end(
    driver: AnyDriver,
    context: TargetContext,
    journal: Journal,
    record: JobRecord,
    reason: str,
    *,
    cancel: bool = False,
) -> None:
    """Record why a job has ended."""
    ended = replace(record, ended=reason.partition("\n")[0] or "it ended")
    action = Action(
        Operation.CHANGE,
        context.address,
        record.part,
        record.title,
        "the job has ended",
        (cancel_job(record),) if cancel else (),
        ended.to_json(),
    )
    journal.perform(driver, action, announce=False)
