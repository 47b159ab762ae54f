"""The names of other packages that a module uses, with the conditions around each use."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from windows import guards
from windows.overrides import written_signature
from windows.source_tree import SourceTree


class Use(NamedTuple):
    """One use of a name of another package.

    Attributes:
        path: the dotted name, such as "accelerate.Accelerator".
        argument: the keyword argument of a call, the signature of an override as in `overrides`,
            "" for any other use.
        in_function: whether it runs in a call, not at import.
        guards: "guarded", or "presence:PACKAGE"; empty if it always runs.
        module: the module that has it, and `line` its line.
    """

    path: str
    argument: str
    in_function: bool
    guards: frozenset[str]
    module: str
    line: int


@dataclass(slots=True)
class ModuleUses:
    """The uses in a module, and the modules of its own package that it imports when imported."""

    uses: list[Use] = field(default_factory=list)
    imports: list[tuple[str, frozenset[str]]] = field(default_factory=list)


def read_uses(tree: SourceTree, module: str, packages: Iterable[str], *, calls: bool) -> ModuleUses:
    """Return the uses of top-level `packages` in a module, those in functions only with `calls`."""
    reader = _Reader(tree, module, frozenset(packages), calls)
    parsed = tree.parse(module) if calls else tree.parse_outline(module, classes=False)
    if parsed is not None and calls:
        first = _Reader(tree, module, frozenset(), calls)
        first.visit_all(parsed.body)
        reader.guarded_functions = first.called_under_guards()
    if parsed is not None:
        reader.visit_all(parsed.body)
    return ModuleUses(list(dict.fromkeys(reader.uses)), reader.imports)


class _Reader(ast.NodeVisitor):
    def __init__(
        self, tree: SourceTree, module: str, packages: frozenset[str], calls: bool
    ) -> None:
        self._calls = calls
        self._tree, self._module, self._packages = tree, module, packages
        self._own = module.partition(".")[0]
        self._guards: frozenset[str] = guards.ALWAYS
        self._depth = 0
        self._aliases: dict[str, str] = {}
        self._versions: set[str] = set()
        self._objects: dict[str, str] = {}
        self._bases: list[str] = []
        self._own_methods: frozenset[str] = frozenset()
        self._called: dict[str, list[bool]] = {}
        self.guarded_functions: frozenset[str] = frozenset()
        self.uses: list[Use] = []
        self.imports: list[tuple[str, frozenset[str]]] = []

    def called_under_guards(self) -> frozenset[str]:
        """Return the names whose calls in the module are all tried, or depend on a version."""
        return frozenset(name for name, guarded in self._called.items() if all(guarded))

    @contextmanager
    def _under(self, more: frozenset[str]) -> Iterator[None]:
        before = self._guards
        self._guards = before | more
        yield
        self._guards = before

    def visit_all(self, nodes: Iterable[ast.AST], more: frozenset[str] = guards.ALWAYS) -> None:
        """Visit nodes; statements after a check of a version that leaves the block are guarded."""
        if more == guards.SKIPPED:
            return
        with self._under(more):
            for node in nodes:
                self.visit(node)
                if isinstance(node, ast.If) and _leaves(node.body):
                    body, orelse = guards.of_test(node.test, self._versions, in_function=True)
                    self._guards |= body & orelse & guards.GUARDED

    def _record(self, path: str, line: int, argument: str = "") -> None:
        self.uses.append(Use(path, argument, self._depth > 0, self._guards, self._module, line))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if top == self._own:
                self._import_own(alias.name)
            elif top in self._packages:
                self._record(alias.name, node.lineno)
                self._name(alias.asname or top, alias.name if alias.asname else top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = self._tree.absolute(self._module, node.level, node.module or "")
        top = source.partition(".")[0]
        for alias in node.names:
            if top == self._own:
                self._import_own(source)
                self._import_own(f"{source}.{alias.name}")
                self._aliases.pop(alias.asname or alias.name, None)
            elif top in self._packages and alias.name != "*":
                path = f"{source}.{alias.name}"
                self._record(path, node.lineno)
                self._name(alias.asname or alias.name, path)

    def _name(self, alias: str, path: str) -> None:
        """Remember what a name stands for; not if it exists only under a condition."""
        if self._guards & guards.GUARDED:
            self._aliases.pop(alias, None)
        else:
            self._aliases[alias] = path

    def _import_own(self, module: str) -> None:
        if self._depth == 0:
            self.imports.append((module, self._guards))

    def visit_If(self, node: ast.If) -> None:
        body, orelse = guards.of_test(node.test, self._versions, in_function=self._depth > 0)
        self.visit(node.test)
        self.visit_all(node.body, body)
        self.visit_all(node.orelse, orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        body, orelse = guards.of_test(node.test, self._versions, in_function=True)
        self.visit(node.test)
        self.visit_all([node.body], body)
        self.visit_all([node.orelse], orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        first, *others = node.values
        self.visit(first)
        body, _ = guards.of_test(first, self._versions, in_function=True)
        self.visit_all(others, body)

    def visit_Try(self, node: ast.Try) -> None:
        guard = guards.of_try(node)
        self.visit_all([*node.body, *node.orelse], guard)
        for handler in node.handlers:
            self.visit_all(handler.body, guards.GUARDED)
        self.visit_all(node.finalbody)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item)
        self.visit_all(node.body, guards.of_with(node))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all([*node.decorator_list, *node.args.defaults])
        self.visit_all(item for item in node.args.kw_defaults if item is not None)
        if not self._calls:
            return
        self._depth += 1
        aliases, objects = dict(self._aliases), dict(self._objects)
        for argument in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs):
            self._aliases.pop(argument.arg, None)
        is_guarded = node.name in self.guarded_functions
        self.visit_all(node.body, guards.GUARDED if is_guarded else guards.ALWAYS)
        self._aliases, self._objects = aliases, objects
        self._depth -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        if not self._calls:
            return
        self._depth += 1
        self.visit(node.body)
        self._depth -= 1

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all([*node.decorator_list, *node.bases])
        known = [path for base in node.bases if (path := self._path(base))]
        if self._calls:
            self._record_overrides(node, known)
        outer, self._bases = self._bases, known if len(node.bases) == 1 else []
        objects, self._objects = self._objects, self._attributes(node)
        methods, self._own_methods = self._own_methods, _assigned_names(node)
        self.visit_all(node.body)
        self._bases, self._objects, self._own_methods = outer, objects, methods

    def _record_overrides(self, node: ast.ClassDef, bases: Iterable[str]) -> None:
        """Record the methods of a class that replace methods of bases in other packages."""
        self._depth += 1
        for method, signature in written_signature(node):
            for base in bases:
                self._record(f"{base}.{method.name}", method.lineno, signature)
        self._depth -= 1

    def _attributes(self, node: ast.ClassDef) -> dict[str, str]:
        """Return the attributes of `self` that every assignment makes with the same class."""
        if not self._calls:
            return {}
        made: dict[str, set[str]] = {}
        for item in ast.walk(node):
            if isinstance(item, ast.Assign):
                for target in item.targets:
                    if self._is_name(target) and isinstance(target, ast.Attribute):
                        name = ast.unparse(target)
                        made.setdefault(name, set()).add(self._made_by(item.value))
        return {
            name: paths.pop() for name, paths in made.items() if len(paths) == 1 and "" not in paths
        }

    def _made_by(self, value: ast.expr) -> str:
        """Return the class of another package that a value is made with, or ""."""
        path = self._path(value.func) if isinstance(value, ast.Call) else ""
        return path if path.rpartition(".")[2][:1].isupper() else ""

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        made = self._made_by(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                name = target.id
                self._objects.pop(name, None)
                if made:
                    self._objects[name] = made
                self._aliases.pop(name, None)
                if guards.compares_versions(node.value) or self._reads_version(node.value):
                    self._versions.add(name)
            else:
                self.visit(target)

    def _reads_version(self, value: ast.expr) -> bool:
        """Return whether a value depends on a name that holds a comparison of versions."""
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        return not self._versions.isdisjoint(names)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Skip annotations: many are not evaluated."""

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node)
        if path:
            self._record(path, node.lineno)
        else:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            is_guarded = bool(self._guards & guards.GUARDED)
            self._called.setdefault(node.func.id, []).append(is_guarded)
        called = self._path(node.func) or self._method(node.func)
        if called:
            self._record(called, node.lineno)
            for keyword in node.keywords:
                if keyword.arg is not None:
                    self._record(called, keyword.value.lineno, keyword.arg)
        else:
            self.visit(node.func)
        self.visit_all([*node.args, *(keyword.value for keyword in node.keywords)])

    def _path(self, node: ast.expr) -> str:
        """Return the dotted name that an expression reads from another package, or ""."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._aliases:
            return ""
        return ".".join([self._aliases[node.id], *reversed(attributes)])

    def _method(self, node: ast.expr) -> str:
        """Return the dotted name of a method of an object made by another package, or ""."""
        if not isinstance(node, ast.Attribute):
            return ""
        owner = ast.unparse(node.value) if self._bases else ""
        if owner == "super()":
            return self._bases[0] + ("" if node.attr == "__init__" else f".{node.attr}")
        if owner == "self" and node.attr not in self._own_methods:
            return f"{self._bases[0]}.{node.attr}"
        owner = self._objects.get(ast.unparse(node.value), "") if self._is_name(node.value) else ""
        return f"{owner}.{node.attr}" if owner else ""

    @staticmethod
    def _is_name(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) or (
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        )


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)


def _assigned_names(node: ast.ClassDef) -> frozenset[str]:
    """Return the methods of a class and the attributes that its text assigns."""
    return frozenset(
        item.attr if isinstance(item, ast.Attribute) else item.name
        for item in ast.walk(node)
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        or (isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store))
    ) | frozenset(
        item.id
        for item in ast.walk(node)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    )
