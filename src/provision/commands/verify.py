"""Runs the probe where a target is, and stores its report and verdict."""

from __future__ import annotations

import re

from provision.agent.probe.checks import CHECKS
from provision.commands.shared.executor import Executor, open_executor
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import require_current_lock
from provision.commands.shared.package_contents import build_wheels
from provision.commands.shared.report_store import VerificationResult, store_evidence
from provision.commands.shared.target_plans import (
    ErrorsByTarget,
    collect_errors,
    get_driver_and_context,
    leftover_notice,
    note_on_interrupt,
)
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import UsageError
from provision.lock import Lock
from provision.spelling import nearest_word
from provision.targets.base import ProbeEvidence, VerifyOptions


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
    refuse_unknown_checks(only)
    lock = read_verified_lock(loaded, system)
    build_wheels(loaded, lock, names, system, progress)
    results: list[VerificationResult] = []
    with open_executor(loaded, system, progress, lock_wait_s=lock_wait_s) as executor:
        release_interrupted(executor)
        for name in names:
            with collect_errors(name, names, failed, progress):
                result = verify_existing_target(loaded, lock, name, executor, only)
                if result is not None:
                    results.append(result)
    return tuple(results)


def read_verified_lock(loaded: LoadedSpec, reader: Reader) -> Lock:
    """Return the lock of a spec; raises LockError if it is missing or stale."""
    hint = f"create the environment with `{loaded.command('apply')}`"
    return require_current_lock(loaded, reader, product="environment", hint=hint)


def release_interrupted(executor: Executor) -> None:
    """Give up what interrupted verifications still occupy."""
    for intent in executor.ledger.intents:
        executor.driver_of(intent).release_interrupted(intent, executor)


def verify_existing_target(
    loaded: LoadedSpec, lock: Lock, name: str, executor: Executor, only: tuple[str, ...]
) -> VerificationResult | None:
    """Verify a target and store its report; return None if the report comes later.

    Raises:
        Refused: the target is not complete, or verifies itself elsewhere.
    """
    driver, context = get_driver_and_context(loaded, lock, name, executor.system)
    with note_on_interrupt(lambda: leftover_notice((context,), executor.ledger)):
        driver.require_verifiable(context, executor.ledger, executor.system, only)
        evidence = driver.verify(context, executor, VerifyOptions(rerun=True, only=only))
        if not isinstance(evidence, ProbeEvidence):
            return None
        return store_evidence(driver, context, evidence, executor)


def _pad_number(name: str) -> str:
    """Return a check's id in the usual form: P02 for "p2"."""
    parts = re.fullmatch(r"([A-Z])(\d)", name.upper())
    return f"{parts[1]}0{parts[2]}" if parts else name.upper()


def refuse_unknown_checks(only: tuple[str, ...]) -> None:
    """Raise UsageError for a check that does not exist."""
    known = [check.id for check in CHECKS]
    for name in only:
        if name.partition(":")[0] in known:
            continue
        near = nearest_word(_pad_number(name), known, 1)
        hint = f"did you mean {near}?" if near else f"checks: {', '.join(known)}"
        raise UsageError(f"there is no check {name}", hint=hint)
