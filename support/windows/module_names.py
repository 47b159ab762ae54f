"""The names that a module binds, and the ways in which it can bind more while it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from windows.source_tree import SourceTree

LAZY_TABLES = (
    "_import_structure",
    "_SUBMOD_ATTRS",
    "MODULE_ATTRS",
    "_lazy_imports",
    "_class_to_module",
)
"""Names of dictionaries from which modules load names at first use."""
DEPRECATIONS = re.compile(
    r"^_?(deprecations|expired_attributes_*|__expired_attributes__|__former_attrs__)$"
)


class Imported(NamedTuple):
    """A name bound by an import: `name` of `module`, or the module itself if `name` is ""."""

    module: str
    name: str


Binding = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | Imported | None
"""What a name is bound to; None for any other value."""


@dataclass(slots=True)
class ModuleNames:
    """The names of a module.

    Attributes:
        bindings: the names bound by statements that run, whatever the condition around them.
        lazy: names loaded at first use, with the submodule that has them ("" if unknown).
        removed: names for which the module itself raises an error.
        stars: modules of which all names are imported.
        structure: the folder whose modules export further names, "" for none.
        exported: `__all__`, None if it is not a list of strings.
        is_open: whether the module can have names that its text does not show.
    """

    bindings: dict[str, Binding] = field(default_factory=dict)
    lazy: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    exported: list[str] | None = None
    structure: str = ""
    is_open: bool = False


def read_module_names(tree: SourceTree, module: str) -> ModuleNames:
    """Return the names of a module; one that cannot be parsed is open."""
    text, parsed = tree.text(module), tree.parse_outline(module, classes=True)
    names = ModuleNames()
    if parsed is None:
        names.is_open = True
        return names
    is_lazy = "_LazyModule" in text or "__getattr__" in text or "lazy_loader" in text
    for statement in _running_statements(parsed.body, is_lazy):
        _bind(names, tree, module, statement)
    if is_lazy:
        _read_lazy_tables(names, tree, module, parsed)
    names.is_open = _is_open(names, parsed, text)
    return names


def _running_statements(body: list[ast.stmt], include_typing: bool) -> Iterator[ast.stmt]:
    """Yield the statements of a module with those inside of conditions, loops and tries."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            parts = [statement.orelse, statement.body] if include_typing else [statement.orelse]
        elif isinstance(statement, ast.If | ast.For | ast.While):
            parts = [statement.body, statement.orelse]
        elif isinstance(statement, ast.Try):
            handlers = [line for handler in statement.handlers for line in handler.body]
            parts = [statement.body, handlers, statement.orelse, statement.finalbody]
        elif isinstance(statement, ast.With):
            parts = [statement.body]
        else:
            continue
        for part in parts:
            yield from _running_statements(part, include_typing)


def _bind(names: ModuleNames, tree: SourceTree, module: str, statement: ast.stmt) -> None:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        names.bindings[statement.name] = statement
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            names.bindings[bound] = Imported(alias.name if alias.asname else bound, "")
    elif isinstance(statement, ast.ImportFrom):
        source = tree.absolute(module, statement.level, statement.module or "")
        for alias in statement.names:
            if alias.name == "*":
                names.stars.append(source)
            elif not isinstance(names.bindings.get(alias.asname or alias.name), ast.ClassDef):
                names.bindings[alias.asname or alias.name] = Imported(source, alias.name)
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    _assign(names, node.id, statement.value)
    elif isinstance(statement, ast.For | ast.With):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.bindings.setdefault(node.id, None)


def _assign(names: ModuleNames, name: str, value: ast.expr | None) -> None:
    if isinstance(value, ast.Name) and isinstance(
        names.bindings.get(value.id), Imported | ast.ClassDef | ast.FunctionDef
    ):
        names.bindings[name] = names.bindings[value.id]
    else:
        names.bindings[name] = None
    if name == "__all__" and isinstance(value, ast.List | ast.Tuple):
        names.exported = [*(names.exported or []), *_strings(value)]
    if DEPRECATIONS.match(name) and isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                continue
            if _is_removed(item):
                names.removed.add(key.value)
            else:
                names.bindings.setdefault(key.value, None)


