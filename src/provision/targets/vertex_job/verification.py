"""Verification of a target: a custom job runs the probe on all machines, region after region."""

from __future__ import annotations

from provision.adapters.google.custom_jobs import JobUnplaced
from provision.adapters.google.report_polling import ReportTimeout, ReportUnavailable
from provision.effects.local import MakeFolder, RemoveTree
from provision.effects.vertex import AwaitJob
from provision.errors import ExternalError, ProvisionError, Refused
from provision.state import State
from provision.targets.base import AnyDriver, Journal, Pending, ProbeEvidence, VerifyOptions
from provision.targets.context import TargetContext
from provision.targets.device_runs import describe_running, find_unreported
from provision.targets.vertex_job.job_starts import (
    JobRequest,
    end_job,
    find_attempts,
    move_job,
    read_limits,
    record_end,
    start_job,
)
from provision.targets.vertex_job.observation import (
    compute_declared_digest,
)
from provision.targets.vertex_job.planning import cancel_job
from provision.targets.vertex_job.records import (
    JobRecord,
    read_job_intent,
)
from provision.targets.vertex_job.resource_names import (
    list_replicas,
)
from provision.verification.report import MAX_REPORT_BYTES, read_report

_REQUEST = JobRequest("it verifies the target")


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
            if record is not None:
                end_job(driver, context, journal, record, "a new job was requested")
            moving = None if options.rerun else JobRecord.find(journal.state, context.address)
            attempts = find_attempts(journal, moving)
            start_job(driver, context, journal, _REQUEST, attempts)
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
                hint=f"start one with `{context.command('apply')}`",
            )
        try:
            return _await(context, journal, record)
        except JobUnplaced as error:
            move_job(driver, context, journal, record, error, _REQUEST)
        except ReportTimeout as error:
            end_job(driver, context, journal, record, error.why)
            raise
        except ReportUnavailable as error:
            record_end(driver, context, journal, record, error.why or error.what)
            raise


def _await(context: TargetContext, journal: Journal, record: JobRecord) -> ProbeEvidence:
    system, folder = journal.system, context.reports_folder
    system.perform(MakeFolder(folder, 0o700), journal.progress)
    path = folder / "report.json"
    replicas = list_replicas(record.replicas)
    for old in (path, *(folder / f"{name}.json" for name in replicas)):
        system.perform(RemoveTree(old), journal.progress)
    limit_s, pending_s = read_limits(context)
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
            end_job(driver, context, journal, record, "interrupted")
    except ProvisionError as error:
        left = record or begun[0]
        interruption.add_note(f"{error.what}\n{describe_job(context, left)}")
    else:
        if record is not None or begun:
            interruption.add_note("the custom job was cancelled")


def describe_job(context: TargetContext, record: JobRecord) -> str:
    """Return the notice about a job that may still run."""
    return describe_running(context, f"{record.title} may still be running")
