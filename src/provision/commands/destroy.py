"""Remove exactly what apply made, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from provision.effects import RemoveTree, Tell, World
from provision.errors import UsageError
from provision.plan import Action
from provision.state import Ledger
from provision.stores import LocalStore
from provision.targets import TARGETS

Agree = Callable[[tuple[Action, ...]], None]
"""Shows what goes and asks; raises Refused when the answer is no."""


_OURS = ("envs", "reports", "journal.json", "state.json", "lock")
"""What apply makes in the folder beside the spec."""


@dataclass(frozen=True, slots=True)
class Destroyed:
    """What was removed; `emptied` when the folder of our own files went too, since it held nothing more."""

    actions: tuple[Action, ...]
    emptied: bool


def addresses(stem: str, ledger: Ledger) -> tuple[str, ...]:
    """Return the addresses of a spec at which something is recorded or was left half-made."""
    recorded = {key.partition("#")[0] for key in ledger.state.resources}
    begun = {ledger.interrupted.address} if ledger.interrupted is not None else set()
    return tuple(sorted(address for address in recorded | begun if address.partition("/")[0] == stem))


def destroy(path: Path, names: tuple[str, ...], world: World, agree: Agree, tell: Tell, *, everything: bool = False, lock_wait_s: float = 0) -> Destroyed:
    """Remove what was made for a spec's targets. It works from the ledger, so the spec itself may be broken or gone.

    Raises UsageError when several targets exist and none is named, Refused when declined, StateError and WorldError.
    """
    folder = path.resolve().parent / ".provision"
    store = LocalStore(folder, world)
    if not world.exists(folder):
        return Destroyed((), emptied=False)
    with store.exclusive(lock_wait_s, tell):
        ledger = store.ledger()
        chosen = _chosen(addresses(path.stem, ledger), names, path.stem, everything=everything)
        actions = tuple(action for address in chosen for action in TARGETS["local"].destroy(address, folder, ledger))
        if actions:
            agree(actions)
        state = ledger.state
        for action in actions:
            tell(f"- {action.title}")
            for effect in action.effects:
                world.perform(effect, tell)
            after = state.after(action)
            store.save(after, expecting=state.serial)
            state = after
        if actions and ledger.interrupted is not None and ledger.interrupted.address in chosen:
            store.end()
        emptied = not state.resources and store.interrupted() is None
        for name in _OURS if emptied else ():
            world.perform(RemoveTree(folder / name), tell)
        if emptied and world.entries(folder) in ((), (".gitignore",)):
            world.perform(RemoveTree(folder), tell)
    return Destroyed(actions, emptied)


def _chosen(found: tuple[str, ...], names: tuple[str, ...], stem: str, *, everything: bool) -> tuple[str, ...]:
    if names:
        return tuple(address for address in found if address.partition("/")[2] in names)
    if len(found) > 1 and not everything:
        raise UsageError(f"{stem} has several targets", why=", ".join(found), hint="name them with --target, or take all with --all")
    return found
