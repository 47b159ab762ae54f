"""Verification on an instance: waits for the report of its own run."""

from __future__ import annotations

from pathlib import Path

from provision.adapters.google.log_tail import read_run_log
from provision.adapters.google.report_polling import ReportTimeout, ReportUnavailable
from provision.effects.google import AwaitReport, StopInstance
from provision.effects.local import MakeFolder, RemoveTree, WriteFile
from provision.effects.system import Effect, Reader, System
from provision.errors import ExternalError, Refused
from provision.field_types import parse_duration
from provision.plan import Action, Operation
from provision.state import State
from provision.targets.base import AnyDriver, Journal, ProbeEvidence, VerdictFollowUp
from provision.targets.context import TargetContext
from provision.targets.workbench.cleanup import plan_instance_deletion
from provision.targets.workbench.notices import add_hint_on_error, running_notice
from provision.targets.workbench.records import InstanceRecord
from provision.verification import Report
from provision.verification.report import MAX_REPORT_BYTES, read_report

_BOOT_AND_INSTALL_S = 75 * 60
"""Seconds in addition to the verification: the driver has 15 minutes, the packages an hour. Our
choice."""
_REPORT_GRACE_S = 4 * 60
"""Seconds in addition to `verify.timeout`: the device gives the probe two more minutes, and then
uploads its report. Our choice."""


def await_report(driver: AnyDriver, context: TargetContext, journal: Journal) -> ProbeEvidence:
    """Wait for the report of the recorded run; without one, apply `on_failure`.

    If the wait ends for another reason (the network, Ctrl-C), the device keeps running.
    """
    recorded = InstanceRecord.find(journal.state, context.address)
    if recorded is None or not recorded.zone:
        raise Refused(
            f"no instance is recorded for {context.address}",
            hint=f"create one with `{context.command('apply')}`",
        )
    record = recorded.without_ended_run()
    path = context.reports_folder / "report.json"
    system, progress = journal.system, journal.progress
    system.perform(MakeFolder(path.parent, 0o700), progress)
    system.perform(RemoveTree(path), progress)
    verification_s = parse_duration(context.spec.verify.timeout) + _REPORT_GRACE_S
    request = AwaitReport(
        record.resource_name,
        record.project,
        record.zone,
        record.run_folder,
        record.nonce,
        path,
        _BOOT_AND_INSTALL_S + verification_s,
        verification_s,
    )
    missing: ReportUnavailable | None = None
    with add_hint_on_error(lambda: running_notice(context, record)):
        try:
            system.perform(request, progress)
            report = _read_report(path, record.nonce, system)
        except ReportUnavailable as error:
            missing = error
    if missing is not None:
        raise _missing_report_error(missing, driver, context, record, journal) from missing
    if record != recorded:
        journal.record(context.address, record.part, record.to_json())
    return ProbeEvidence(report, path, nonce=record.nonce)


def plan_after_verdict(
    context: TargetContext, report: Report, state: State, reader: Reader
) -> VerdictFollowUp:
    """Return the actions of `on_failure`, if the verdict is not good."""
    simulated = report.verdict == "simulated" and context.sandbox_sources is not None
    if simulated or report.verdict == "verified":
        return VerdictFollowUp()
    record = InstanceRecord.find(state, context.address)
    if record is None:
        return VerdictFollowUp()
    after = record.with_ended_run(report.verdict) if record.on_failure == "stop" else record
    return _plan_on_failure(context, record, after, reader)


def _plan_on_failure(
    context: TargetContext, record: InstanceRecord, after: InstanceRecord, reader: Reader
) -> VerdictFollowUp:
    """Return how an unverified instance is stopped, deleted or kept.

    `after` is the record of one that is not deleted.
    """
    name, instance = record.resource_name, record.instance
    operation, effects = Operation.CHANGE, tuple[Effect, ...]()
    if reader.cloud().instance(name) is None:
        note = f"{instance} no longer exists"
    elif record.on_failure == "keep":
        note = f"`on_failure: keep`: {running_notice(context, record)}"
    elif record.on_failure == "delete":
        note = f"{instance} is deleted (`on_failure: delete`)"
        operation, effects = Operation.DESTROY, plan_instance_deletion(record)
    else:
        disks = "" if context.sandbox_sources else "; its disks still cost money"
        note = f"{instance} is stopped{disks} (`on_failure: stop`)"
        effects = (StopInstance(name),)
    reason = f"on_failure: {record.on_failure}"
    kept = after.to_json() if operation is Operation.CHANGE else None
    action = Action(operation, context.address, record.part, record.title, reason, effects, kept)
    return VerdictFollowUp(note, (action,))


def _missing_report_error(
    error: ReportUnavailable,
    driver: AnyDriver,
    context: TargetContext,
    record: InstanceRecord,
    journal: Journal,
) -> ReportUnavailable:
    """Fetch the log, apply `on_failure`, and return the error with both in its hint."""
    system = journal.system
    log = context.reports_folder / "log.txt"
    text = read_run_log(record.run_folder, system.cloud())
    system.perform(WriteFile(log, text, 0o600) if text else RemoveTree(log), journal.progress)
    ended = record.with_ended_run(error.why.partition("\n")[0] or error.what)
    try:
        follow_up = _plan_on_failure(context, record, ended, system)
        outcome = follow_up.note
        for action in follow_up.actions:
            journal.perform(driver, action, announce=False)
    except ExternalError as failure:
        outcome = f"{failure.what}: {failure.why}\n{running_notice(context, record)}"
        journal.record(context.address, ended.part, ended.to_json())
    hints = [error.hint, outcome]
    if not (isinstance(error, ReportTimeout) and record.on_failure == "keep"):
        hints.append(f"try again with a new run: {context.command('apply')}")
    if text:
        hints.append(f"full log: {log}")
    return type(error)(error.what, why=error.why, hint="\n".join(filter(None, hints)))


def _read_report(path: Path, nonce: str, system: System) -> Report:
    try:
        return read_report(system.read(path, MAX_REPORT_BYTES), str(path), nonce=nonce)
    except ExternalError as error:
        raise ReportUnavailable(error.what, why=error.why, hint=error.hint) from error
