"""Driver of Vertex AI Workbench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from provision.effects.google import CreateInstance
from provision.effects.system import Reader, System
from provision.errors import Refused
from provision.kinds.base import Refusal
from provision.plan import Action, Intent, Operation, Verification
from provision.spec import Spec
from provision.state import Ledger, State
from provision.targets.base import (
    Driver,
    Journal,
    Pending,
    ProbeEvidence,
    VerdictFollowUp,
    VerifyOptions,
)
from provision.targets.capabilities import ImageVerification, InstanceAccess, OrphanList
from provision.targets.context import Interpreter, TargetContext
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import InstanceSummary, TargetCondition, TargetSummary
from provision.targets.workbench.access import describe_instance_access
from provision.targets.workbench.agent_config import (
    STABLE_PREFIX,
    get_prefix,
)
from provision.targets.workbench.cleanup import plan_removals
from provision.targets.workbench.image_records import (
    is_image_part,
    recover_image_job,
    without_image_jobs,
)
from provision.targets.workbench.image_verification import (
    describe_leftover,
    describe_stored,
    find_image_name,
    plan_image_job,
    run_image_job,
)
from provision.targets.workbench.notices import leftover_notice
from provision.targets.workbench.observation import (
    WorkbenchObservation,
    find_differences,
    observe_instance,
    select_run,
)
from provision.targets.workbench.orphans import list_orphan_instances
from provision.targets.workbench.ownership import is_owned
from provision.targets.workbench.plan_notes import RESTART_NOTE
from provision.targets.workbench.planning import (
    plan_create,
    plan_move,
    plan_replace,
    plan_rerun,
    plan_update,
)
from provision.targets.workbench.records import (
    InstanceRecord,
    forget_former_instance,
    is_former_part,
    is_instance_part,
    zone_of,
)
from provision.targets.workbench.recovery import (
    has_lineage,
    recover_instance,
    refuse_pending_creation,
)
from provision.targets.workbench.refusals import find_refusals
from provision.targets.workbench.verification import await_report, plan_after_verdict
from provision.verification import Report


class WorkbenchDriver(Driver[WorkbenchObservation]):
    """Instances of Vertex AI Workbench."""

    platform = "linux-x86_64"
    destroys_from_elsewhere = True
    sandbox_note = "Google Cloud: services on this machine"
    """Part of the declaration of instances: another text would restart them."""

    def owns(self, part: str) -> bool:
        """Return whether a part records an instance, or a verification on its image."""
        return is_instance_part(part) or is_image_part(part)

    def observe(
        self, context: TargetContext, ledger: Ledger, reader: Reader
    ) -> WorkbenchObservation:
        """Return the instance, by its name in every zone of the project."""
        observed = observe_instance(context, without_image_jobs(ledger), reader)
        image, machine = observed.image_choice.name, observed.machine_choice.machine_type
        note = describe_stored(self, context, ledger.state, image, machine)
        return replace(observed, image_note=note)

    def refusals(
        self, context: TargetContext, observed: WorkbenchObservation
    ) -> tuple[Refusal, ...]:
        """Return the fields that this kind does not support, or that are not available."""
        # If ours exists, another instance matters only in a zone that the new one may need.
        foreign = tuple(
            instance
            for instance in observed.others
            if not is_owned(instance, observed.names)
            and (
                not observed.exists
                or (
                    observed.needs_replacement
                    and zone_of(str(instance.get("name", ""))) in observed.names.zones
                )
            )
        )
        return tuple(
            find_refusals(
                context,
                observed.facts,
                observed.machine_choice,
                observed.image_choice,
                foreign,
                observed.capacity,
            )
        )

    def plan(self, context: TargetContext, observed: WorkbenchObservation) -> tuple[Action, ...]:
        """Return the action on the instance, and the deletion of replaced ones that a move left."""
        stays = observed.exists and not observed.needs_replacement
        zones = (observed.zone,) if stays else observed.names.zones
        possible_names = {observed.names.instance_resource_name(zone) for zone in zones}
        return (
            self._plan_instance(context, observed),
            *(action for name, action in observed.former_instances if name not in possible_names),
        )

    def _plan_instance(self, context: TargetContext, observed: WorkbenchObservation) -> Action:
        recorded = observed.recorded
        if recorded is not None and recorded.project != observed.names.project:
            return plan_move(context, observed, recorded)
        if observed.instance is None:
            return plan_create(context, observed)
        changes = find_differences(context, observed, select_run(context, observed))
        plan = plan_replace if observed.needs_replacement else plan_update
        return plan(context, observed, changes)

    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the deletion of all instances of an address, of their objects and reports."""
        return plan_removals(address, folder, ledger)

    def require_destroyable(self, intents: Sequence[Intent], system: System) -> None:
        """Check that no requested instance can still appear."""
        refuse_pending_creation(
            [intent for intent in intents if not is_image_part(intent.part)], system
        )

    def state_after(self, action: Action, state: State, reader: Reader) -> State:
        """Return the state once an action is done; the zone is known only then."""
        record = _find_zone(action, reader)
        if record is None:
            return state.after_action(action)
        after = state.after_action(replace(action, record=record.to_json()))
        return forget_former_instance(after, action.address, record) if record.zone else after

    def state_after_failure(self, action: Action, state: State) -> State:
        """Return the state without the instances that a failed action had deleted first."""
        after = state
        if is_image_part(action.part):
            return after
        for effect in action.effects:
            if isinstance(effect, CreateInstance) and effect.instead_of:
                after = after.with_record(action.address, action.part, None)
        recorded = InstanceRecord.find(state, action.address)
        for candidate in recorded.candidates if recorded is not None else ():
            after = forget_former_instance(after, action.address, candidate)
        return after

    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,
        still_running: tuple[str, ...] = (),
    ) -> None:
        """Record the instance or job that an interrupted action began, if one is shown."""
        if is_image_part(intent.part):
            recover_image_job(intent, journal)
        elif intent.names:
            recover_instance(intent, journal, planned=planned, still_running=still_running)
        else:
            journal.close_intent(intent)

    def voids_verdict(self, action: Action, state: State) -> bool:
        """Return whether an action starts a new run."""
        if is_former_part(action.part) or action.operation is Operation.KEEP:
            return False
        recorded = state.resource(action.address, action.part)
        if recorded is None or action.record is None:
            return True
        return bool(action.record.get("nonce") != recorded.get("nonce"))

    def plan_verification(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,
        actions: Sequence[Action] = (),
        *,
        requested: bool = False,
    ) -> Verification:
        """Return whether the instance is to be verified, and that it restarts for it."""
        planned = super().plan_verification(context, state, reader, actions, requested=requested)
        updates = (Operation.KEEP, Operation.CHANGE)
        for action in actions:
            if (
                planned.needed
                and action.part == InstanceRecord.part
                and action.operation in updates
            ):
                return self._with_restart(planned, action, state)
        return planned

    def verification_location(self, context: TargetContext) -> str:  # noqa: ARG002
        """Return "on the instance"."""
        return "on the instance"

    def _with_restart(self, planned: Verification, action: Action, state: State) -> Verification:
        stored = VerificationRecord.find(state, action.address)
        if stored and stored.nonce == (action.record or {}).get("nonce"):
            return replace(planned, reason=f"{planned.reason}; {RESTART_NOTE}")
        if self.voids_verdict(action, state):
            return replace(planned, reason="a new run starts")
        return planned

    def reason_for_missing_report(
        self,
        context: TargetContext,
        stored: VerificationRecord,
        state: State,
        reader: Reader,  # noqa: ARG002
    ) -> str:
        """Return why the last run has no verdict; "" when the stored one is of that run."""
        record = InstanceRecord.find(state, context.address)
        if record is None:
            return ""
        if record.ended:
            return "its last run did not verify it"
        if stored.nonce != record.nonce:
            return "the instance has not reported yet"
        return ""

    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Wait for the report of the run; a verified or ended run starts again."""
        record = InstanceRecord.find(journal.state, context.address)
        stored = VerificationRecord.find(journal.state, context.address)
        verified = stored is not None and record is not None and stored.nonce == record.nonce
        if options.rerun or verified:
            self._request_run(context, journal)
        if options.detach:
            return Pending()
        return await_report(self, context, journal)

    def _request_run(self, context: TargetContext, journal: Journal) -> None:
        observed = self.observe(context, Ledger(journal.state), journal.system)
        if not observed.exists:
            raise Refused(
                f"there is no instance for {context.address}",
                hint=f"create one with `{context.command('apply')}`",
            )
        action = plan_rerun(context, observed, journal.system.token())
        journal.perform(self, action)

    def after_verdict(
        self, context: TargetContext, report: Report, state: State, reader: Reader
    ) -> VerdictFollowUp:
        """Return how an instance that is not verified is stopped, deleted or kept."""
        return plan_after_verdict(context, report, state, reader)

    def plan_image_verification(
        self, context: TargetContext, ledger: Ledger, reader: Reader, nonce: str
    ) -> ImageVerification:
        """Return an execution job on the machine, GPU and image of the instance."""
        observed = self.observe(context, ledger, reader)
        return plan_image_job(context, observed, ledger, reader, nonce)

    def verify_image(
        self, context: TargetContext, journal: Journal, planned: ImageVerification
    ) -> ProbeEvidence:
        """Run the job, and return its report; the job is deleted."""
        return run_image_job(self, context, journal, planned)

    def describe_image_verification(self, context: TargetContext, state: State) -> str:
        """Return the verification on the image that still applies; "" for none."""
        image = find_image_name(context, state)
        record = InstanceRecord.find(state, context.address)
        machine = record.machine_type if record is not None else ""
        return describe_stored(self, context, state, image, machine)

    def attach(self, context: TargetContext, journal: Journal) -> ProbeEvidence:
        """Wait for the report of the recorded run."""
        return await_report(self, context, journal)

    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of the instance; "incomplete" if only the journal has it."""
        location = self.location(context.address, context.folder, ledger.state)
        if location is not None:
            condition = self.observe(context, ledger, reader).condition
            drift = "the instance no longer exists" if condition == "gone" else ""
            return TargetCondition(condition, location, drift)
        intent = without_image_jobs(ledger).find_interrupted(context.address)
        if intent is None:
            return TargetCondition("absent", "")
        if not intent.names:
            return TargetCondition("incomplete", "")
        zones = " or ".join(map(zone_of, intent.names))
        return TargetCondition("incomplete", f"{intent.names[0].rpartition('/')[2]} in {zones}")

    def location(self, address: str, folder: Path, state: State) -> str | None:  # noqa: ARG002
        """Return the name and zone of the recorded instance."""
        record = InstanceRecord.find(state, address)
        return f"{record.instance} in {record.zone}" if record is not None else None

    def summarize(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,  # noqa: ARG002
        actions: Sequence[Action],  # noqa: ARG002
    ) -> TargetSummary:
        """Return the name and zone of the instance."""
        record = InstanceRecord.find(state, context.address)
        if record is None:
            return TargetSummary()
        return TargetSummary(instance=InstanceSummary(record.instance, record.zone))

    def refuse_program(self, context: TargetContext) -> Refusal:
        """Return that programs run on the instance."""
        return Refusal(
            (),
            f"{context.address} is an instance, and programs can run only on the instance",
            f"open the instance and run the program there: {context.command('open')}",
        )

    def running_notice(self, context: TargetContext, ledger: Ledger) -> str:
        """Return the notice about an instance or a job that runs or may be starting."""
        notices = (
            leftover_notice(context, without_image_jobs(ledger)),
            describe_leftover(context, ledger),
        )
        return "\n".join(filter(None, notices))

    def describe_access(
        self, address: str, state: State, spec_path: Path, reader: Reader
    ) -> InstanceAccess:
        """Return the ways to reach the recorded instance."""
        return describe_instance_access(address, state, spec_path, reader)

    def list_orphans(
        self, ledgers: Sequence[tuple[Spec, Ledger]], reader: Reader
    ) -> OrphanList | None:
        """Return the labelled instances that none of the ledgers tracks."""
        return list_orphan_instances(ledgers, reader)

    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs run on the instance; the paths are the device's."""
        prefix = Path(get_prefix(context))
        return Interpreter(prefix / "bin/python", prefix, Path(STABLE_PREFIX))


def _find_zone(action: Action, reader: Reader) -> InstanceRecord | None:
    """Return the record of an action on an instance, with the zone that it is in."""
    if action.part != InstanceRecord.part or action.record is None:
        return None
    record = InstanceRecord.from_json(action.record)
    if record.zone:
        return record
    cloud = reader.cloud()
    for candidate in record.candidates:
        if has_lineage(cloud.instance(candidate.resource_name), record.lineage):
            return candidate
    return record
