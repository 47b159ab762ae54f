"""Makes targets as declared and verifies them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from provision.commands.lock import LockResult, ensure_lock, write_lock
from provision.commands.shared.executor import (
    Executor,
    recover_after_error,
    recover_interrupted,
    settle_planned_intents,
)
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.package_contents import build_wheels
from provision.commands.shared.report_store import store_evidence
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import (
    ErrorsByTarget,
    TargetPlans,
    check_saved_plan,
    collect_errors,
    leftover_notice,
    note_on_interrupt,
    plan_targets,
    refuse_unknown_kinds,
    runs_in_browser,
    worst_exit_code,
)
from provision.commands.shared.verified_tier import override_tier
from provision.effects.local import InstallPackages
from provision.effects.system import ProgressCallback, System
from provision.errors import ExternalError, UsageError
from provision.plan import Plan
from provision.state import Ledger
from provision.state_store import LocalStore
from provision.targets import TargetContext, get_driver
from provision.targets.base import (
    Pending,
    VerifyOptions,
)
from provision.targets.context import Interpreter
from provision.targets.stored_verdict import VerificationRecord
from provision.targets.summary import TargetSummary
from provision.verification import Report
from provision.verification.report import read_report_file

Confirm = Callable[[Plan, LockResult], None]
"""Shows the plan and requests a confirmation; raises Refused without it."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Options of `apply`."""

    verify: bool = False
    frozen: bool = False
    saved_plan: Path | None = None
    lock_wait_s: float = 0
    detach: bool = False
    keep: bool = False
    adopt: bool = False
    tier: str = ""


@dataclass(frozen=True, slots=True)
class TargetResult:
    """Result of one verified target.

    Attributes:
        fresh: The verdict is of this run, not a stored one.
        changed: This run changed something.
        installed: This run installed the packages.
        on_failure_note: What became of an instance that was not verified; "" for nothing.
    """

    context: TargetContext
    interpreter: Interpreter
    summary: TargetSummary
    report: Report
    json_path: Path
    html_path: Path
    fresh: bool
    changed: bool
    installed: bool
    on_failure_note: str = ""

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict; in a sandbox `simulated` is all that can be expected."""
        if self.context.sandbox_sources is not None:
            return self.report.exit_code_in_sandbox
        return self.report.exit_code


@dataclass(frozen=True, slots=True)
class PendingTarget:
    """A target that was made and has no verdict yet; `reason` is "" if that is our choice."""

    context: TargetContext
    summary: TargetSummary
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """Results of all targets; `failed` are the errors that stopped one of several, by its name."""

    results: tuple[TargetResult, ...]
    pending: tuple[PendingTarget, ...] = ()
    failed: ErrorsByTarget = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The worst of all: 1 failed, then 2 no verdict, then 3 unverified or pending, else 0."""
        codes = [result.exit_code for result in self.results]
        codes += [error.exit_code for error in self.failed.values()]
        return worst_exit_code([*codes, 3] if self.pending else codes)


def apply(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    options: ApplyOptions,
    system: System,
    confirm: Confirm,
    progress: ProgressCallback,
) -> ApplyResult:
    """Make the named targets as the spec declares, and verify them.

    Whatever was done before an error is in the state, what was being done is in the journal, and
    running the command again continues from there. An error of one target among several stops
    that one alone.

    Raises:
        Refused: declined, a field that cannot be honoured, or a stale saved plan.
        UsageError: a tier that a target cannot have.
        LockError: nothing can be locked, or `frozen` and the lock does not match.
        StateError: the state is damaged, foreign, or locked by another run.
    """
    refuse_unknown_kinds(loaded, names)
    if options.tier:
        loaded = override_tier(loaded, options.tier)
    store = LocalStore(loaded.folder, system)
    locked = ensure_lock(loaded, system, progress, frozen=options.frozen)

    def plan(ledger: Ledger) -> TargetPlans:
        build_wheels(loaded, locked.lock, names, system, progress)
        verify, adopt = options.verify, options.adopt
        plans = plan_targets(loaded, locked.lock, names, ledger, system, verify=verify, adopt=adopt)
        if options.tier:
            refuse_tier_in_browser(plans)
        if options.saved_plan is not None:
            check_saved_plan(options.saved_plan, plans.plan, system)
        return plans

    shown = plan(store.load_ledger())
    confirm(shown.plan, locked)
    with store.exclusive(options.lock_wait_s, progress):
        ledger = store.load_or_create_ledger()
        plans = plan(ledger)
        if options.saved_plan is None and plans.plan.fingerprint() != shown.plan.fingerprint():
            confirm(plans.plan, locked)  # another run changed something while this one was waiting
        if locked.fresh:
            write_lock(locked, system, progress)
        executor = Executor(StateWriter(store, ledger), system, progress, loaded.spec.registry)
        recover_interrupted(executor, {context.address for context in plans.contexts.values()})
        with note_on_interrupt(lambda: leftover_notice(plans.contexts.values(), executor.ledger)):
            failed = _perform_actions(plans, names, ledger, executor)
            results = _verify_targets(plans, names, options, executor, failed)
    return ApplyResult(
        tuple(result for result in results if isinstance(result, TargetResult)),
        tuple(result for result in results if isinstance(result, PendingTarget)),
        failed,
    )


