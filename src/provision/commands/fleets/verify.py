"""Verifies the existing targets of a fleet again, several at a time."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from provision.commands.fleets.members import Fleet, FleetTarget
from provision.commands.fleets.parallel_run import Job, ParallelResult, ParallelRun, Watcher
from provision.commands.fleets.planning import exclusive_use
from provision.commands.shared.executor import Executor
from provision.commands.shared.package_contents import build_wheels
from provision.commands.shared.state_writer import StateWriter
from provision.commands.verify import (
    read_verified_lock,
    refuse_unknown_checks,
    release_interrupted,
    verify_existing_target,
)
from provision.effects.system import ProgressCallback, System
from provision.state_store import LocalStore


def verify_fleet(
    fleet: Fleet,
    system: System,
    run: ParallelRun,
    watcher: Watcher,
    *,
    only: tuple[str, ...] = (),
    lock_wait_s: float = 0,
) -> ParallelResult:
    """Verify targets that exist; the value of an outcome is a VerificationResult, or None.

    Raises:
        UsageError: there is no such check.
        StateError: a state is damaged, foreign, or locked by another run.
    """
    refuse_unknown_checks(only)
    with ExitStack() as stack:
        writers: dict[Path, StateWriter] = {}
        for folder in sorted({target.loaded.folder for target in fleet.targets}):
            store, progress = LocalStore(folder, system), partial(watcher.progress, str(folder))
            stack.enter_context(store.exclusive(lock_wait_s, progress))
            writers[folder] = StateWriter(store, store.load_ledger())
            registry = fleet.targets[0].loaded.spec.registry
            release_interrupted(Executor(writers[folder], system, progress, registry))

        def job(target: FleetTarget) -> Job:
            def work(progress: ProgressCallback) -> object:
                loaded = target.loaded
                lock = read_verified_lock(loaded, system)
                build_wheels(loaded, lock, (target.name,), system, progress)
                writer, registry = writers[loaded.folder], loaded.spec.registry
                executor = Executor(writer, system, progress, registry, target.address)
                return verify_existing_target(loaded, lock, target.name, executor, only)

            return Job(target.label, work, exclusive_use(target))

        return run.run([job(target) for target in fleet.targets], watcher)
