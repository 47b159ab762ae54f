"""Waits for reports of verifications that were not waited for, and stores them."""

from __future__ import annotations

from provision.commands.shared.executor import open_executor
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.lock_file import require_lock
from provision.commands.shared.report_store import VerificationResult, store_evidence
from provision.commands.shared.target_plans import (
    ErrorsByTarget,
    collect_errors,
    get_driver_and_context,
    leftover_notice,
    list_recorded_targets,
    missing_instance_error,
    note_on_interrupt,
)
from provision.commands.shared.target_selection import select_targets
from provision.effects.system import ProgressCallback, System
from provision.state_store import LocalStore
from provision.targets import AnyDriver, get_driver
from provision.targets.capabilities import Attachable


def attach(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    *,
    lock_wait_s: float = 0,
    failed: ErrorsByTarget | None = None,
) -> tuple[VerificationResult, ...]:
    """Wait for the report of each named target, and store it.

    With `failed`, an error of one target among several is collected there, and the others go on.

    Raises:
        Refused: a target has nothing to wait for.
        ExternalError: no report came.
    """
    hint = f"create the instance with `{loaded.command('apply')}`"
    lock = require_lock(loaded, system, hint=hint)
    results = []
    with open_executor(loaded, system, progress, lock_wait_s=lock_wait_s) as executor:
        attachable = list_recorded_targets(loaded, executor.state, _is_attachable)
        contexts = {name: get_driver_and_context(loaded, lock, name, system)[1] for name in names}
        for name, context in contexts.items():
            if name not in attachable:
                raise missing_instance_error(context.address, context.command("apply"))
        with note_on_interrupt(lambda: leftover_notice(contexts.values(), executor.ledger)):
            for name, context in contexts.items():
                with collect_errors(name, names, failed, progress):
                    driver = get_driver(context)
                    if isinstance(driver, Attachable):
                        evidence = driver.attach(context, executor)
                        results.append(store_evidence(driver, context, evidence, executor))
    return tuple(results)


def select_instance_targets(
    loaded: LoadedSpec, names: tuple[str, ...], system: System
) -> tuple[str, ...]:
    """Return the named targets, or all with a recorded instance.

    Raises:
        Refused: no instance is recorded.
    """
    if names:
        return select_targets(loaded, names, everything=False)
    state = LocalStore(loaded.folder, system).load_ledger().state
    recorded = list_recorded_targets(loaded, state, _is_attachable)
    if not recorded:
        raise missing_instance_error(loaded.stem, loaded.command("apply"))
    return recorded


def _is_attachable(driver: AnyDriver) -> bool:
    return isinstance(driver, Attachable)
