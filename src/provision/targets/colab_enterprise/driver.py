"""Driver of Colab Enterprise: a runtime template, verified by a notebook that runs on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from provision.effects.local import MakeFolder
from provision.effects.system import Reader
from provision.errors import Refused
from provision.kinds.base import Refusal
from provision.plan import Action, Intent, Operation
from provision.spec import Spec
from provision.state import Ledger, State
from provision.target_facts import find_target_refusals
from provision.targets.base import Driver, Journal, Pending, ProbeEvidence, VerifyOptions
from provision.targets.bucket_location import refuse_bucket
from provision.targets.capabilities import OrphanList
from provision.targets.colab_enterprise.observation import (
    TemplateObservation,
    observe_template,
)
from provision.targets.colab_enterprise.orphans import list_orphan_templates
from provision.targets.colab_enterprise.planning import (
    plan_former_removals,
    plan_removals,
    plan_template,
)
from provision.targets.colab_enterprise.records import TemplateRecord, is_template_part
from provision.targets.colab_enterprise.resource_names import get_enterprise_target
from provision.targets.colab_enterprise.verification import (
    NOT_RUNNABLE,
    await_execution_report,
    find_unreported_run,
    is_runnable,
    reason_for_new_run,
    verify_by_execution,
)
from provision.targets.context import Interpreter, TargetContext, refuse_untestable_gpu
from provision.targets.device_runs import describe_running, is_reported
from provision.targets.execution_jobs import ExecutionRecord
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import ResourceSummary, TargetCondition, TargetSummary
from provision.targets.workbench.resource_names import LINEAGE_LABEL

_SYSTEM = Path("/usr")
_VENV = Path("/content/.provision/env")
"""Prefixes on a runtime; the cell inserts the digest of its payload before `env`."""
_USE = (
    "in Colab Enterprise, create a runtime from this template and connect a notebook to the runtime"
)


class ColabEnterpriseDriver(Driver[TemplateObservation]):
    """Runtime templates of Colab Enterprise."""

    platform = "linux-x86_64"
    destroys_from_elsewhere = True
    sandbox_note = "Google Cloud: services on this machine, the image: a kernel of this machine"

    def owns(self, part: str) -> bool:
        """Return whether a part records a template, current or replaced, or an execution job."""
        return is_template_part(part) or part == ExecutionRecord.part

    def observe(
        self, context: TargetContext, ledger: Ledger, reader: Reader
    ) -> TemplateObservation:
        """Return the template, by its name in the declared region."""
        return observe_template(context, ledger, reader)

    def refusals(
        self, context: TargetContext, observed: TemplateObservation
    ) -> tuple[Refusal, ...]:
        """Return the fields that a template does not support, and a template of another state."""
        return tuple(_find_refusals(context, observed))

    def plan(self, context: TargetContext, observed: TemplateObservation) -> tuple[Action, ...]:
        """Return the action on the template, and the deletion of replaced ones that stayed."""
        return (plan_template(context, observed), *plan_former_removals(context, observed))

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the deletion of the template and of its reports."""
        return tuple(plan_removals(address, folder, ledger))

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,  # noqa: ARG002
        still_running: tuple[str, ...] = (),  # noqa: ARG002
    ) -> None:
        """Record the template that an interrupted action made, if it exists."""
        if intent.part == ExecutionRecord.part:
            _recover_execution(intent, journal)
            return
        record = TemplateRecord.from_intent(intent)
        current = TemplateRecord.find(journal.state, intent.address)
        if intent.names and (current is None or current.resource_name != record.resource_name):
            template = journal.system.cloud().template(record.resource_name) or {}
            if template.get("labels", {}).get(LINEAGE_LABEL) == record.lineage:
                part = intent.part if current is None else record.former_part
                journal.record(intent.address, part, record.to_json())
        journal.close_intent(intent)

    def voids_verdict(self, action: Action, state: State) -> bool:  # noqa: ARG002
        """Return whether an action changes the machine of the template."""
        return action.operation not in (Operation.KEEP, Operation.CHANGE)

    def verification_location(self, context: TargetContext) -> str:
        """Return where the probe runs."""
        if not is_runnable(context):
            return "on a runtime created from the template"
        limit = get_enterprise_target(context).max_duration
        return f"by an execution job on this machine, at most {limit}"

    def reason_to_verify(
        self, context: TargetContext, state: State, reader: Reader, *, changed: bool
    ) -> str:
        """Return why the stored verdict does not apply, or that the target cannot be verified."""
        if not is_runnable(context):
            return NOT_RUNNABLE
        return super().reason_to_verify(context, state, reader, changed=changed)

    def reason_for_missing_report(
        self,
        context: TargetContext,
        stored: VerificationRecord,
        state: State,
        reader: Reader,  # noqa: ARG002
    ) -> str:
        """Return why the last run has no verdict; "" when the stored one is of that run."""
        if reason := reason_for_new_run(context, state):
            return reason
        record = ExecutionRecord.find(state, context.address)
        return "" if is_reported(record, stored) else "its notebook has not reported yet"

    def require_verifiable(
        self,
        context: TargetContext,
        ledger: Ledger,
        reader: Reader,
        only: tuple[str, ...],
    ) -> None:
        """Check that a template is recorded, and that a notebook can run on it."""
        super().require_verifiable(context, ledger, reader, only)
        if not is_runnable(context):
            raise Refused(f"{context.address} cannot be verified", why=NOT_RUNNABLE)
        if TemplateRecord.find(ledger.state, context.address) is None:
            raise Refused(
                f"no runtime template is recorded for {context.address}",
                hint=f"create one with `{context.command('apply')}`",
            )

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Run the notebook as an execution job, and wait for its report."""
        if is_runnable(context):
            return verify_by_execution(self, context, journal, options)
        journal.system.perform(MakeFolder(context.reports_folder, 0o700), journal.progress)
        return Pending()

    def attach(self, context: TargetContext, journal: Journal) -> ProbeEvidence:
        """Wait for the report of the recorded run."""
        return await_execution_report(self, context, journal)

    def running_notice(self, context: TargetContext, ledger: Ledger) -> str:
        """Return the notice about a job that may still run."""
        record = find_unreported_run(context, ledger.state)
        if record is None:
            return ""
        return describe_running(context, f"{record.title} may still be running in {record.region}")

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the template."""
        location = self.location(context.address, context.folder, ledger.state)
        if location is None:
            return self.condition_without_record(context, ledger)
        action, *_ = self.plan(context, self.observe(context, ledger, reader))
        conditions = {Operation.KEEP: "current", Operation.CREATE: "gone"}
        drift = "the template no longer exists" if action.operation is Operation.CREATE else ""
        return TargetCondition(conditions.get(action.operation, "outdated"), location, drift)

    def location(self, address: str, folder: Path, state: State) -> str | None:  # noqa: ARG002
        """Return name and region of the recorded template."""
        record = TemplateRecord.find(state, address)
        return f"{record.template} in {record.region}" if record is not None else None

    def summarize(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,  # noqa: ARG002
        actions: Sequence[Action],  # noqa: ARG002
    ) -> TargetSummary:
        """Return the template, and how a person uses it."""
        record = TemplateRecord.find(state, context.address)
        if record is None:
            return TargetSummary()
        use = _USE
        if find_unreported_run(context, state) is not None:
            use = f"its notebook is running; wait for the report: {context.command('attach')}"
        name, region = record.template, record.region
        return TargetSummary(resource=ResourceSummary("runtime template", name, region, use))

    def explain_use(self) -> str:
        """Return that people open notebooks on runtimes of the template."""
        return _USE

    def refuse_program(self, context: TargetContext) -> Refusal:
        """Return that programs run in a notebook."""
        return Refusal(
            (),
            f"{context.address} is a runtime template, and programs can run only in notebooks "
            "on its runtimes",
            "run the program in a notebook that is connected to a runtime created from the "
            "template",
        )

    def list_orphans(
        self, ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
    ) -> OrphanList | None:
        """Return the labelled templates that none of the ledgers tracks."""
        return list_orphan_templates(ledgers, reader)

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run on a runtime."""
        if get_enterprise_target(context).isolation == "venv":
            return Interpreter(_VENV / "bin/python", _VENV, _VENV)
        return Interpreter(_SYSTEM / "bin/python3", _SYSTEM, _SYSTEM)


def _recover_execution(intent: Intent, journal: Journal) -> None:
    """Record the job that an interrupted run started, if it exists; `orphans` lists a later one."""
    record = ExecutionRecord.from_json(intent.details)
    job = journal.system.cloud().execution(record.resource_name) or {}
    if job.get("labels", {}).get(LINEAGE_LABEL) == record.lineage:
        journal.record(intent.address, intent.part, record.to_json())
    journal.close_intent(intent)


def _find_refusals(context: TargetContext, observed: TemplateObservation) -> Iterator[Refusal]:
    own = ("targets", context.target)
    yield from find_target_refusals(context.spec, context.target, observed.facts)
    yield from refuse_untestable_gpu(context)
    if observed.machine_choice.problem:
        hint = "set `machine_type`, or lower the requirements"
        yield Refusal((*own, "machine_type"), observed.machine_choice.problem, hint)
    yield from refuse_bucket(observed.bucket, observed.names.region, (*own, "bucket"))
    may_adopt = context.adopt and observed.is_made_for
    if not observed.is_foreign or may_adopt:
        return
    name = observed.names.resource_name
    if observed.is_made_for:
        yield Refusal(
            own,
            f"the runtime template {name} exists, and another state created it "
            f"({LINEAGE_LABEL}={observed.owner})",
            "rename the spec file or the target, run `provision destroy` in the folder that "
            "created the template, or, if that state is lost, replace the template with "
            f"`{context.command('apply')} --adopt`",
        )
        return
    yield Refusal(
        own,
        f"a runtime template with this name exists, and provision did not create it: {name}",
        "rename the spec file or the target, or delete the template yourself",
    )
