"""The interface between commands and the kinds of target: commands never compare kinds.

A driver is everything that makes one kind differ in time: who runs the probe, when the report
comes, what costs money meanwhile, and how an interrupted action is found again. `Driver` is what
every kind does; capabilities that only some kinds have are the protocols in
`provision.targets.capabilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import Refused
from provision.kinds.base import Refusal
from provision.plan import Action, Intent, Operation, Verification
from provision.state import Ledger, State
from provision.targets.context import Interpreter, TargetContext, declared_variables
from provision.targets.stored_verdict import (
    Validity,
    VerificationRecord,
    assess_validity,
    list_changed_files,
    name_files,
)
from provision.targets.summary import TargetCondition, TargetSummary
from provision.verification import Report
from provision.verification.device_files import digest_of_expectations


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Options of a verification.

    Attributes:
        rerun: Start a new run even if the last one has not been verified yet.
        detach: Do not wait for a run that goes on without us.
        keep: Leave a session running that was started for this verification.
        only: Run these checks alone; the result is not a verdict.
        whole: Run every check, even if an earlier report proves the training.
    """

    rerun: bool = False
    detach: bool = False
    keep: bool = False
    only: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ProbeEvidence:
    """Report of a verification that has run, as it was read.

    Attributes:
        nonce: The request that it answers; "" for a probe that ran in this process's view.
        sha256: Digest of the file, if people may replace it.
        partial: It covers single checks and is not a verdict.
        installed: The packages were installed for it.
        session: A session that keeps running and costs money; "" for none.
    """

    report: Report
    path: Path
    nonce: str = ""
    sha256: str = ""
    partial: bool = False
    installed: bool = False
    session: str = ""


@dataclass(frozen=True, slots=True)
class VerdictFollowUp:
    """Actions that follow a verdict, and what becomes of the target by them ("": nothing)."""

    note: str = ""
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """A verification that goes on without us: its report is fetched or imported later."""


class Journal(Protocol):
    """The executor as drivers see it: the ledger of this run, and the only way to change it."""

    system: System
    progress: ProgressCallback

    @property
    def state(self) -> State:
        """The state as it is saved."""

    @property
    def ledger(self) -> Ledger:
        """The state with the intents that are open."""

    @property
    def folder(self) -> Path:
        """The folder of state, environments and reports."""

    def perform(self, driver: AnyDriver, action: Action, *, announce: bool = True) -> None:
        """Perform an action: intent before, effects, state after. May block for an hour."""

    def save(self, state: State) -> None:
        """Save the state that follows the current one."""

    def record(self, address: str, part: str, record: Mapping[str, Any] | None) -> None:
        """Save the state with one part recorded anew, or dropped."""

    def close_intent(self, intent: Intent) -> None:
        """Close an intent: the state contains its result, or nothing is left of it."""


ObservationT = TypeVar("ObservationT")


