"""Verification of a target: a custom job runs the probe on all machines, region after region."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from provision.adapters.google.custom_jobs import JobUnplaced
from provision.adapters.google.report_polling import ReportTimeout, ReportUnavailable
from provision.effects.google import UploadObjects
from provision.effects.local import MakeFolder, RemoveTree
from provision.effects.vertex import AwaitJob, StartJob
from provision.errors import ExternalError, ProvisionError, Refused
from provision.field_types import parse_duration
from provision.plan import Action, Operation
from provision.state import State, to_folder_name
from provision.targets.base import AnyDriver, Journal, Pending, ProbeEvidence, VerifyOptions
from provision.targets.context import TargetContext
from provision.targets.device_runs import describe_running, find_unreported
from provision.targets.vertex_job.agent_config import build_job_config, list_objects
from provision.targets.vertex_job.job_body import build_job_body
from provision.targets.vertex_job.observation import (
    JobObservation,
    compute_declared_digest,
    observe_job,
)
from provision.targets.vertex_job.planning import cancel_job
from provision.targets.vertex_job.records import (
    JobRecord,
    build_job_intent,
    read_job_intent,
)
from provision.targets.vertex_job.resource_names import (
    get_job_target,
    list_replicas,
    region_name,
)
from provision.verification.report import MAX_REPORT_BYTES, read_report

_PENDING_S = 45 * 60
"""Seconds that a job may have no machines: a stockout shows after about 20 minutes. Our choice."""


class NoRegionLeft(ExternalError):
    """No region took the job."""

    exit_code = 2


def find_unreported_job(context: TargetContext, state: State) -> JobRecord | None:
    """Return the recorded job if it may still run; None if it has ended or reported."""
    return find_unreported(JobRecord.find(state, context.address), context, state)


def reason_for_new_job(context: TargetContext, state: State) -> str:
    """Return why the recorded job does not count; "" when it does."""
    record = JobRecord.find(state, context.address)
    if record is None:
        return "its job has not run yet"
    if record.ended:
        return "its last job did not verify it"
    if record.declared != compute_declared_digest(context):
        return "the job or environment has changed since its last run"
    return ""


def verify_by_job(
    driver: AnyDriver, context: TargetContext, journal: Journal, options: VerifyOptions
) -> ProbeEvidence | Pending:
    """Run a job unless one that counts has no report yet, and wait for its reports.

    An interrupted command cancels the job and waits for its end; a detached one leaves it.
    """
    record = find_unreported_job(context, journal.state)
    try:
        if options.rerun or record is None or reason_for_new_job(context, journal.state):
            _start(driver, context, journal, ())
        if options.detach:
            return Pending()
        return await_job_reports(driver, context, journal)
    except Exception:
        raise
    except BaseException as interruption:
        _cancel_interrupted(driver, context, journal, interruption)
        raise


def await_job_reports(driver: AnyDriver, context: TargetContext, journal: Journal) -> ProbeEvidence:
    """Wait for the reports of the recorded job; without machines, the next region is tried."""
    while True:
        record = find_unreported_job(context, journal.state)
        if record is None:
            raise Refused(
                f"no running job is recorded for {context.address}",
                hint=f"start it with `{context.command('apply')}`",
            )
        try:
            return _await(context, journal, record)
        except JobUnplaced as error:
            reason = f"{record.region}: {error.what}"
            journal.progress(reason)
            _end(driver, context, journal, record, error.why or error.what)
            _start(driver, context, journal, (*record.attempts, reason))
        except ReportTimeout as error:
            _end(driver, context, journal, record, error.why)
            raise
        except ReportUnavailable as error:
            _record_end(driver, context, journal, record, error.why or error.what)
            raise


def _await(context: TargetContext, journal: Journal, record: JobRecord) -> ProbeEvidence:
    system, folder, target = journal.system, context.reports_folder, get_job_target(context)
    system.perform(MakeFolder(folder, 0o700), journal.progress)
    path = folder / "report.json"
    replicas = list_replicas(record.replicas)
    for old in (path, *(folder / f"{name}.json" for name in replicas)):
        system.perform(RemoveTree(old), journal.progress)
    pending_s = _PENDING_S
    if target.capacity.flex_start is not None:
        pending_s += parse_duration(target.capacity.flex_start)
    limit_s = pending_s + parse_duration(target.max_duration)
    request = AwaitJob(
        *(record.parent, record.nonce, record.folder, replicas, folder, limit_s, pending_s)
    )
    system.perform(request, journal.progress)
    try:
        content = system.read(path, MAX_REPORT_BYTES)
        report = read_report(content, str(path), nonce=record.nonce)
    except ExternalError as error:
        raise ReportUnavailable(error.what, why=error.why, hint=error.hint) from error
    return ProbeEvidence(report, path, nonce=record.nonce, installed=True)


def _start(
    driver: AnyDriver,
    context: TargetContext,
    journal: Journal,
    attempts: tuple[str, ...],
) -> None:
    """Create a job in the first region that was not tried and takes it; an earlier job ends first.

    Raises:
        NoRegionLeft: none takes it.
    """
    observed = observe_job(context, journal.ledger, journal.system)
    earlier = find_unreported_job(context, journal.state)
    if earlier is not None:
        _end(driver, context, journal, earlier, "a new job was requested")
    tried, last = {attempt.partition(":")[0] for attempt in attempts}, None
    for region in observed.names.regions:
        if region in tried:
            continue
        try:
            journal.perform(driver, _plan_job(context, journal, observed, region, attempts))
        except JobUnplaced as error:
            attempts = (*attempts, f"{region}: {error.what}")
            journal.progress(attempts[-1])
            last = error
        else:
            return
    hint = "list more regions, or use `capacity: {flex_start: 6h}` or a reservation"
    why = "\n".join(attempts)
    if last is not None and len(attempts) == 1:
        hint, why = last.hint, f"{why}\n{last.why}"
    raise NoRegionLeft("no region took the job", why=why, hint=hint)


def _plan_job(
    context: TargetContext,
    journal: Journal,
    observed: JobObservation,
    region: str,
    attempts: tuple[str, ...],
) -> Action:
    """Return the action that starts a job under a fresh nonce."""
    names, nonce = observed.names, journal.system.token()
    programs, folder = dict(observed.programs), names.run_folder(region, nonce)
    document = build_job_config(context, names, region, nonce, programs)
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
    record = JobRecord(
        f"custom job {nonce[:8]} in {region}",
        names.project,
        region,
        names.lineage,
        folder,
        nonce,
        compute_declared_digest(context),
        get_job_target(context).replicas,
        attempts=attempts,
        paths=(f"reports/{to_folder_name(context.address)}",),
    )
    objects = (*list_objects(names.folders[region], programs), (document_uri, document))
    body = build_job_body(context, names, observed.job_spec, nonce, run)
    parent = region_name(names.project, region)
    intent = build_job_intent(context.address, record)
    return Action(
        Operation.CREATE,
        context.address,
        record.part,
        record.title,
        "it verifies the target" if not attempts else "the region before had no place for it",
        (UploadObjects(objects), StartJob(parent, body, nonce)),
        record.to_json(),
        intent=intent,
        settles=intent.names,
    )


def _end(
    driver: AnyDriver, context: TargetContext, journal: Journal, record: JobRecord, reason: str
) -> None:
    """Cancel a job, wait until it has ended, and record why."""
    _record_end(driver, context, journal, record, reason, cancel=True)


def _record_end(
    driver: AnyDriver,
    context: TargetContext,
    journal: Journal,
    record: JobRecord,
    reason: str,
    *,
    cancel: bool = False,
) -> None:
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


def _cancel_interrupted(
    driver: AnyDriver, context: TargetContext, journal: Journal, interruption: BaseException
) -> None:
    """Cancel the recorded job, and one that was being created.

    Its intent stays open: a job that appears later is found by the next command.
    """
    record = find_unreported_job(context, journal.state)
    begun = [
        read_job_intent(intent)
        for intent in journal.ledger.find_all_interrupted(context.address)
        if intent.part == JobRecord.part
    ]
    try:
        for job in begun:
            journal.system.perform(cancel_job(job), journal.progress)
        if record is not None:
            _end(driver, context, journal, record, "interrupted")
    except ProvisionError as error:
        left = record or begun[0]
        interruption.add_note(f"{error.what}\n{describe_job(context, left)}")
    else:
        if record is not None or begun:
            interruption.add_note("the custom job was cancelled")


def describe_job(context: TargetContext, record: JobRecord) -> str:
    """Return the notice about a job that may still run."""
    return describe_running(context, f"{record.title} may still be running")
