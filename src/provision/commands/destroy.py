"""Removes exactly what apply made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from provision.commands.shared.executor import Executor
from provision.commands.shared.load import state_folder
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import ErrorsByTarget, collect_errors
from provision.effects.local import RemoveTree
from provision.effects.system import ProgressCallback, System
from provision.errors import Refused, UsageError
from provision.kinds import registry_in_use
from provision.plan import Action
from provision.spec import DEFAULT_TARGET, EARLIER_DEFAULT_TARGET
from provision.state import REMOVAL_EFFECTS, Ledger
from provision.state_store import LocalStore
from provision.targets import get_recorded_driver, load_drivers

Confirm = Callable[[tuple[Action, ...]], None]
"""Shows the removals and requests a confirmation; raises Refused without it."""


_FILES = ("journal.json", "state.json", "lock", "use", "logs")
_FOLDERS = ("envs", "reports")
"""The files and folders of every kind in the state folder; only empty folders are removed."""


def destroy(
    path: Path,
    names: tuple[str, ...],
    system: System,
    confirm: Confirm,
    progress: ProgressCallback,
    *,
    everything: bool = False,
    lock_wait_s: float = 0,
    sandbox: bool = False,
    force: bool = False,
    failed: ErrorsByTarget | None = None,
) -> tuple[Action, ...]:
    """Remove what was made for a spec's targets, and return the actions.

    It works from the ledger, so the spec itself may be invalid or gone. With `failed`, an error
    of one target among several is collected there, and the others are removed.

    Raises:
        UsageError: several targets exist and none is named, or a named one does not exist.
        Refused: declined, or a program runs in an environment and `force` is not given.
    """
    folder = state_folder(path, sandbox=sandbox)
    store = LocalStore(folder, system)
    if not system.exists(folder):
        if path.exists():
            return ()
        raise UsageError(
            f"{path} does not exist, and its folder has no state file and no resources",
            hint="check the file name",
        )
    shown = select_removals(path, names, store.load_ledger(), folder, everything=everything)
    if not shown:
        return ()
    confirm(shown)
    removed: list[Action] = []
    with store.exclusive(lock_wait_s, progress):
        writer = StateWriter(store, store.load_ledger())
        executor = Executor(writer, system, progress, registry_in_use.get())
        actions = select_removals(path, names, executor.ledger, folder, everything=everything)
        if [action.title for action in actions] != [action.title for action in shown]:
            confirm(actions)  # another run changed something while this one was waiting
        targets = {
            address: tuple(group)
            for address, group in groupby(actions, key=lambda action: action.address)
        }
        for address, group in targets.items():
            with collect_errors(address.rpartition("/")[2], tuple(targets), failed, progress):
                removed.extend(destroy_target(address, group, executor, force=force))
        if not executor.state.resources and not executor.ledger.intents:
            remove_state_folder(folder, system, progress)
    return tuple(removed)


def destroy_target(
    address: str, actions: tuple[Action, ...], executor: Executor, *, force: bool
) -> Iterator[Action]:
    """Remove what is recorded at an address; yield each action once it is done."""
    intents = executor.ledger.find_all_interrupted(address)
    driver = get_recorded_driver(address, executor.ledger, executor.registry)
    driver.require_destroyable(intents, executor.system)
    if not force:
        _refuse_in_use(actions, executor.system)
    for action in actions:
        executor.perform(driver, action)
        yield action
    for intent in intents:
        executor.close_intent(intent)


def remove_state_folder(folder: Path, system: System, progress: ProgressCallback) -> None:
    """Remove our files from a state folder that records nothing, and the folder if it is empty."""
    files, folders = list(_FILES), list(_FOLDERS)
    for driver in load_drivers(registry_in_use.get()):
        files += driver.own_files
        folders += driver.own_folders
    for name in files:
        system.perform(RemoveTree(folder / name), progress)
    for name in folders:
        if system.list_folder(folder / name) == ():
            system.perform(RemoveTree(folder / name), progress)
        elif system.exists(folder / name):
            progress(
                f"{folder / name} is kept because it contains files that the state does not list"
            )
    if system.list_folder(folder) in ((), (".gitignore",)):
        system.perform(RemoveTree(folder), progress)


def list_addresses(ledger: Ledger) -> list[str]:
    """Return the addresses of everything that a ledger records."""
    recorded = {key.rpartition("#")[0] for key in ledger.state.resources}
    return sorted(recorded | {intent.address for intent in ledger.intents})


def select_removals(
    path: Path, names: tuple[str, ...], ledger: Ledger, folder: Path, *, everything: bool
) -> tuple[Action, ...]:
    """Return the removals of a spec's targets, or of the named ones.

    Raises:
        UsageError: several targets exist and none is named, or a named one does not exist.
    """
    addresses = list_addresses(ledger)
    targets: dict[str, str] = {}
    for address in addresses:
        stem, _, name = address.rpartition("/")
        if stem == path.stem:
            targets[name] = address
    if names == (EARLIER_DEFAULT_TARGET,) and list(targets) == [DEFAULT_TARGET]:
        names = (DEFAULT_TARGET,)
    for name in names:
        if name not in targets:
            raise UsageError(
                f"nothing is recorded for target `{name}`",
                hint=f"recorded targets: {', '.join(targets) or 'none'}",
            )
    if not targets and not path.exists():
        raise UsageError(
            f"{path} does not exist, and no target is recorded for it",
            hint=f"check the path; recorded targets: {', '.join(addresses) or 'none'}",
        )
    if len(targets) > 1 and not names and not everything:
        raise UsageError(
            f"{path.stem} has several targets",
            why=", ".join(targets.values()),
            hint="select targets with --target, or all targets with --all",
        )
    return tuple(
        action
        for name, address in targets.items()
        if not names or name in names
        for action in plan_removals(address, ledger, folder)
    )


def plan_removals(address: str, ledger: Ledger, folder: Path) -> Iterator[Action]:
    """Yield the removals of an address, as they are possible with this state.

    A state from elsewhere may destroy resources elsewhere, but nothing on this machine.
    """
    driver = get_recorded_driver(address, ledger, registry_in_use.get())
    for action in driver.destroy(address, folder, ledger):
        remote = tuple(
            effect for effect in action.effects if not isinstance(effect, REMOVAL_EFFECTS)
        )
        if not driver.destroys_from_elsewhere:
            ledger.refuse_foreign_removals(action.effects, folder)
        elif ledger.foreign_reason:
            action = replace(action, effects=remote)  # noqa: PLW2901
        yield action


def _refuse_in_use(actions: tuple[Action, ...], system: System) -> None:
    """Raise Refused if a program runs in an environment that would be removed."""
    for action in actions:
        for effect in action.effects:
            if not isinstance(effect, RemoveTree) or effect.path.parent.name != "envs":
                continue
            if programs := system.find_running_programs(effect.path):
                raise Refused(
                    f"the environment {effect.path.name} is in use",
                    why="\n".join(programs),
                    hint="stop the program that is using it, or remove the environment anyway "
                    "with --force",
                )
