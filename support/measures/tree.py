"""Source trees: parsed Python files, their import graph and cycles between siblings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A parsed file: its path relative to the tree, its dotted module name and all its nodes."""

    name: str
    module: str
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @property
    def top_package(self) -> str:
        """The first part of the path: a package, or a module of the top level."""
        return self.name.split("/")[0]


def read_tree(source: Path) -> tuple[SourceFile, ...]:
    """Return the files below the folder of a package."""
    files = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        text = path.read_text(encoding="utf-8")
        parts = [source.name, *name.removesuffix(".py").split("/")]
        module = ".".join(parts).removesuffix(".__init__")
        tree = ast.parse(text)
        files.append(SourceFile(name, module, text, tree, tuple(ast.walk(tree))))
    return tuple(files)


def imported_modules(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of each import; `from a import b` yields "a.b"."""
    package = file.module if file.name.endswith("__init__.py") else file.module.rpartition(".")[0]
    for node in file.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                ancestors = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*ancestors, base] if base else ancestors)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def cycles(files: tuple[SourceFile, ...]) -> list[str]:
    """Return the import cycles between siblings, as import-linter's `acyclic_siblings` does."""
    graph = _import_graph(files)
    packages = {
        module[:dot] for module in graph for dot, character in enumerate(module) if character == "."
    }
    cycles = []
    for package in sorted(packages):
        edges = _sibling_edges(package, graph)
        groups = [group for group in _strongly_connected(edges) if len(group) > 1]
        cycles += [" <-> ".join(sorted(group)) for group in groups]
    return cycles


def _import_graph(files: tuple[SourceFile, ...]) -> dict[str, set[str]]:
    modules = {file.module for file in files}
    graph: dict[str, set[str]] = {}
    for file in files:
        targets = set()
        for _, name in imported_modules(file):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules:
                targets.add(target)
        graph[file.module] = targets
    return graph


def _sibling_edges(package: str, graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return which children of a package import which others, descendants included."""

    def child_of(module: str) -> str:
        if not module.startswith(f"{package}."):
            return ""
        return f"{package}.{module.removeprefix(f'{package}.').split('.')[0]}"

    edges: dict[str, set[str]] = {}
    for module, targets in graph.items():
        if child := child_of(module):
            others = {child_of(target) for target in targets} - {"", child}
            edges.setdefault(child, set()).update(others)
    return edges


def _strongly_connected(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return groups of nodes that reach each other; the graphs are small enough for a search."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        queue = [start]
        while queue:
            for node in edges[queue.pop()] - seen:
                seen.add(node)
                queue.append(node)
        return seen

    reach = {node: reachable(node) for node in edges}
    groups: list[set[str]] = []
    for node in edges:
        group = {node} | {other for other in reach[node] if node in reach[other]}
        if group not in groups:
            groups.append(group)
    return groups
