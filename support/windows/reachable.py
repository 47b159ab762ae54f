"""The modules of a package that an import loads."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from windows.guards import GUARDED
from windows.source_tree import SourceTree
from windows.uses import ModuleUses


def reachable_modules(
    tree: SourceTree, starts: Iterable[str], read: Callable[[str], ModuleUses]
) -> dict[str, frozenset[str]]:
    """Return the modules that the import of `starts` loads, each with the fewest guards.

    A module that is loaded only in a try, or under a condition about a version, is not among them.
    """
    found: dict[str, frozenset[str]] = {}
    queue: list[tuple[int, str, frozenset[str]]] = []
    for start in starts:
        for module in _with_parents(tree, start):
            heapq.heappush(queue, (0, module, frozenset()))
    while queue:
        _, module, guards = heapq.heappop(queue)
        if module in found:
            continue
        found[module] = guards
        for target, more in read(module).imports:
            if more & GUARDED:
                continue
            for name in _with_parents(tree, target):
                if name not in found:
                    heapq.heappush(queue, (len(guards | more), name, guards | more))
    return found


def _with_parents(tree: SourceTree, module: str) -> Iterator[str]:
    """Yield a module with the packages above it; what is not a module is left out."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if name in tree.paths:
            yield name
