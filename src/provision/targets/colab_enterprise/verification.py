"""Verification of a template: its notebook runs as an execution job, whose report is awaited."""

from __future__ import annotations

from dataclasses import replace

from provision.adapters.google.report_polling import ReportTimeout, ReportUnavailable
from provision.effects.google import DeleteObjects, UploadObjects
from provision.effects.local import MakeFolder, RemoveTree
from provision.effects.system import Effect
from provision.effects.vertex import AwaitExecution, DeleteExecution, StartExecution
from provision.errors import Refused
from provision.facts import load_facts
from provision.field_types import parse_duration
from provision.lock import digest_of
from provision.plan import Action, Intent, Operation
from provision.state import State, to_folder_name
from provision.targets.base import AnyDriver, Journal, Pending, ProbeEvidence, VerifyOptions
from provision.targets.colab_enterprise.execution_notebook import build_execution_notebook
from provision.targets.colab_enterprise.records import TemplateRecord
from provision.targets.colab_enterprise.resource_names import get_enterprise_target
from provision.targets.context import TargetContext
from provision.targets.device_runs import find_unreported, is_reported
from provision.targets.execution_jobs import ExecutionRecord, journal_name, to_job_name
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.workbench.resource_names import LINEAGE_LABEL, MANAGED_LABEL
from provision.verification.report import MAX_REPORT_BYTES, read_report

_START_S = 45 * 60
"""Seconds in addition to max_duration, for finding and starting the machine. Our choice."""
NOT_RUNNABLE = "set `bucket` and `service_account` to verify it with a notebook"


def is_runnable(context: TargetContext) -> bool:
    """Return whether the target names what an execution job needs."""
    target = get_enterprise_target(context)
    return target.bucket is not None and target.service_account is not None


def reason_for_new_run(context: TargetContext, state: State) -> str:
    """Return why the recorded run does not count; "" when it does."""
    record = ExecutionRecord.find(state, context.address)
    template = TemplateRecord.find(state, context.address)
    if record is None:
        return "its notebook has not run yet"
    if record.ended:
        return "its last run did not verify it"
    if template is None or record.declared != _declared(context, template):
        return "the template or environment has changed since its last run"
    return ""


def find_unreported_run(context: TargetContext, state: State) -> ExecutionRecord | None:
    """Return the recorded run if it may still run; None if it has ended or reported."""
    return find_unreported(ExecutionRecord.find(state, context.address), context, state)


def verify_by_execution(
    driver: AnyDriver, context: TargetContext, journal: Journal, options: VerifyOptions
) -> ProbeEvidence | Pending:
    """Run the notebook unless a run that counts has no report yet, and wait for its report."""
    record = ExecutionRecord.find(journal.state, context.address)
    stored = VerificationRecord.find(journal.state, context.address)
    if options.rerun or is_reported(record, stored) or reason_for_new_run(context, journal.state):
        journal.perform(driver, _plan_run(context, journal, record))
    return Pending() if options.detach else await_execution_report(driver, context, journal)


def await_execution_report(
    driver: AnyDriver, context: TargetContext, journal: Journal
) -> ProbeEvidence:
    """Wait for the report of the recorded run; a run that takes too long is deleted."""
    record = ExecutionRecord.find(journal.state, context.address)
    if record is None:
        raise Refused(
            f"no execution job is recorded for {context.address}",
            hint=f"start one with `{context.command('apply')}`",
        )
    system, path = journal.system, context.reports_folder / "report.json"
    system.perform(MakeFolder(path.parent, 0o700), journal.progress)
    system.perform(RemoveTree(path), journal.progress)
    limit_s = _START_S + parse_duration(get_enterprise_target(context).max_duration)
    request = AwaitExecution(record.resource_name, record.folder, record.nonce, path, limit_s)
    try:
        system.perform(request, journal.progress)
        content = system.read(path, MAX_REPORT_BYTES)
        report = read_report(content, str(path), nonce=record.nonce)
    except ReportUnavailable as error:
        ended = replace(record, ended=error.why.partition("\n")[0] or error.what)
        effects = (_deletion(record),) if isinstance(error, ReportTimeout) else ()
        reason = "the job did not end in time"
        action = Action(
            *(Operation.CHANGE, context.address, record.part, record.title, reason),
            effects,
            ended.to_json(),
        )
        journal.perform(driver, action, announce=False)
        raise
    return ProbeEvidence(report, path, nonce=record.nonce, installed=True)


def plan_execution_removal(record: ExecutionRecord) -> tuple[Effect, ...]:
    """Return the effects that end a job, and delete the objects of its runs."""
    deletion = _deletion(record)
    parent = record.folder.rstrip("/").rpartition("/")[0]
    if not parent.startswith("gs://") or not parent.endswith(f"/{record.lineage}"):
        return (deletion,)
    return deletion, DeleteObjects(f"{parent}/")


def _plan_run(context: TargetContext, journal: Journal, earlier: ExecutionRecord | None) -> Action:
    """Return the action that starts a run under a fresh nonce; an earlier one ends first."""
    target, template = get_enterprise_target(context), _template(context, journal.state)
    nonce = journal.system.token()
    bucket = (target.bucket or "").rstrip("/")
    folder = f"{bucket}/{template.template}/{template.lineage}/{nonce}/"
    record = ExecutionRecord(
        f"execution job {to_job_name(nonce)}",
        template.project,
        template.region,
        to_job_name(nonce),
        template.lineage,
        folder,
        nonce,
        _declared(context, template),
        paths=(f"reports/{to_folder_name(context.address)}",),
    )
    uri = f"{folder}notebook.ipynb"
    content = build_execution_notebook(context, load_facts(), nonce, folder)
    labels = (template.body or {}).get("labels", {})
    body = {
        "displayName": f"provision {context.address}"[:128],
        "labels": {**labels, MANAGED_LABEL: "1", LINEAGE_LABEL: template.lineage},
        "gcsNotebookSource": {"uri": uri},
        "notebookRuntimeTemplateResourceName": template.resource_name,
        "serviceAccount": target.service_account,
        "gcsOutputUri": f"{folder}executed/",
        "executionTimeout": f"{parse_duration(target.max_duration)}s",
    }
    effects: tuple[Effect, ...] = (
        UploadObjects(((uri, content),)),
        StartExecution(record.resource_name, body),
    )
    if earlier is not None:
        effects = (_deletion(earlier), *effects)
    intent = Intent(
        context.address,
        record.part,
        str(Operation.CREATE),
        names=(journal_name(record.resource_name),),
        details={key: str(value) for key, value in replace(record, paths=()).to_json().items()},
    )
    return Action(
        Operation.CREATE,
        context.address,
        record.part,
        record.title,
        "it verifies the template",
        effects,
        record.to_json(),
        intent=intent,
        settles=intent.names,
    )


def _template(context: TargetContext, state: State) -> TemplateRecord:
    record = TemplateRecord.find(state, context.address)
    if record is None:
        raise Refused(
            f"no runtime template is recorded for {context.address}",
            hint=f"create one with `{context.command('apply')}`",
        )
    return record


def _declared(context: TargetContext, template: TemplateRecord) -> str:
    """Return the digest of what a run is about: the machine and the environment."""
    machine = {
        key: value
        for key, value in (template.body or {}).items()
        if key not in ("displayName", "labels")
    }
    return digest_of([machine, template.resource_name, context.environment.digest])


def _deletion(record: ExecutionRecord) -> DeleteExecution:
    return DeleteExecution(record.resource_name, record.lineage)
