"""Removes what was made for several targets, several at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from provision.commands.destroy import (
    destroy_target,
    list_addresses,
    plan_removals,
    remove_state_folder,
    select_removals,
)
from provision.commands.fleets.members import find_offer
from provision.commands.fleets.parallel_run import Job, ParallelResult, ParallelRun, Watcher
from provision.commands.fleets.planning import THIS_MACHINE
from provision.commands.lint_files import is_searched
from provision.commands.shared.executor import Executor
from provision.commands.shared.load import LoadedSpec, load_spec, state_folder
from provision.commands.shared.state_writer import StateWriter
from provision.effects.system import ProgressCallback, Reader, System
from provision.errors import ProvisionError, Refused
from provision.facts.machines import MachineOffer
from provision.kinds import registry_in_use
from provision.plan import Action
from provision.state_store import LocalStore
from provision.targets import get_recorded_driver


class TargetRemoval(NamedTuple):
    """The removals of one target, which the state in a folder records.

    `uses` is what the removal needs for itself; "" for nothing. `spec` is the file that it was made
    from, which may be gone.
    """

    folder: Path
    address: str
    label: str
    actions: tuple[Action, ...]
    uses: str
    spec: Path


def find_folder_removals(
    folder: Path, system: System, *, sandbox: bool
) -> tuple[TargetRemoval, ...]:
    """Return the removals of everything that states in a folder and below it record.

    Their specs may be invalid or gone.
    """
    removals: list[TargetRemoval] = []
    for parent in _find_parents(folder):
        state = state_folder(parent / "provision.yaml", sandbox=sandbox)
        if system.exists(state):
            ledger = LocalStore(state, system).load_ledger()
            actions = (
                action
                for address in list_addresses(ledger)
                for action in plan_removals(address, ledger, state)
            )
            prefix = parent.relative_to(folder).as_posix().removeprefix(".")
            removals += _group(state, actions, f"{prefix}/" if prefix else "", parent, system)
    return tuple(removals)


def find_spec_removals(
    path: Path, names: tuple[str, ...], system: System, *, sandbox: bool
) -> tuple[TargetRemoval, ...]:
    """Return the removals of the targets of a spec, or of the named ones."""
    state = state_folder(path, sandbox=sandbox)
    if not system.exists(state):
        return ()
    ledger = LocalStore(state, system).load_ledger()
    actions = select_removals(path, names, ledger, state, everything=True)
    return _group(state, actions, "", path.parent, system)


def find_prices(removals: Sequence[TargetRemoval], reader: Reader) -> dict[str, MachineOffer]:
    """Return the machines with known prices by label; those of specs that are gone are unknown."""
    specs: dict[Path, LoadedSpec | None] = {}
    offers = {}
    for removal in removals:
        if removal.spec not in specs:
            specs[removal.spec] = None
            with suppress(ProvisionError):
                specs[removal.spec] = load_spec(removal.spec, reader)
        loaded, name = specs[removal.spec], removal.address.partition("/")[2]
        if loaded is not None and name in loaded.spec.targets:
            offer = find_offer(loaded, name)
            if offer is not None:
                offers[removal.label] = offer
    return offers


def destroy_fleet(
    removals: Sequence[TargetRemoval],
    system: System,
    run: ParallelRun,
    watcher: Watcher,
    *,
    lock_wait_s: float,
    force: bool,
) -> ParallelResult:
    """Remove the targets; the value of an outcome is the tuple of the performed actions.

    Raises:
        StateError: a state is damaged, or locked by another run.
    """
    with ExitStack() as stack:
        writers: dict[Path, StateWriter] = {}
        for folder in sorted({removal.folder for removal in removals}):
            store, progress = LocalStore(folder, system), partial(watcher.progress, str(folder))
            stack.enter_context(store.exclusive(lock_wait_s, progress))
            writers[folder] = StateWriter(store, store.load_ledger())

        def job(removal: TargetRemoval) -> Job:
            def work(progress: ProgressCallback) -> tuple[Action, ...]:
                writer, registry = writers[removal.folder], registry_in_use.get()
                executor = Executor(writer, system, progress, registry, removal.address)
                return _destroy(removal, executor, force=force)

            return Job(removal.label, work, removal.uses)

        result = run.run([job(removal) for removal in removals], watcher)
        for folder, writer in writers.items():
            ledger = writer.ledger
            if not ledger.state.resources and not ledger.intents:
                remove_state_folder(folder, system, partial(watcher.progress, str(folder)))
    return result


def _destroy(removal: TargetRemoval, executor: Executor, *, force: bool) -> tuple[Action, ...]:
    actions = tuple(plan_removals(removal.address, executor.ledger, removal.folder))
    if [action.title for action in actions] != [action.title for action in removal.actions]:
        raise Refused(
            f"the resources of {removal.label} were changed by another run",
            hint="run the command again to review the removals",
        )
    return tuple(destroy_target(removal.address, actions, executor, force=force))


def _group(
    state: Path,
    actions: Iterator[Action] | Sequence[Action],
    prefix: str,
    parent: Path,
    system: System,
) -> tuple[TargetRemoval, ...]:
    ledger, registry = LocalStore(state, system).load_ledger(), registry_in_use.get()
    removals = []
    for address, group in groupby(actions, key=lambda action: action.address):
        is_here = get_recorded_driver(address, ledger, registry).platform is None
        uses = THIS_MACHINE if is_here else ""
        spec = parent / f"{address.partition('/')[0]}.yaml"
        removals.append(TargetRemoval(state, address, prefix + address, tuple(group), uses, spec))
    return tuple(removals)


def _find_parents(folder: Path) -> Iterator[Path]:
    """Yield the folders that have a state, without those that a search for specs leaves out."""
    for parent, names, _ in os.walk(folder):
        if ".provision" in names:
            yield Path(parent)
        names[:] = sorted(name for name in names if is_searched(parent, name))
