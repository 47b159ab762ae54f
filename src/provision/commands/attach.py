"""Wait for reports of instances that were made earlier and not waited for, and file them."""

from __future__ import annotations

from provision.commands.loading import Loaded
from provision.commands.lock import read_lock
from provision.commands.planning import place_of
from provision.commands.remote import await_and_file
from provision.commands.verify import Verified
from provision.effects import Tell, World
from provision.errors import LockError, Refused
from provision.stores import LocalStore


def attach(loaded: Loaded, names: tuple[str, ...], world: World, tell: Tell, *, lock_wait_s: float = 0) -> tuple[Verified, ...]:
    """Wait for the report of each named target's instance and file it. Raises Refused where no instance is recorded, WorldError where none comes."""
    lock = read_lock(loaded, world)
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=f"make the instance with `provision apply {loaded.path}`")
    store = LocalStore(loaded.folder, world)
    done = []
    with store.exclusive(lock_wait_s, tell):
        state = store.ledger().state
        for name in names:
            _, place = place_of(loaded, lock, name, world)
            if state.resource(place.address, "instance") is None:
                raise Refused(f"no instance is recorded for {place.address}", hint=f"make it with `provision apply {loaded.path}`")
            proven = await_and_file(place, state, store, world, tell)
            state = proven.state
            sandbox = place.stand_in is not None
            done.append(Verified(proven.report, proven.json_path, proven.html_path, state, sandbox=sandbox, taken=proven.taken))
    return tuple(done)


def waiting(loaded: Loaded, world: World) -> tuple[str, ...]:
    """Return the targets of a spec for which an instance is recorded."""
    state = LocalStore(loaded.folder, world).ledger().state
    return tuple(name for name in loaded.spec.targets if state.resource(f"{loaded.stem}/{name}", "instance") is not None)
