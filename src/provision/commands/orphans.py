"""Lists labelled resources that no state tracks: they may cost money unseen."""

from __future__ import annotations

from collections.abc import Iterable

from provision.commands.shared.load import LoadedSpec
from provision.effects.system import System
from provision.errors import UsageError
from provision.kinds import registry_in_use
from provision.state_store import LocalStore
from provision.targets import load_driver
from provision.targets.capabilities import ListsOrphans, OrphanList


def list_orphans(specs: Iterable[LoadedSpec], system: System) -> OrphanList:
    """Return the orphans of every kind that can have some, by the ledgers next to these specs.

    Raises:
        UsageError: none of the specs names where to look.
    """
    ledgers = [
        (loaded.declared or loaded.spec, LocalStore(loaded.folder, system).load_ledger())
        for loaded in specs
    ]
    kinds, listings = [], []
    for kind in registry_in_use.get().kinds:
        driver = load_driver(kind)
        if driver is not None and isinstance(driver, ListsOrphans):
            kinds.append(kind.name)
            listing = driver.list_orphans(ledgers, system)
            if listing is not None:
                listings.append(listing)
    if not listings:
        raise UsageError(
            f"no project to search: none of these specs has a target of kind {' or '.join(kinds)}",
            hint="pass the specs whose instances may still exist",
        )
    failed = {place: error for listing in listings for place, error in listing.failed.items()}
    return OrphanList(tuple(orphan for listing in listings for orphan in listing.orphans), failed)
