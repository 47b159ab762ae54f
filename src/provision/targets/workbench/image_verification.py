"""Verification on the image of an instance before it exists, by a notebook execution job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provision.adapters.google.report_polling import ReportUnavailable
from provision.effects.google import UploadObjects
from provision.effects.local import MakeFolder, RemoveTree
from provision.effects.system import Effect, Reader
from provision.effects.vertex import AwaitExecution, StartExecution
from provision.errors import ExternalError, ProvisionError
from provision.facts import load_facts
from provision.facts.machines import region_of
from provision.kinds.base import Refusal
from provision.lock import digest_of
from provision.plan import Action, Intent, Operation
from provision.state import Ledger, State, to_folder_name
from provision.targets.base import AnyDriver, Journal, ProbeEvidence
from provision.targets.bucket_location import note_distant_bucket, read_bucket, refuse_bucket
from provision.targets.capabilities import ImageVerification
from provision.targets.context import TargetContext, find_card
from provision.targets.execution_jobs import to_job_name
from provision.targets.stored_verdict import ImageVerificationRecord
from provision.targets.workbench.choices import choose_machine, is_image_unpinned
from provision.targets.workbench.image_body import (
    build_environment_body,
    build_job_body,
    job_timeout_s,
)
from provision.targets.workbench.image_notebook import BEFORE, build_image_notebook
from provision.targets.workbench.image_records import (
    ImageJobRecord,
    build_job_intent,
    describe_running_job,
    find_recorded_job,
    plan_job_deletion,
    recover_image_job,
    remove_job,
)
from provision.targets.workbench.observation import WorkbenchObservation
from provision.targets.workbench.records import InstanceRecord
from provision.targets.workbench.refusals import find_refusals
from provision.targets.workbench.resource_names import LINEAGE_LABEL, get_workbench_target
from provision.verification.device_files import probe_digest
from provision.verification.report import MAX_REPORT_BYTES, read_report

_START_S = 45 * 60
"""Seconds in addition to the limit of the job, for finding and starting its machine. Our choice."""
_NOT_SHOWN = ("capacity of the zone", "boot", "data disk")


def plan_image_job(
    context: TargetContext,
    observed: WorkbenchObservation,
    ledger: Ledger,
    reader: Reader,
    nonce: str,
) -> ImageVerification:
    """Return the job on the machine, GPU and image of the instance, in the first zone's region."""
    facts, names, image = observed.facts, observed.names, observed.image_choice
    region, card = region_of(names.zones[0]), find_card(context, facts)
    machine_type = observed.machine_choice.machine_type
    environment = build_environment_body(context, region, machine_type, card, image, facts)
    declared = digest_of([environment, context.environment.digest, probe_digest()])
    folder = names.run_folder(nonce)
    job = ImageJobRecord(
        f"execution job {to_job_name(nonce)}",
        names.project,
        region,
        to_job_name(nonce),
        names.lineage,
        folder,
        nonce,
        declared,
        paths=(f"reports/{to_folder_name(context.address)}",),
    )
    bucket = read_bucket(folder, reader)
    refusals = (
        *_find_refusals(context, observed, region),
        *refuse_bucket(bucket, region, ("targets", context.target, "bucket")),
    )
    earlier = find_recorded_job(context.address, ledger)
    if earlier is not None and earlier.declared == declared and _exists(earlier, reader):
        action = _continue(context, earlier)
    elif refusals:
        action = Action(Operation.CREATE, context.address, job.part, job.title, "")
    else:
        body = build_job_body(context, names, environment, folder)
        notes = (*_notes(context, observed, job), *note_distant_bucket(bucket, region))
        action = _start(context, observed, job, body, notes)
    return ImageVerification(
        action,
        refusals,
        image.name,
        _describe_machine(context, machine_type),
        ", ".join(_list_not_shown(context)),
    )


