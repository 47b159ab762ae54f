"""Runs the probe where a target is, and stores its report and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from provision.agent.probe.checks import CHECKS
from provision.commands.shared.executor import Executor
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.multi_target import ErrorsByTarget, collect_errors
from provision.commands.shared.notices import leftover_notice, note_on_interrupt
from provision.commands.shared.report_store import store_report, write_report_page
from provision.commands.shared.target_plans import get_driver_and_context
from provision.effects.system import ProgressCallback, System
from provision.errors import LockError, UsageError
from provision.lock import Lock
from provision.lock.inputs import list_changed_inputs
from provision.spelling import nearest_words
from provision.state import State
from provision.state_store import LocalStore
from provision.targets import AnyDriver, TargetContext
from provision.targets.base import ProbeEvidence, VerifyOptions
from provision.verification import Report


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """A stored report with its files, and the state that records it.

    Attributes:
        partial: It covers single checks and is not a verdict.
        sandbox: `simulated` is the best verdict that can be expected.
        on_failure_note: What became of an instance that was not verified; "" for nothing.
    """

    report: Report
    json_path: Path
    html_path: Path
    state: State
    partial: bool = False
    sandbox: bool = False
    on_failure_note: str = ""

    @property
    def exit_code(self) -> int:
        """The verdict's exit code; of single checks 1 for a failure, 3 for an unknown, else 0."""
        if self.partial:
            statuses = {check.get("status") for check in self.report.document["checks"]}
            if "fail" in statuses:
                return 1
            return 3 if "unknown" in statuses else 0
        return self.report.exit_code_in_sandbox if self.sandbox else self.report.exit_code


def verify(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    *,
    only: tuple[str, ...] = (),
    lock_wait_s: float = 0,
    failed: ErrorsByTarget | None = None,
) -> tuple[VerificationResult, ...]:
    """Verify targets that exist.

    With `failed`, an error of one target among several is collected there, and the others go on.

    Raises:
        LockError: there is no lock, or the spec has changed since.
        Refused: a target is not complete, or verifies itself elsewhere.
    """
    _refuse_unknown_checks(only)
    lock = _read_current_lock(loaded, system)
    store = LocalStore(loaded.folder, system)
    results: list[VerificationResult] = []
    with store.exclusive(lock_wait_s, progress):
        executor = Executor(store, store.load_ledger(), system, progress, loaded.spec.registry)
        for intent in executor.ledger.intents:
            executor.driver_of(intent).release_interrupted(intent, executor)
        targets = {name: get_driver_and_context(loaded, lock, name, system) for name in names}
        contexts = [context for _, context in targets.values()]
        with note_on_interrupt(lambda: leftover_notice(contexts, store.load_ledger())):
            for name, (driver, context) in targets.items():
                with collect_errors(name, names, failed, progress):
                    driver.require_verifiable(context, executor.ledger, system, only)
                    options = VerifyOptions(rerun=True, only=only)
                    evidence = driver.verify(context, executor, options)
                    if isinstance(evidence, ProbeEvidence):
                        results.append(store_evidence(driver, context, evidence, executor))
    return tuple(results)


def store_evidence(
    driver: AnyDriver, context: TargetContext, evidence: ProbeEvidence, executor: Executor
) -> VerificationResult:
    """Store a report, and do what follows its verdict. Single checks are not recorded."""
    if evidence.partial:
        page = write_report_page(evidence.report, evidence.path, context, executor)
        return VerificationResult(
            evidence.report, evidence.path, page, executor.state, partial=True
        )
    page = store_report(evidence, context, executor)
    follow_up = driver.after_verdict(context, evidence.report, executor.state, executor.system)
    for action in follow_up.actions:
        executor.perform(driver, action, announce=False)
    return VerificationResult(
        evidence.report,
        evidence.path,
        page,
        executor.state,
        sandbox=context.sandbox_sources is not None,
        on_failure_note=follow_up.note,
    )


def _read_current_lock(loaded: LoadedSpec, system: System) -> Lock:
    lock = read_lock(loaded, system)
    if lock is None:
        raise LockError(
            f"there is no {loaded.lock_path}",
            hint=f"make the environment with `provision apply {loaded.path}`",
        )
    if changes := list_changed_inputs(loaded.spec, lock):
        raise LockError(
            "the spec moved since the environment was made",
            why="; ".join(changes),
            hint=f"bring it up to date: provision apply {loaded.path}",
        )
    return lock


def _refuse_unknown_checks(only: tuple[str, ...]) -> None:
    known = [check.id for check in CHECKS]
    for name in only:
        if name.partition(":")[0] in known:
            continue
        similar = nearest_words(name, known, most=3, cutoff=0.3)
        hint = f"did you mean {' or '.join(similar)}?"
        if not similar:
            hint = f"checks: {', '.join(known)}"
        raise UsageError(f"there is no check {name}", hint=hint)
