"""Wait for reports of instances that were made earlier and not waited for, and file them."""

from __future__ import annotations

from provision.commands.instance_notices import leftover_notice, note_on_interrupt
from provision.commands.instance_verification import await_report
from provision.commands.lock import read_lock
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.multi_target import ErrorsByTarget, collect_errors
from provision.commands.shared.target_plans import get_driver_and_context
from provision.commands.verify import VerificationResult
from provision.effects import ProgressCallback, System
from provision.errors import LockError, Refused
from provision.state_store import LocalStore


def attach(
    loaded: LoadedSpec,
    names: tuple[str, ...],
    system: System,
    progress: ProgressCallback,
    *,
    lock_wait_s: float = 0,
    failed: ErrorsByTarget | None = None,
) -> tuple[VerificationResult, ...]:
    """Wait for the report of each named target's instance and file it. Raises Refused where no
    instance is recorded, WorldError where none comes.

    With `failed`, an error of one target among several is kept there, and the others are waited
    for.
    """
    lock = read_lock(loaded, system)
    if lock is None:
        raise LockError(
            f"there is no {loaded.lock_path}",
            hint=f"make the instance with `provision apply {loaded.path}`",
        )
    store = LocalStore(loaded.folder, system)
    done = []
    with store.exclusive(lock_wait_s, progress):
        contexts = {name: get_driver_and_context(loaded, lock, name, system)[1] for name in names}
        for context in contexts.values():
            if store.load().resource(context.address, "instance") is None:
                raise Refused(
                    f"no instance is recorded for {context.address}",
                    hint=f"make it with `{context.command('apply')}`",
                )
        with note_on_interrupt(lambda: leftover_notice(contexts.values(), store.load_ledger())):
            for name, context in contexts.items():
                with collect_errors(name, names, failed, progress):
                    proven = await_report(context, store.load(), store, system, progress)
                    sandbox = context.sandbox_sources is not None
                    done.append(
                        VerificationResult(
                            proven.report,
                            proven.json_path,
                            proven.html_path,
                            proven.state,
                            sandbox=sandbox,
                            on_failure_note=proven.on_failure_note,
                        )
                    )
    return tuple(done)


def list_instance_targets(loaded: LoadedSpec, system: System) -> tuple[str, ...]:
    """Return the targets of a spec for which an instance is recorded."""
    state = LocalStore(loaded.folder, system).load_ledger().state
    return tuple(
        name
        for name in loaded.spec.targets
        if state.resource(f"{loaded.stem}/{name}", "instance") is not None
    )
