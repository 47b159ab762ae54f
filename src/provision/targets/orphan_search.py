"""Search for orphans place by place: one that cannot be read hides nothing of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from provision.errors import ProvisionError
from provision.targets.capabilities import Orphan, OrphanList


def collect_orphans(
    places: Iterable[tuple[str, str]], list_orphans: Callable[[str, str], Iterable[Orphan]]
) -> OrphanList | None:
    """Return the orphans of all places (project and region); None without a place.

    May block on the network. `list_orphans` raises ProvisionError for a place that cannot be read.
    """
    orphans: list[Orphan] = []
    failed: dict[str, ProvisionError] = {}
    searched = tuple(places)
    for project, region in searched:
        try:
            orphans += list_orphans(project, region)
        except ProvisionError as error:
            failed[project] = error
    return OrphanList(tuple(orphans), failed) if searched else None