class Driver(ABC, Generic[ObservationT]):
    """One kind of target. Drivers have no state; they are registered in `provision.targets`.

    `observe`, `condition` and the checks look through a `Reader` and change nothing. `plan` and
    `destroy` map values to values. `verify` and `recover` change things, through the `Journal`
    alone.
    """

    platform: str | None = None
    """The platform of every target of this kind; None for that of this machine."""
    own_files: tuple[str, ...] = ()
    """Files in the state folder that go with its last target."""
    own_folders: tuple[str, ...] = ()
    """Folders in the state folder that go with its last target, if they are empty."""
    sandbox_note: str = ""
    """The service that a sandbox simulates for it; "" if this kind cannot be emulated."""
    destroys_from_elsewhere: bool = False
    """A state that was written on another machine may be destroyed here: its resources are not on
    that machine."""

    @abstractmethod
    def owns(self, part: str) -> bool:
        """Return whether a recorded part, or the part of an intent, belongs to this kind."""

    # Plan

    @abstractmethod
    def observe(self, context: TargetContext, ledger: Ledger, reader: Reader) -> ObservationT:
        """Return what exists now, open intents included. May block on the network.

        Raises:
            ExternalError: it cannot be observed.
        """

    @abstractmethod
    def refusals(self, context: TargetContext, observed: ObservationT) -> tuple[Refusal, ...]:
        """Return every field of the spec that cannot be honoured; () when all can."""

    @abstractmethod
    def plan(self, context: TargetContext, observed: ObservationT) -> tuple[Action, ...]:
        """Return the actions that make the target as declared; all KEEP when it is.

        Each action carries its journal entry (`Action.intent`).
        """

    @abstractmethod
    def destroy(self, address: str, folder: Path, ledger: Ledger) -> tuple[Action, ...]:
        """Return the actions that remove all that is recorded or was begun at an address."""

    def require_destroyable(self, intents: Sequence[Intent], system: System) -> None:
        """Check that nothing which an interrupted run requested can still appear.

        Raises:
            ExternalError: it can; the command is to be run again later.
        """

    # Perform

    def state_after(self, action: Action, state: State, reader: Reader) -> State:  # noqa: ARG002
        """Return the state once an action is done, with values that are read from outside."""
        return state.after_action(action)

    def state_after_failure(self, action: Action, state: State) -> State:  # noqa: ARG002
        """Return the state once an action has failed and left nothing running."""
        return state

    @abstractmethod
    def recover(
        self,
        intent: Intent,
        journal: Journal,
        *,
        planned: bool = False,
        still_running: tuple[str, ...] = (),
    ) -> None:
        """Settle what an interrupted action left: in the state, or removed. Called under the lock.

        With `planned`, its target was planned and applied since, with the intent in view.
        `still_running` names what the failed effect reported to be running still.
        """

    def release_interrupted(self, intent: Intent, journal: Journal) -> None:
        """Release what an interrupted verification may have acquired, and close its intent.

        Raises:
            ExternalError: it may still run; the intent stays open.
        """

    # Verify

    def voids_verdict(self, action: Action, state: State) -> bool:  # noqa: ARG002
        """Return whether an action changes what the stored verdict is about."""
        return action.operation is not Operation.KEEP

    def plan_verification(
        self,
        context: TargetContext,
        state: State,
        reader: Reader,
        actions: Sequence[Action] = (),
        *,
        requested: bool = False,
    ) -> Verification:
        """Return whether the target is to be verified after some actions, and why."""
        tier, where = context.spec.verify.tier, self.verification_location(context)
        if requested:
            return Verification(True, tier, "requested with --verify", where)
        stored = VerificationRecord.find(state, context.address)
        changed = any(self.voids_verdict(action, state) for action in actions)
        reason = self.reason_to_verify(context, state, reader, changed=changed)
        if stored is None or reason:
            return Verification(True, tier, reason, where)
        earlier = self._validity(context, stored, reader) is Validity.EARLIER_PROBE
        verdict = f"{stored.verdict} (earlier probe)" if earlier else stored.verdict
        reason = f"{verdict} on {stored.at[:10]}; nothing has changed since then"
        return Verification(False, tier, reason, where, earlier_probe=earlier)

    def verification_location(self, context: TargetContext) -> str:  # noqa: ARG002
        """Return where the probe runs, for plans."""
        return "on this device"

    def reason_to_verify(
        self, context: TargetContext, state: State, reader: Reader, *, changed: bool
    ) -> str:
        """Return why the stored verdict does not apply; "" when it does.

        A verdict applies to the same expectations only. That of an earlier probe stays current: a
        new version of this program gives no reason to start a device.
        """
        if changed:
            return "the environment will change"
        stored = VerificationRecord.find(state, context.address)
        if stored is None or not stored.verdict:
            return "not verified yet"
        if reason := self.reason_for_missing_report(context, stored, state, reader):
            return reason
        if self._validity(context, stored, reader) is Validity.OTHER_EXPECTATIONS:
            if stored.tier not in ("", context.spec.verify.tier):
                return f"it was verified with tier {stored.tier}"
            if files := list_changed_files(stored, context):
                verb = "has" if len(files) == 1 else "have"
                return f"{name_files(files)} {verb} changed since it was verified"
            has_code = context.code is not None or bool(context.sources)
            parts = "the spec, the lock or the code" if has_code else "the spec or the lock"
            return f"{parts} has changed since it was verified"
        return ""

    def reason_for_missing_report(
        self,
        context: TargetContext,  # noqa: ARG002
        stored: VerificationRecord,  # noqa: ARG002
        state: State,  # noqa: ARG002
        reader: Reader,  # noqa: ARG002
    ) -> str:
        """Return why the stored verdict has no report behind it; "" when it has."""
        return ""

    def _validity(
        self, context: TargetContext, stored: VerificationRecord, reader: Reader
    ) -> Validity:
        def digest_with(probe: str) -> str:
            return self.expectations_digest(context, probe)

        return assess_validity(stored, digest_with, context.folder, reader)

    def expectations_digest(self, context: TargetContext, probe: str) -> str:
        """Return the digest of the target's expectations and of the probe that judges them.

        Args:
            context: the target with its lock.
            probe: digest of the probe's sources, 64 hexadecimal digits.
        """
        prefix = self.get_interpreter(context).prefix
        expectations = context.expectations(prefix)
        return digest_of_expectations(expectations, probe)

    def require_verifiable(
        self,
        context: TargetContext,
        ledger: Ledger,  # noqa: ARG002
        reader: Reader,  # noqa: ARG002
        only: tuple[str, ...],
    ) -> None:
        """Check that the target exists and that `verify` can run its checks.

        Raises:
            Refused: it is not whole, is verified elsewhere, or cannot run single checks, as kinds
                by default.
        """
        if only:
            raise Refused(
                "individual checks can be rerun only for targets on this machine",
                why=f"{context.address} runs all of its checks together, on a different machine",
                hint="omit --only",
            )

    @abstractmethod
    def verify(
        self, context: TargetContext, journal: Journal, options: VerifyOptions
    ) -> ProbeEvidence | Pending:
        """Run the probe where the target is, and return its report. May block for an hour.

        Storing the report, its page and exit codes belong to the command.

        Raises:
            ExternalError: the probe did not run, or no acceptable report came.
        """

    def after_verdict(
        self,
        context: TargetContext,  # noqa: ARG002
        report: Report,  # noqa: ARG002
        state: State,  # noqa: ARG002
        reader: Reader,  # noqa: ARG002
    ) -> VerdictFollowUp:
        """Return what follows a stored verdict, such as the stop of an instance."""
        return VerdictFollowUp()

    # Describe

    @abstractmethod
    def condition(self, context: TargetContext, ledger: Ledger, reader: Reader) -> TargetCondition:
        """Return the condition of a target for `status`. May block on the network."""

    def condition_without_record(self, context: TargetContext, ledger: Ledger) -> TargetCondition:
        """Return the condition of a target that the state does not record."""
        begun = ledger.find_interrupted(context.address)
        return TargetCondition("incomplete" if begun else "absent", "")

    @abstractmethod
    def location(self, address: str, folder: Path, state: State) -> str | None:
        """Return where the recorded target is; "" if that is unknown, None if none is recorded."""

    @abstractmethod
    def summarize(
        self, context: TargetContext, state: State, reader: Reader, actions: Sequence[Action]
    ) -> TargetSummary:
        """Return the facts about a target after the actions of its plan."""

    def refuse_program(self, context: TargetContext) -> Refusal:
        """Return why `run` starts no programs at this target, if the kind cannot."""
        return Refusal((), f"{context.address} cannot run programs on this machine")

    def explain_use(self) -> str:
        """Return how a person uses a target of this kind, if `open` cannot open it."""
        return "run programs in it with `provision run -- PROGRAM`"

    def running_notice(self, context: TargetContext, ledger: Ledger) -> str:  # noqa: ARG002
        """Return what keeps running and costs money, with commands to continue; "" for nothing."""
        return ""

    @abstractmethod
    def get_interpreter(self, context: TargetContext) -> Interpreter:
        """Return where programs of this target run once it exists."""

    def get_environment_variables(
        self,
        context: TargetContext,
        caller: Mapping[str, str],  # noqa: ARG002
        *,
        partial: bool = False,  # noqa: ARG002
    ) -> dict[str, str]:
        """Return the variables of its programs: the declared ones, if secrets are fetched there.

        Raises:
            Refused: the source of a secret is not set; with `partial` it is left out instead.
        """
        return declared_variables(context.spec)


AnyDriver = Driver[Any]
"""A driver from the registry: its observation is opaque to commands."""
