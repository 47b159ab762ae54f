"""Remove exactly what apply made, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from provision.commands.adopt import REMOVAL_EFFECTS, refuse_foreign_removals
from provision.commands.instance_verification import refuse_pending_creation
from provision.commands.shared.load import state_folder
from provision.commands.shared.multi_target import ErrorsByTarget, collect_errors
from provision.commands.shared.target_plans import NOTEBOOK_PART
from provision.effects import ProgressCallback, RemoveTree, System
from provision.errors import Refused, UsageError
from provision.plan import Action
from provision.state import Ledger
from provision.state_store import LocalStore
from provision.targets import DRIVERS
from provision.targets.colab import SESSION_PART
from provision.targets.workbench import is_former_part

Confirm = Callable[[tuple[Action, ...]], None]
"""Shows what goes and asks; raises Refused when the answer is no."""


_FILES, _FOLDERS = (
    (
        "journal.json",
        "state.json",
        "lock",
        "use",
        "colab/sessions.json",
        "colab/sessions.json.lock",
    ),
    ("envs", "reports", "colab"),
)
"""What apply and the command line of Colab make in the folder next to the spec. The folders go when
they are empty: the rest may be another's.
"""


def addresses(stem: str, ledger: Ledger) -> tuple[str, ...]:
    """Return the addresses of a spec at which something is recorded or was left half-made."""
    return tuple(
        sorted(
            address for address in _recorded_addresses(ledger) if address.rpartition("/")[0] == stem
        )
    )


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
    """Remove what was made for a spec's targets and return what went. It works from the ledger, so
    the spec itself may be broken or gone.

    With `failed`, an error of one target among several is kept there, and the others are
    removed. Raises UsageError when several targets exist and none is
    named, or one is named that does not exist; Refused when declined, and where a program runs
    in an environment, but with `force`; StateError and WorldError.
    """
    folder = state_folder(path, sandbox=sandbox)
    store = LocalStore(folder, system)
    if not system.exists(folder):
        return _check_spec_exists(path)
    shown = _removals(path, names, store.load_ledger(), folder, everything=everything)
    if not shown:
        return ()
    confirm(shown)
    with store.exclusive(lock_wait_s, progress):
        ledger = store.load_ledger()
        actions = _removals(path, names, ledger, folder, everything=everything)
        if [action.title for action in actions] != [action.title for action in shown]:
            confirm(actions)  # another run changed something while this one was waiting
        state, gone = ledger.state, list[Action]()
        targets = {
            address: tuple(group)
            for address, group in groupby(actions, key=lambda action: action.address)
        }
        for address, group in targets.items():
            with collect_errors(address.rpartition("/")[2], tuple(targets), failed, progress):
                refuse_pending_creation(ledger.find_all_interrupted(address), system)
                if not force:
                    _refuse_in_use(group, system)
                for action in group:
                    progress(f"- {action.title}")
                    for effect in action.effects:
                        system.perform(effect, progress)
                    store.save(after := state.after_action(action), expecting=state.serial)
                    state, gone = after, [*gone, action]
                for intent in ledger.find_all_interrupted(address):
                    store.close_intent(intent)
        if not state.resources and not store.read_intents():
            for name in _FILES:
                system.perform(RemoveTree(folder / name), progress)
            for name in _FOLDERS:
                if system.list_folder(folder / name) == ():
                    system.perform(RemoveTree(folder / name), progress)
                elif system.exists(folder / name):
                    progress(f"{folder / name} stays: it holds what this state does not name")
            if system.list_folder(folder) in ((), (".gitignore",)):
                system.perform(RemoveTree(folder), progress)
    return tuple(gone)


def _removals(
    path: Path, names: tuple[str, ...], ledger: Ledger, folder: Path, *, everything: bool
) -> tuple[Action, ...]:
    found = addresses(path.stem, ledger)
    known = [address.rpartition("/")[2] for address in found]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise UsageError(
            f"nothing is recorded of target {wrong[0]}",
            hint=f"recorded: {', '.join(known) or 'nothing'}",
        )
    if not found and not path.exists():
        raise UsageError(
            f"{path} does not exist, and nothing is recorded of it",
            hint=f"recorded here: {', '.join(sorted(_recorded_addresses(ledger))) or 'nothing'}",
        )
    if len(found) > 1 and not names and not everything:
        raise UsageError(
            f"{path.stem} has several targets",
            why=", ".join(found),
            hint="name them with --target, or take all with --all",
        )
    chosen = [address for address in found if not names or address.rpartition("/")[2] in names]
    return tuple(
        _without_foreign_removals(action, ledger, folder)
        for address in chosen
        for action in DRIVERS[_recorded_kind(address, ledger)].destroy(address, folder, ledger)
    )


def _refuse_in_use(actions: tuple[Action, ...], system: System) -> None:
    """Raise Refused where a program runs in an environment that would be removed."""
    for path in (
        effect.path
        for action in actions
        for effect in action.effects
        if isinstance(effect, RemoveTree)
    ):
        if path.parent.name == "envs" and (users := system.find_running_programs(path)):
            hint = "end it first, or remove the environment under it with --force"
            raise Refused(f"{path.name} is in use", why="\n".join(users), hint=hint)


def _without_foreign_removals(action: Action, ledger: Ledger, folder: Path) -> Action:
    """Return a removal as it is done with this state: a foreign one removes what is elsewhere, and
    nothing on this machine.

    Raises StateError where that leaves nothing of it.
    """
    remote = tuple(effect for effect in action.effects if not isinstance(effect, REMOVAL_EFFECTS))
    if not ledger.foreign_reason or len(remote) == len(action.effects):
        return action
    if _recorded_kind(action.address, ledger) != "workbench":
        refuse_foreign_removals(ledger, action.effects, folder)
    return replace(action, effects=remote)


def _recorded_kind(address: str, ledger: Ledger) -> str:
    """Return the kind of what is recorded at an address, whatever the spec says today."""
    intent = ledger.find_interrupted(address)
    if any(
        ledger.state.resource(address, part) is not None
        or (intent is not None and intent.part == part)
        for part in (NOTEBOOK_PART, SESSION_PART)
    ):
        return "colab"
    instances = any(
        part == "instance" or is_former_part(part) for part in ledger.state.parts(address)
    )
    return "workbench" if instances or (intent is not None and intent.names) else "local"


def _check_spec_exists(path: Path) -> tuple[Action, ...]:
    if not path.exists():
        raise UsageError(
            f"{path} does not exist, and nothing was made beside it", hint="check the name"
        )
    return ()


def _recorded_addresses(ledger: Ledger) -> set[str]:
    recorded = {key.rpartition("#")[0] for key in ledger.state.resources}
    return recorded | {intent.address for intent in ledger.intents}