def run_image_job(
    driver: AnyDriver, context: TargetContext, journal: Journal, planned: ImageVerification
) -> ProbeEvidence:
    """Run the job, and return its report. The job is deleted, however this ends.

    Without an acceptable report its objects stay, with the executed notebook if there is one; the
    next run or `destroy` deletes them.
    """
    _settle_intents(context, journal, recover_image_job)
    job = ImageJobRecord.from_json(planned.action.record or {})
    earlier = ImageJobRecord.find(journal.state, context.address)
    if earlier is not None and earlier.nonce != job.nonce:
        removal = remove_job(context.address, earlier, "a new run starts")
        journal.perform(driver, removal, announce=False)
    try:
        journal.perform(driver, planned.action)
        evidence = _await_report(context, journal, job)
    except ReportUnavailable as error:
        ended = job.as_ended(error.why.partition("\n")[0] or error.what)
        effects = plan_job_deletion(job)[:1]
        action = Action(
            *(Operation.CHANGE, context.address, job.part, job.title, "the job left no report"),
            effects,
            ended.to_json(),
        )
        error.hint = f"{error.hint}\nits objects stay in {job.folder} until the next run".strip()
        _end(driver, context, journal, action, error)
        raise
    except BaseException as error:
        _end(driver, context, journal, remove_job(context.address, job, "interrupted"), error)
        raise
    journal.perform(
        driver, remove_job(context.address, job, "its report has arrived"), announce=False
    )
    return evidence


def describe_stored(
    driver: AnyDriver, context: TargetContext, state: State, image: str, machine_type: str
) -> str:
    """Return the stored verification on an image, if it applies to the spec and lock of today.

    Args:
        driver: the driver of the target.
        context: the target.
        state: has the stored verification.
        image: the name of the image of the instance, "" if it is not known.
        machine_type: that of the instance; "" for the one that would be chosen today.
    """
    record = ImageVerificationRecord.find(state, context.address)
    if record is None or record.verdict not in ("verified", "simulated", "failed"):
        return ""
    target, facts = get_workbench_target(context), load_facts()
    machine = choose_machine(
        context.spec,
        target.machine_type,
        region_of(target.zones[0]),
        facts,
        find_card(context, facts),
        reserved=target.reservation is not None,
        existing=machine_type,
    )
    if (
        (image and image != record.image)
        or record.machine != _describe_machine(context, machine.machine_type)
        or record.expectations != driver.expectations_digest(context, probe_digest())
    ):
        return ""
    word = "failed its verification" if record.verdict == "failed" else "was verified"
    simulated = "simulated; " if record.verdict == "simulated" else ""
    return (
        f"the same image {word} on {record.at[:10]} in an execution job ({simulated}not shown: "
        f"{record.not_shown})"
    )


def find_image_name(context: TargetContext, state: State) -> str:
    """Return the image of the recorded instance, else the declared one; "" if it is not known."""
    record, declared = (
        InstanceRecord.find(state, context.address),
        get_workbench_target(context).image,
    )
    if record is not None and record.image:
        return str(record.image.get("name", ""))
    return "" if declared is None or is_image_unpinned(declared) else declared


def describe_leftover(context: TargetContext, ledger: Ledger) -> str:
    """Return the notice about a job that may still run, with the next commands; "" for none."""
    notice = describe_running_job(context.address, ledger)
    if not notice:
        return ""
    return f"{notice}; wait for it: {context.command(BEFORE)}; end it: {context.command('destroy')}"


def _await_report(context: TargetContext, journal: Journal, job: ImageJobRecord) -> ProbeEvidence:
    system, path = journal.system, context.reports_folder / "report-before.json"
    system.perform(MakeFolder(path.parent, 0o700), journal.progress)
    system.perform(RemoveTree(path), journal.progress)
    request = AwaitExecution(
        *(job.resource_name, job.folder, job.nonce, path, _START_S + job_timeout_s(context)),
        subject="the image",
        timeout_hint="increase verify.timeout, or use a larger machine",
    )
    system.perform(request, journal.progress)
    try:
        report = read_report(system.read(path, MAX_REPORT_BYTES), str(path), nonce=job.nonce)
    except ExternalError as error:
        raise ReportUnavailable(error.what, why=error.why, hint=error.hint) from error
    return ProbeEvidence(report, path, nonce=job.nonce, installed=True)


def _end(
    driver: AnyDriver,
    context: TargetContext,
    journal: Journal,
    action: Action,
    error: BaseException,
) -> None:
    """Delete the job after an error; if that fails too, the job stays recorded and is named."""
    try:
        journal.perform(driver, action, announce=False)
        _settle_intents(context, journal, lambda intent, journal: journal.close_intent(intent))
    except ProvisionError as failure:
        notice = f"{failure.what}\n{describe_leftover(context, journal.ledger)}"
        if isinstance(error, ProvisionError):
            error.hint = f"{error.hint}\n{notice}".strip()
        return
    if not isinstance(error, ProvisionError):
        error.add_note("the execution job was deleted")


