"""Lists what of a spec's lock should be renewed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from provision.commands.lock_verify import verify_lock_with_listings
from provision.commands.shared.load import load_spec
from provision.commands.shared.lock_file import require_lock
from provision.effects.system import ProgressCallback, System
from provision.errors import NetworkError
from provision.lock.outdated import (
    OutdatedItem,
    OutdatedKind,
    list_ending,
    list_patches,
    list_vulnerable,
    list_withdrawn,
    public_versions,
)

DEFAULT_OSV_URL = "https://api.osv.dev"


@dataclass(frozen=True, slots=True)
class OutdatedResult:
    """What should be renewed.

    Attributes:
        lock: The path of the lock.
        items: What should be renewed.
        unchecked: The reasons why something is not known.
        searched: The kinds that were looked for.
    """

    lock: Path
    items: tuple[OutdatedItem, ...]
    unchecked: tuple[str, ...]
    searched: tuple[OutdatedKind, ...]

    @property
    def not_found(self) -> tuple[OutdatedKind, ...]:
        """The kinds that were looked for and not found."""
        found = {item.kind for item in self.items}
        return tuple(kind for kind in self.searched if kind not in found)

    @property
    def exit_code(self) -> int:
        """1 if something locked was withdrawn, 3 if something could not be checked, else 0."""
        if any(item.kind is OutdatedKind.WITHDRAWN for item in self.items):
            return 1
        return 3 if self.unchecked else 0


def find_outdated(
    path: Path, osv_url: str, system: System, progress: ProgressCallback
) -> OutdatedResult:
    """Return what is withdrawn, near its end, behind or vulnerable in the lock of a spec.

    Args:
        path: the spec.
        osv_url: address of a service with the interface of OSV; "" leaves vulnerabilities out.
        system: queries indexes and the service. May block for minutes.
        progress: called with each line for people.

    Raises:
        LockError: the lock is missing, stale or refused.
        NetworkError: an index cannot be reached.
    """
    verification, listings = verify_lock_with_listings(path, system, progress)
    loaded = load_spec(path, system)
    lock = require_lock(loaded, system)
    items = list(list_withdrawn(verification.published))
    items += list_ending(loaded.spec, loaded.facts, date.fromisoformat(system.now()[:10]))
    searched = [OutdatedKind.WITHDRAWN, OutdatedKind.ENDING]
    if loaded.spec.exclude_newer is None:
        items += list_patches(lock, loaded.spec, listings)
        searched.append(OutdatedKind.PATCH)
    unchecked = []
    if osv_url:
        progress("checking for known vulnerabilities")
        try:
            found = system.find_vulnerabilities(public_versions(lock), osv_url)
            items += list_vulnerable(found)
            searched.append(OutdatedKind.VULNERABLE)
        except NetworkError as error:
            unchecked.append(f"{error.what}: {error.why}")
    else:
        unchecked.append("known vulnerabilities: no service address is set")
    return OutdatedResult(loaded.lock_path, tuple(items), tuple(unchecked), tuple(searched))
