"""Driver of custom jobs of Vertex AI: nothing stays but objects; a job verifies all machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from provision.adapters.google.custom_jobs import state_of
from provision.effects.local import MonitorRequest
from provision.effects.system import Reader, System
from provision.effects.vertex import SettleJob
from provision.errors import Refused
from provision.kinds.base import Refusal
from provision.plan import REQUESTED_AT, Action, Intent, Operation
from provision.spec import Spec
from provision.state import Ledger, State, to_folder_name
from provision.target_facts import find_target_refusals
from provision.targets.base import Driver, Journal, Pending, ProbeEvidence, VerifyOptions
from provision.targets.bucket_location import refuse_bucket
from provision.targets.capabilities import OrphanList
from provision.targets.context import Interpreter, TargetContext, refuse_untestable_gpu
from provision.targets.device_runs import is_reported
from provision.targets.job_programs import JobResult
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import ResourceSummary, TargetCondition, TargetSummary
from provision.targets.vertex_job.agent_config import get_prefix
from provision.targets.vertex_job.images import refuse_image
from provision.targets.vertex_job.observation import JobObservation, observe_job
from provision.targets.vertex_job.orphans import list_orphan_jobs
from provision.targets.vertex_job.planning import plan_programs, plan_removals
from provision.targets.vertex_job.programs import (
    OpenJournal,
    describe_program,
    find_running_program,
    follow_program,
    read_ranks,
    start_program,
)
from provision.targets.vertex_job.records import (
    JOB_RECORDS,
    JobRecord,
    ProgramRecord,
    ProgramsRecord,
    read_job_intent,
)
from provision.targets.vertex_job.resource_names import (
    RUN_LABEL,
    build_job_names,
    get_job_target,
)
from provision.targets.vertex_job.verification import (
    await_job_reports,
    describe_job,
    find_unreported_job,
    reason_for_new_job,
    verify_by_job,
)
from provision.targets.vertex_job.wheels import find_missing_wheels
from provision.targets.workbench.resource_names import LINEAGE_LABEL

_LISTED_S = 90
"""Seconds after its request until which a job may not be listed yet. Our choice."""
_USE = "the machines exist only while a job runs"


class VertexJobDriver(Driver[JobObservation]):
    """Custom jobs of Vertex AI."""

    platform = "linux-x86_64"
    destroys_from_elsewhere = True
    sandbox_note = "Google Cloud: services on this machine, the job's machines: processes of it"

    def owns(self, part: str) -> bool:
        """Return whether a part records the programs of a job, or a job."""
        return part == ProgramsRecord.part or part in JOB_RECORDS

    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> JobObservation:
        """Return what is recorded, and the machines, buckets and wheels of the job."""
        observed, target = observe_job(context, ledger, reader), get_job_target(context)
        if target.environment == "baked":
            return observed
        bucket = target.bucket_in(observed.names.regions[0])
        return replace(observed, wheels=find_missing_wheels(context, bucket, reader))

    def refusals(self, context: TargetContext, observed: JobObservation) -> tuple[Refusal, ...]:
        """Return the fields that a job does not support, and buckets that it cannot use."""
        return tuple(_find_refusals(context, observed))

    def plan(self, context: TargetContext, observed: JobObservation) -> tuple[Action, ...]:
        """Return the action on the programs; the job itself belongs to the verification."""
        return (plan_programs(context, observed),)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the end of the job, and the deletion of its objects and reports."""
        return tuple(plan_removals(address, folder, ledger))

    def require_destroyable(self, intents: Sequence[Intent], system: System) -> None:
        """Wait until the job of an interrupted command would be listed."""
        for intent in intents:
            _settle(intent, system)

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,  # noqa: ARG002
        still_running: tuple[str, ...] = (),  # noqa: ARG002
    ) -> None:
        """Record the job that an interrupted run started, unless it was cancelled.

        `orphans` lists one that appears later.
        """
        if intent.part in JOB_RECORDS:
            record = read_job_intent(intent, (f"reports/{to_folder_name(intent.address)}",))
            _settle(intent, journal.system)
            label = f"{RUN_LABEL}={record.nonce}"
            jobs = journal.system.cloud().jobs(record.project, record.region, label)
            own = [
                job for job in jobs if job.get("labels", {}).get(LINEAGE_LABEL) == record.lineage
            ]
            if any(state_of(job) != "CANCELLED" for job in own):
                journal.record(intent.address, intent.part, record.to_json())
        journal.close_intent(intent)

    def voids_verdict(self, action: Action, state: State) -> bool:  # noqa: ARG002
        """Return False: the programs do not change what a job verifies."""
        return False

    def verification_location(self, context: TargetContext) -> str:
        """Return where the probe runs."""
        target = get_job_target(context)
        machines = "one machine" if target.replicas == 1 else f"{target.replicas} machines"
        return f"by a custom job on {machines}, at most {target.max_duration}"

    def reason_for_missing_report(
        self,
        context: TargetContext,
        stored: VerificationRecord,
        state: State,
        reader: Reader,  # noqa: ARG002
    ) -> str:
        """Return why the last job has no verdict; "" when the stored one is of that job."""
        if reason := reason_for_new_job(context, state):
            return reason
        record = JobRecord.find(state, context.address)
        return "" if is_reported(record, stored) else "its job has not reported yet"

    def require_verifiable(
        self,
        context: TargetContext,
        ledger: Ledger,
        reader: Reader,
        only: tuple[str, ...],
    ) -> None:
        """Check that the programs are in the bucket."""
        super().require_verifiable(context, ledger, reader, only)
        if ProgramsRecord.find(ledger.state, context.address) is None:
            raise Refused(
                f"nothing is recorded for {context.address}",
                hint=f"create it with `{context.command('apply')}`",
            )

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Run a job on all machines, and wait for their reports."""
        return verify_by_job(self, context, journal, options)

    def attach(self, context: TargetContext, journal: Journal) -> ProbeEvidence:
        """Wait for the reports of the recorded job."""
        return await_job_reports(self, context, journal)

    def running_notice(self, context: TargetContext, ledger: Ledger) -> str:
        """Return the notices about jobs that may still run."""
        record = find_unreported_job(context, ledger.state)
        notices = [self.find_job(context, ledger.state)]
        if record is not None:
            notices.append(describe_job(context, record))
        notices += [
            describe_program(context, read_job_intent(intent))
            for intent in ledger.find_all_interrupted(context.address)
            if intent.part == ProgramRecord.part
        ]
        return "\n".join(filter(None, notices))

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the programs."""
        location = self.location(context.address, context.folder, ledger.state)
        if location is None:
            return self.condition_without_record(context, ledger)
        (action,) = self.plan(context, observe_job(context, ledger, reader))
        is_current = action.operation is Operation.KEEP
        return TargetCondition("current" if is_current else "outdated", location)

    def location(self, address: str, folder: Path, state: State) -> str | None:  # noqa: ARG002
        """Return the region of the last job, or the regions of the target."""
        record = ProgramsRecord.find(state, address)
        job = JobRecord.find(state, address)
        if record is None:
            return None
        return job.region if job is not None else ", ".join(record.regions)

    def summarize(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,  # noqa: ARG002
        actions: Sequence[Action],  # noqa: ARG002
    ) -> TargetSummary:
        """Return the jobs of the target, and whether one may still run."""
        record = ProgramsRecord.find(state, context.address)
        if record is None:
            return TargetSummary()
        use = _USE
        if find_running_program(context, state) is not None:
            use = f"a program is running; follow it: {context.command('attach')}"
        if find_unreported_job(context, state) is not None:
            use = f"a job is running; wait for its reports: {context.command('attach')}"
        name, regions = build_job_names(context, record.lineage).name, ", ".join(record.regions)
        return TargetSummary(resource=ResourceSummary("custom jobs", name, regions, use))

    def find_job_refusals(
        self, context: TargetContext, ledger: Ledger, reader: Reader
    ) -> tuple[Refusal, ...]:
        """Return what the target's plan refuses."""
        return self.refusals(context, observe_job(context, ledger, reader))

    def select_ranks(self, context: TargetContext, text: str) -> tuple[int, ...] | None:
        """Return the ranks of the machines whose output is shown; None for all."""
        return read_ranks(text, get_job_target(context))

    def start_job(
        self,
        context: TargetContext,
        argv: tuple[str, ...],
        journal: Journal,
        monitor: MonitorRequest | None,
    ) -> None:
        """Create the job of a program."""
        start_program(self, context, argv, journal, monitor)

    def follow_job(
        self,
        context: TargetContext,
        open_journal: OpenJournal,
        ranks: tuple[int, ...] | None,
    ) -> JobResult:
        """Show the output of the recorded program until it ends."""
        return follow_program(self, context, open_journal, ranks)

    def find_job(self, context: TargetContext, state: State) -> str:
        """Return the notice about a program that may still run."""
        record = find_running_program(context, state)
        return describe_program(context, record) if record is not None else ""

    def explain_use(self) -> str:
        """Return that nothing runs between jobs."""
        return _USE

    def list_orphans(
        self, ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
    ) -> OrphanList | None:
        """Return the labelled jobs that run and that none of the ledgers tracks."""
        return list_orphan_jobs(ledgers, reader)

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run in a container."""
        prefix = Path(get_prefix(context))
        return Interpreter(prefix / "bin/python", prefix, prefix)


def _settle(intent: Intent, system: System) -> None:
    """Wait until a job that was requested a moment ago would be listed."""
    requested = intent.details.get(REQUESTED_AT, "")
    if intent.part not in JOB_RECORDS or not requested:
        return
    now = datetime.fromisoformat(system.now())
    if abs((now - datetime.fromisoformat(requested)).total_seconds()) < _LISTED_S:
        record = read_job_intent(intent)
        system.perform(SettleJob(record.parent, record.nonce), lambda _: None)


def _find_refusals(context: TargetContext, observed: JobObservation) -> Iterator[Refusal]:
    own = ("targets", context.target)
    yield from find_target_refusals(context.spec, context.target, observed.facts)
    yield from refuse_untestable_gpu(context)
    if not observed.machine_type:
        gpu = "" if context.spec.gpu.is_none else f" with {context.spec.gpu}"
        yield Refusal(
            (*own, "machine_type"),
            f"no machine type of jobs{gpu} has the required memory",
            "set `machine_type`, or lower the requirements",
        )
    yield from refuse_image(context, observed.image)
    short = observed.short_quotas
    if short and set(short) == set(observed.names.regions):
        region, problem = next(iter(short.items()))
        more = f" (and {len(short) - 1} more regions)" if len(short) > 1 else ""
        yield Refusal(
            (*own, "regions"),
            f"{region} has too little quota{more}: {problem}",
            "request it at https://console.cloud.google.com/iam-admin/quotas?project="
            f"{observed.names.project} (service Vertex AI API), or list another region",
        )
    for region, bucket in observed.buckets.items():
        yield from refuse_bucket(bucket, region, (*own, "bucket"))
