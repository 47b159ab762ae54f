"""A second look at names that would set a bound: at their use, and where they are missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from windows import guards
from windows.definitions import Definitions, State
from windows.packages import MODULES
from windows.reading import NeededName, Release
from windows.source_tree import SourceTree


class Confirmation:
    """Whether a release fails without a name, and whether another one lacks it."""

    def __init__(self, cache: Path) -> None:
        """Read nothing yet."""
        self._cache = cache
        self._trees: dict[str, SourceTree] = {}
        self._substituted: dict[tuple[str, int], frozenset[str]] = {}
        self._missing: dict[tuple[str, str], bool] = {}

    def is_needed(self, release: Release, name: NeededName) -> bool:
        """Return False if the module of a use tries to import the name, or assigns it itself."""
        if release.file not in self._trees:
            self._trees = {release.file: release.tree(self._cache)}
        tree = self._trees[release.file]
        module = name.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        key = (module, tree.checksum(module))
        if key not in self._substituted:
            self._substituted[key] = frozenset(_substituted_names(tree, module))
        parts = name.path.split(".")
        prefixes = {".".join(parts[: end + 1]) for end in range(len(parts))}
        return self._substituted[key].isdisjoint(prefixes)

    def is_missing(self, other: Release, path: str) -> bool:
        """Return False if the module that an import would load has the name.

        The package above it can have another object under the name of that module.
        """
        key = (other.file, path)
        if key not in self._missing:
            tree, parts = other.tree(self._cache), path.split(".")
            module, name = ".".join(parts[:-1]), parts[-1]
            is_found = module in tree.paths and (
                Definitions(tree).member(module, name).state is State.PRESENT
            )
            self._missing[key] = not is_found
        return self._missing[key]


def _substituted_names(tree: SourceTree, module: str) -> Iterator[str]:
    """Yield the dotted names that a module imports under a condition, or assigns."""
    parsed = tree.parse(module)
    if parsed is None:
        return
    yield from _conditional_imports(tree, module, parsed, is_conditional=False)
    for node in ast.walk(parsed):
        if isinstance(node, ast.Assign):
            yield from (
                ast.unparse(target) for target in node.targets if isinstance(target, ast.Attribute)
            )


def _conditional_imports(
    tree: SourceTree, module: str, node: ast.AST, *, is_conditional: bool
) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inside = is_conditional
        if isinstance(node, ast.Try) and child in node.body:
            inside = inside or guards.of_try(node) == guards.GUARDED
        elif isinstance(node, ast.If) and child is not node.test:
            body, orelse = guards.of_test(node.test, set(), in_function=True)
            found = body if child in node.body else orelse
            inside = inside or any(guard.partition(":")[2] not in MODULES for guard in found)
        elif isinstance(node, ast.ExceptHandler):
            inside = True
        if isinstance(child, ast.ImportFrom) and inside:
            source = tree.absolute(module, child.level, child.module or "")
            yield from (f"{source}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import) and inside:
            yield from (alias.name for alias in child.names)
        else:
            yield from _conditional_imports(tree, module, child, is_conditional=inside)
