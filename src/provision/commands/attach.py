"""Wait for reports of instances that were made earlier and not waited for, and file them."""

from __future__ import annotations

from provision.commands.apart import Errors, apart
from provision.commands.loading import Loaded
from provision.commands.lock import read_lock
from provision.commands.planning import place_of
from provision.commands.remote import await_and_file
from provision.commands.running import left_behind, noting
from provision.commands.verify import Verified
from provision.effects import Tell, World
from provision.errors import LockError, Refused
from provision.stores import LocalStore


def attach(loaded: Loaded, names: tuple[str, ...], world: World, tell: Tell, *, lock_wait_s: float = 0, failed: Errors | None = None) -> tuple[Verified, ...]:
    """Wait for the report of each named target's instance and file it. Raises Refused where no instance is recorded, WorldError where none comes.

    With `failed`, an error of one target among several is kept there, and the others are waited for.
    """
    lock = read_lock(loaded, world)
    if lock is None:
        raise LockError(f"there is no {loaded.lock_path}", hint=f"make the instance with `provision apply {loaded.path}`")
    store = LocalStore(loaded.folder, world)
    done = []
    with store.exclusive(lock_wait_s, tell):
        places = {name: place_of(loaded, lock, name, world)[1] for name in names}
        for place in places.values():
            if store.load().resource(place.address, "instance") is None:
                raise Refused(f"no instance is recorded for {place.address}", hint=f"make it with `{place.command('apply')}`")
        with noting(lambda: left_behind(places.values(), store.ledger())):
            for name, place in places.items():
                with apart(name, names, failed, tell):
                    proven = await_and_file(place, store.load(), store, world, tell)
                    sandbox = place.stand_in is not None
                    done.append(Verified(proven.report, proven.json_path, proven.html_path, proven.state, sandbox=sandbox, taken=proven.taken))
    return tuple(done)


def waiting(loaded: Loaded, world: World) -> tuple[str, ...]:
    """Return the targets of a spec for which an instance is recorded."""
    state = LocalStore(loaded.folder, world).ledger().state
    return tuple(name for name in loaded.spec.targets if state.resource(f"{loaded.stem}/{name}", "instance") is not None)
