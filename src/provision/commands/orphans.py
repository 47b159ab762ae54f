"""Lists labelled resources that no state tracks: they may cost money unseen."""

from __future__ import annotations

from collections.abc import Iterable

from provision.commands.shared.load import LoadedSpec
from provision.effects.system import System
from provision.errors import ProvisionError
from provision.kinds import registry_in_use
from provision.state_store import LocalStore
from provision.targets import load_drivers
from provision.targets.capabilities import ListsOrphans, Orphan, OrphanList


def list_orphans(specs: Iterable[LoadedSpec], system: System) -> OrphanList:
    """Return the orphans of every kind that can have some, by the ledgers next to these specs.

    Raises:
        UsageError: none of the specs names where to look.
    """
    ledgers = [
        (loaded.declared or loaded.spec, LocalStore(loaded.folder, system).load_ledger())
        for loaded in specs
    ]
    orphans: list[Orphan] = []
    failed: dict[str, ProvisionError] = {}
    for driver in load_drivers(registry_in_use.get()):
        if isinstance(driver, ListsOrphans):
            listing = driver.list_orphans(ledgers, system)
            orphans += listing.orphans
            failed |= listing.failed
    return OrphanList(tuple(orphans), failed)
