"""Branches on the kind of a target, in packages that treat all kinds alike."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from measures.tree import SourceFile, imported_modules

KINDS = frozenset({"local", "workbench", "colab", "colab-enterprise", "vertex-job"})
KIND_FREE = ("commands", "cli", "views", "lock", "verification")
"""Packages that do not branch on the kind of a target."""
EXCEPTIONS = frozenset({"verification/device_files.py"})
"""Files without kinds that use their words: "workbench" is a program of the agent there."""


def kind_branches(files: tuple[SourceFile, ...]) -> list[str]:
    """Return the lines of kind-free packages that branch on a kind.

    Such a line compares with a kind's name, matches it, uses it as a key or member of a set,
    tests for the class of a kind with isinstance or a class pattern, or imports a kind's module.
    """
    classes = kind_classes(files)
    branches = []
    for file in files:
        if file.top_package in KIND_FREE and file.name not in EXCEPTIONS:
            lines = {*_imports(file), *_branches(file.tree, classes)}
            branches += [f"{file.name}:{line}" for line in sorted(lines)]
    return branches


def kind_classes(files: tuple[SourceFile, ...]) -> frozenset[str]:
    """Return the classes that belong to one kind.

    These are the classes of the kind's modules, and the models of targets in modules of kinds/
    that several kinds share.
    """
    names = set()
    for file in files:
        for node in file.nodes:
            if not isinstance(node, ast.ClassDef):
                continue
            is_target = file.top_package == "kinds" and any(
                isinstance(base, ast.Name) and base.id.endswith("Target") for base in node.bases
            )
            if is_target or is_kind_module(file.module):
                names.add(node.name)
    return frozenset(names)


def is_kind_module(module: str) -> bool:
    """Return whether a module belongs to one kind, as in "provision.targets.workbench.plan"."""
    parts = module.split(".")
    if len(parts) < 3 or parts[1] not in ("targets", "kinds"):
        return False
    return parts[2].replace("_", "-") in KINDS


def _imports(file: SourceFile) -> Iterator[int]:
    for line, module in imported_modules(file):
        if is_kind_module(module):
            yield line


def _branches(tree: ast.Module, classes: frozenset[str]) -> Iterator[int]:
    for node in ast.walk(tree):
        values = _compared_values(node)
        names_kind = any(
            isinstance(value, ast.Constant) and value.value in KINDS for value in values
        )
        if names_kind or not classes.isdisjoint(_tested_classes(node)):
            yield node.lineno  # type: ignore[attr-defined]


def _compared_values(node: ast.AST) -> list[ast.expr]:
    """Return the values that a node compares, matches, or uses as keys or members."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.MatchValue():
            return [node.value]
        case ast.Dict():
            return [key for key in node.keys if key is not None]
        case ast.Set() | ast.Tuple():
            return node.elts
        case ast.Subscript():
            return [node.slice]
        case _:
            return []


def _tested_classes(node: ast.AST) -> set[str]:
    """Return the names of the classes that an isinstance call or a class pattern tests for."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
            tested: ast.AST = classes
        case ast.MatchClass():
            tested = node.cls
        case _:
            return set()
    names = {child.id for child in ast.walk(tested) if isinstance(child, ast.Name)}
    return names | {child.attr for child in ast.walk(tested) if isinstance(child, ast.Attribute)}