def _settle_intents(
    context: TargetContext, journal: Journal, settle: Callable[[Intent, Journal], None]
) -> None:
    for intent in journal.ledger.find_all_interrupted(context.address):
        if intent.part == ImageJobRecord.part:
            settle(intent, journal)


def _exists(job: ImageJobRecord, reader: Reader) -> bool:
    """Return whether the job that was started exists and has not ended for us."""
    if job.ended:
        return False
    found = reader.cloud().execution(job.resource_name) or {}
    return bool(found.get("labels", {}).get(LINEAGE_LABEL) == job.lineage)


def _continue(context: TargetContext, job: ImageJobRecord) -> Action:
    return Action(
        Operation.CHANGE,
        context.address,
        job.part,
        job.title,
        "an interrupted run started it; provision waits for its report and then deletes it",
        record=job.to_json(),
    )


def _start(
    context: TargetContext,
    observed: WorkbenchObservation,
    job: ImageJobRecord,
    body: Mapping[str, Any],
    notes: tuple[str, ...],
) -> Action:
    """Return the action that starts a job."""
    notebook = build_image_notebook(context, observed.facts, job.nonce, job.folder)
    uri = str(body["gcsNotebookSource"]["uri"])
    effects: tuple[Effect, ...] = (
        UploadObjects(((uri, notebook),)),
        StartExecution(job.resource_name, body),
    )
    intent = build_job_intent(context.address, job)
    return Action(
        Operation.CREATE,
        context.address,
        job.part,
        job.title,
        "it verifies the image before the instance exists",
        effects,
        job.to_json(),
        notes,
        intent,
        settles=intent.names,
    )


def _notes(
    context: TargetContext, observed: WorkbenchObservation, job: ImageJobRecord
) -> Iterator[str]:
    target, offer = get_workbench_target(context), observed.machine_choice.offer
    machine = _describe_machine(context, observed.machine_choice.machine_type)
    yield f"machine: {machine}, in {job.region}"
    if len({region_of(zone) for zone in observed.names.zones}) > 1:
        yield (
            "the zones are in several regions; the job runs in the region of "
            f"{observed.names.zones[0]}"
        )
    yield f"image: {observed.image_choice.name}"
    minutes = job_timeout_s(context) // 60
    cost = "price unknown"
    if offer is not None:
        dollars = offer.dollars * minutes / 60
        cost = f"${dollars:.2f} on Compute Engine in {offer.region} ({offer.evidence.as_of})"
    yield f"cost: at most {minutes} minutes of this machine, {cost}, without disks and traffic"
    if target.reservation is not None:
        yield f"reservation: the job does not use {target.reservation}"
    yield "the job is deleted when it ends"
    yield f"not shown: {', '.join(_list_not_shown(context))}"


def _find_refusals(
    context: TargetContext, observed: WorkbenchObservation, region: str
) -> Iterator[Refusal]:
    """Yield what stops a job; other instances and the capacity of zones do not concern it."""
    own, facts = ("targets", context.target), observed.facts
    machine, image = observed.machine_choice, observed.image_choice
    yield from find_refusals(context, facts, machine, image, (), type(observed.capacity)())
    if get_workbench_target(context).service_account is None:
        yield Refusal(
            (*own, "service_account"),
            "`service_account` is not set, but an execution job needs a service account",
            "set `service_account: NAME@PROJECT.iam.gserviceaccount.com`",
        )
    regions = facts.conditions["enterprise regions"]
    if region not in regions.value.split():
        yield Refusal(
            (*own, "zones"),
            f"Vertex AI has no endpoint in {region} (as of {regions.evidence.as_of})",
            "list a zone in a different region first, or apply without this verification",
        )


def _describe_machine(context: TargetContext, machine_type: str) -> str:
    gpu = "" if context.spec.gpu.is_none else f" with {context.spec.gpu}"
    return f"{machine_type}{gpu}"


def _list_not_shown(context: TargetContext) -> Iterator[str]:
    yield from _NOT_SHOWN
    if context.spec.secrets:
        yield "secrets"