def refuse_tier_in_browser(plans: TargetPlans) -> None:
    """Raise UsageError if a notebook, which has its own tier, is among the targets."""
    for name, context in plans.contexts.items():
        if runs_in_browser(context):
            raise UsageError(
                f"--tier has no effect on {name}, whose notebook is run in a browser",
                hint="set verify.tier in the spec; the notebook uses that tier",
            )


def _perform_actions(
    plans: TargetPlans, names: tuple[str, ...], ledger: Ledger, executor: Executor
) -> ErrorsByTarget:
    """Perform the actions of each target; return the errors that stopped one of several."""
    failed: ErrorsByTarget = {}
    for name in names:
        context = plans.contexts[name]
        driver = get_driver(context)
        with collect_errors(
            name,
            names,
            failed,
            executor.progress,
            lambda error: recover_after_error(error, executor),
        ):
            for action in plans.plan.actions:
                if action.address == context.address:
                    executor.perform(driver, action)
    settle_planned_intents(executor, ledger, failed)
    return failed


def _verify_targets(
    plans: TargetPlans,
    names: tuple[str, ...],
    options: ApplyOptions,
    executor: Executor,
    failed: ErrorsByTarget,
) -> list[TargetResult | PendingTarget]:
    results: list[TargetResult | PendingTarget] = []
    for name in names:
        if name not in failed:
            with collect_errors(name, names, failed, executor.progress):
                results.append(verify_target(name, plans, options, executor))
    return results


def verify_target(
    name: str, plans: TargetPlans, options: ApplyOptions, executor: Executor
) -> TargetResult | PendingTarget:
    """Verify a target whose actions were performed, unless its stored verdict still applies."""
    context, planned = plans.contexts[name], plans.plan.verifications[name]
    driver = get_driver(context)
    actions = [action for action in plans.plan.actions if action.address == context.address]
    changes = [action for action in plans.plan.changes if action.address == context.address]
    effects = [effect for action in changes for effect in action.effects]
    installed = any(isinstance(effect, InstallPackages) for effect in effects)
    summary = driver.summarize(context, executor.state, executor.system, actions)
    interpreter = driver.get_interpreter(context)
    stored = VerificationRecord.find(executor.state, context.address)
    if stored is not None and not planned.needed:
        json_path = context.folder / stored.report
        with suppress(ExternalError):  # a report that is gone or damaged is made again
            return TargetResult(
                context,
                interpreter,
                summary,
                read_report_file(json_path, executor.system),
                json_path,
                context.folder / stored.html,
                fresh=False,
                changed=bool(changes),
                installed=installed,
            )
    whole = options.verify or bool(options.tier)
    verify_options = VerifyOptions(detach=options.detach, keep=options.keep, whole=whole)
    evidence = driver.verify(context, executor, verify_options)
    if isinstance(evidence, Pending):
        summary = driver.summarize(context, executor.state, executor.system, actions)
        reason = planned.reason if planned.needed else "its report is missing"
        return PendingTarget(context, summary, reason)
    summary = replace(summary, session=evidence.session)
    verified = store_evidence(driver, context, evidence, executor)
    return TargetResult(
        context,
        interpreter,
        summary,
        verified.report,
        verified.json_path,
        verified.html_path,
        fresh=True,
        changed=bool(changes),
        installed=installed or evidence.installed,
        on_failure_note=verified.on_failure_note,
    )
