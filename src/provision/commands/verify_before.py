"""Runs the probe on the image of a target before the target exists, and stores its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from provision.commands.lock import LockResult, ensure_lock, write_lock
from provision.commands.shared.executor import Executor
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.package_contents import build_wheels
from provision.commands.shared.report_store import VerificationResult, write_page
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import (
    ErrorsByTarget,
    collect_errors,
    get_driver_and_context,
    leftover_notice,
    note_on_interrupt,
    raise_refusals,
)
from provision.effects.system import ProgressCallback, System
from provision.errors import Refused, UsageError
from provision.lock import Lock
from provision.plan import Plan
from provision.state import Ledger
from provision.state_store import LocalStore
from provision.targets import AnyDriver, TargetContext, find_driver, load_driver
from provision.targets.base import ProbeEvidence
from provision.targets.capabilities import ImageVerification, VerifiesImage
from provision.targets.stored_verdict import ImageVerificationRecord
from provision.verification.device_files import probe_digest

Confirm = Callable[[Plan, LockResult], None]
"""Shows the plan and requests a confirmation; raises Refused without it."""


@dataclass(frozen=True, slots=True)
class _Target:
    driver: AnyDriver
    verifier: VerifiesImage
    context: TargetContext
    nonce: str


def verify_before(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    confirm: Confirm,
    progress: ProgressCallback,
    *,
    lock_wait_s: float = 0,
    failed: ErrorsByTarget | None = None,
) -> tuple[VerificationResult, ...]:
    """Verify the images of targets. Whatever is started for it is deleted, however it ends.

    With `failed`, an error of one target among several is collected there, and the others go on.

    Raises:
        UsageError: a target is of a kind that has no image.
        LockError: nothing can be locked.
        Refused: declined, or a field that cannot be honoured.
    """
    _refuse_other_kinds(loaded, names)
    locked = ensure_lock(loaded, system, progress)
    build_wheels(loaded, locked.lock, names, system, progress)
    targets = {name: _find_target(loaded, locked.lock, name, system) for name in names}
    store = LocalStore(loaded.folder, system)
    shown = _plan(loaded, targets, store.load_ledger(), system)
    confirm(_to_plan(shown, locked), locked)
    results: list[VerificationResult] = []
    with store.exclusive(lock_wait_s, progress):
        ledger = store.load_or_create_ledger()
        plans = _plan(loaded, targets, ledger, system)
        if _describe(plans) != _describe(shown):
            confirm(_to_plan(plans, locked), locked)  # another run changed something meanwhile
        if locked.fresh:
            write_lock(locked, system, progress)
        executor = Executor(StateWriter(store, ledger), system, progress, loaded.spec.registry)
        contexts = [target.context for target in targets.values()]
        with note_on_interrupt(lambda: leftover_notice(contexts, executor.ledger)):
            for name, target in targets.items():
                with collect_errors(name, names, failed, progress):
                    planned = plans[name]
                    evidence = target.verifier.verify_image(target.context, executor, planned)
                    results.append(_store(target, evidence, planned, executor))
    return tuple(results)


def _refuse_other_kinds(loaded: LoadedSpec, names: tuple[str, ...]) -> None:
    for name in names:
        if isinstance(find_driver(loaded.spec, name), VerifiesImage):
            continue
        kinds = [
            kind.name
            for kind in loaded.spec.registry.kinds
            if isinstance(load_driver(kind), VerifiesImage)
        ]
        raise UsageError(
            f"{name} cannot be verified before it exists",
            why=f"targets of kind {loaded.spec.targets[name].kind} have no image to verify; "
            f"kinds with an image: {', '.join(kinds) or 'none'}",
            hint=f"create it and verify it with `{loaded.command('apply', name)}`",
        )


def _find_target(loaded: LoadedSpec, lock: Lock, name: str, system: System) -> _Target:
    driver, context = get_driver_and_context(loaded, lock, name, system)
    assert isinstance(driver, VerifiesImage)  # noqa: S101
    if lock.environment(name, context.platform) is None:
        raise Refused(
            f"the lock has no environment for {context.address} on {context.platform}",
            hint=f"add {context.platform} to `platforms` in the spec, and lock again",
        )
    return _Target(driver, driver, context, system.token())


def _plan(
    loaded: LoadedSpec, targets: Mapping[str, _Target], ledger: Ledger, system: System
) -> dict[str, ImageVerification]:
    plans = {}
    for name, target in targets.items():
        planned = target.verifier.plan_image_verification(
            target.context, ledger, system, target.nonce
        )
        raise_refusals(loaded, planned.refusals)
        plans[name] = planned
    return plans


def _to_plan(plans: Mapping[str, ImageVerification], locked: LockResult) -> Plan:
    actions = tuple(planned.action for planned in plans.values())
    return Plan(actions, {}, "", locked.lock.digest, "", 0)


def _describe(plans: Mapping[str, ImageVerification]) -> list[tuple[object, ...]]:
    """Return what a person confirms."""
    actions = [planned.action for planned in plans.values()]
    return [(action.operation, action.title, action.reason, action.notes) for action in actions]


def _store(
    target: _Target, evidence: ProbeEvidence, planned: ImageVerification, executor: Executor
) -> VerificationResult:
    """Write the page of a report and record it: as evidence of its own, not as a verdict."""
    context, report = target.context, evidence.report
    page = write_page(evidence, context, executor, f"{context.target}, on the same image")
    folder = context.folder
    record = ImageVerificationRecord(
        f"verification of the image of {context.target}: {report.verdict}",
        report.verdict,
        target.driver.expectations_digest(context, probe_digest()),
        planned.image,
        planned.machine,
        evidence.path.relative_to(folder).as_posix(),
        page.relative_to(folder).as_posix(),
        executor.system.now(),
        (evidence.path.parent.relative_to(folder).as_posix(),),
        planned.not_shown,
        report.sentence,
    )
    executor.record(context.address, record.part, record.to_json())
    return VerificationResult(
        report,
        evidence.path,
        page,
        sandbox=context.sandbox_sources is not None,
        not_shown=planned.not_shown,
    )