def _is_removed(value: ast.expr) -> bool:
    """Return whether the value for a deprecated name has no object to return."""
    if isinstance(value, ast.Tuple) and len(value.elts) == 2:
        return isinstance(value.elts[1], ast.Constant) and value.elts[1].value is None
    return True


def _read_lazy_tables(
    names: ModuleNames, tree: SourceTree, module: str, parsed: ast.Module
) -> None:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_is_lazy_table(target) for target in targets):
                key = next((_key_of(target) for target in targets), "")
                _add_lazy(names, node.value, key)
        elif isinstance(node, ast.AugAssign) and _is_lazy_table(node.target):
            _add_lazy(names, node.value, _key_of(node.target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr in ("append", "extend", "update") and _is_lazy_table(called.value):
                for argument in node.args:
                    _add_lazy(names, argument, _key_of(called.value))
    if "define_import_structure" in tree.text(module):
        names.structure = f"{module}.models" if f"{module}.models" in tree.packages else module


def _is_lazy_table(target: ast.expr) -> bool:
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Name) and target.id in LAZY_TABLES


def _key_of(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""


def _add_lazy(names: ModuleNames, value: ast.expr, key: str) -> None:
    if not isinstance(value, ast.Dict):
        names.lazy.update(dict.fromkeys(_strings(value), key))
        return
    for item, content in zip(value.keys, value.values, strict=True):
        module = str(item.value) if isinstance(item, ast.Constant) else ""
        if isinstance(content, ast.Constant):  # a name with the module that has it
            names.lazy[module] = str(content.value).partition(":")[0].lstrip(".")
        else:
            names.lazy.update(dict.fromkeys(_strings(content), module))
            if module:
                names.lazy.setdefault(module, "")


def exporting_modules(tree: SourceTree, folder: str) -> dict[str, str]:
    """Return the names that modules below a folder export, each with its module."""
    exported: dict[str, str] = {}
    for module in tree.paths:
        if module.startswith(f"{folder}."):
            key = (module, tree.checksum(module))
            if key not in _EXPORTED:
                _EXPORTED[key] = frozenset(_exported_names(tree.text(module)))
            exported.update(dict.fromkeys(_EXPORTED[key], module))
    return exported


_EXPORTED: dict[tuple[str, int], frozenset[str]] = {}
_LIST = re.compile(r"^__all__ \+?= \[([^\]]*)\]", re.MULTILINE)
_MARK = re.compile(r"^@(?:export|requires)\b", re.MULTILINE)
_BLOCK = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)


def _exported_names(text: str) -> Iterator[str]:
    """Yield `__all__` of a module, and what it marks as exported, without parsing it."""
    for found in _LIST.finditer(text):
        yield from re.findall(r"[\"'](\w+)[\"']", found[1])
    for mark in _MARK.finditer(text):
        block = _BLOCK.search(text, mark.end())
        if block:
            yield block[1]


def _strings(value: ast.AST) -> list[str]:
    return [
        node.value
        for node in ast.walk(value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _is_open(names: ModuleNames, parsed: ast.Module, text: str) -> bool:
    if names.lazy or names.structure:
        return False
    if re.search(r"globals\(\)|^exec\(|vars\(\)|sys\.modules\[__name__\]", text, re.MULTILINE):
        return True
    if "__getattr__" not in names.bindings:
        return False
    return not (names.removed or _answers_listed_names(parsed, names))


def _answers_listed_names(parsed: ast.Module, names: ModuleNames) -> bool:
    """Return whether a module's `__getattr__` only knows names that the module's text has.

    Those names count as bound.
    """
    for statement in parsed.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__getattr__":
            text = ast.unparse(statement)
            if re.search(
                r"getattr\(|import_module|__import__|globals\(|exec\(", text.partition(":")[2]
            ):
                return False
            for name in _strings(statement):
                names.bindings.setdefault(name, None)
            return True
    return False
