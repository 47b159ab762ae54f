"""Looks up dotted names, attributes of classes and arguments of calls in the modules of a wheel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache, partial
from typing import NamedTuple

from windows.module_names import (
    DEPRECATIONS,
    Imported,
    ModuleNames,
    exporting_modules,
    read_module_names,
)
from windows.outline import block
from windows.overrides import own_calls, read_signature
from windows.source_tree import SourceTree, parse

_KEEPS_SIGNATURE = re.compile(
    r"contextmanager|staticmethod|classmethod|abstractmethod|no_grad|inference_mode|lru_cache|cache$|wraps|"
    r"validate_hf_hub_args|torchdynamo_disable|dynamo.disable|ensure_backend|add_start_docstrings|"
    r"replace_return_docstrings|doc$|on_main_process|deprecated|override|property|export|set_module|auto_docstring"
)
_DEPTH = 12
"""Longest chain of imports and base classes that is followed."""


class State(StrEnum):
    """Whether a release has a name. REMOVED: its own text says that the name was removed."""

    PRESENT = "present"
    ABSENT = "absent"
    REMOVED = "removed"
    UNDECIDED = "undecided"


Block = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """The result of a lookup; `node` is the class or function, if it was found."""

    state: State
    module: str = ""
    node: Block | None = None
    is_module: bool = False

    @property
    def line(self) -> int:
        """The line of the definition, 0 if unknown."""
        return self.node.lineno if self.node else 0


PRESENT, ABSENT = Definition(State.PRESENT), Definition(State.ABSENT)
UNDECIDED = Definition(State.UNDECIDED)


class Definitions:
    """What the modules of a wheel define."""

    def __init__(self, tree: SourceTree) -> None:
        """Read nothing yet; a module is parsed when a name in it is looked up."""
        self.tree = tree
        self.names = cache(self._names)
        self.exported = cache(partial(exporting_modules, tree))
        self.whole = cache(self._whole)
        self.find = cache(self._find)
        self.own_calls = cache(own_calls)
        self.assigned_names = cache(_assigned_names)

    def _names(self, module: str) -> ModuleNames:
        return read_module_names(self.tree, module)

    def _whole(self, module: str, node: Block) -> Block:
        """Return a class with its body, which the outline of a module does not have."""
        if not isinstance(node, ast.ClassDef):
            return node
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        parsed = parse(block(self.tree.text(module), first)) or self.tree.parse(module)
        for statement in ast.walk(parsed) if parsed else ():
            if isinstance(statement, ast.ClassDef) and statement.name == node.name:
                return statement
        return node

    def _find(self, path: str) -> Definition:
        """Return the definition of a dotted path such as "transformers.cache_utils.HybridCache"."""
        parts = path.split(".")
        if not self.tree.has_module(parts[0]):
            return UNDECIDED
        found, module = Definition(State.PRESENT, parts[0], None, True), parts[0]
        for part in parts[1:]:
            if found.is_module:
                found = self.member(module, part)
                module = found.module if found.is_module else module
            elif isinstance(found.node, ast.ClassDef):
                found = self.attribute(found, part)
            else:
                return UNDECIDED if found.state is State.PRESENT else found
            if found.state is not State.PRESENT:
                return found
        return found

    def member(self, module: str, name: str, depth: int = 0) -> Definition:
        """Return what a module has under a name."""
        if depth > _DEPTH or (module in self.tree.compiled and module not in self.tree.paths):
            return UNDECIDED
        submodule = f"{module}.{name}"
        if module not in self.tree.paths:
            if self.tree.has_module(submodule):
                return Definition(State.PRESENT, submodule, None, True)
            return ABSENT if self.tree.has_module(module) else UNDECIDED
        names = self.names(module)
        if name in names.bindings:
            return self._bound(module, name, depth)
        if self.tree.has_module(submodule):
            return Definition(State.PRESENT, submodule, None, True)
        if name in names.lazy:
            target = names.lazy[name]
            for candidate in (target, f"{module}.{target}"):
                if target and candidate in self.tree.paths and candidate != module:
                    found = self.member(candidate, name, depth + 1)
                    return found if found.node is not None else PRESENT
            return PRESENT
        if names.structure:
            target = self.exported(names.structure).get(name, module)
            # Stars below such a module are for type checkers.
            if target != module:
                return self.member(target, name, depth + 1)
            return Definition(State.ABSENT, module)
        if self._is_removed(name, names):
            return Definition(State.REMOVED, module)
        found = self._from_stars(names, name, depth)
        if found is not None:
            return found
        if name in (names.exported or ()):
            return PRESENT
        return UNDECIDED if names.is_open else Definition(State.ABSENT, module)

    def attribute(self, owner: Definition, name: str, depth: int = 0) -> Definition:
        """Return what a class has under a name, in itself, on `self`, or in its bases."""
        if not isinstance(owner.node, ast.ClassDef) or depth > _DEPTH:
            return UNDECIDED
        for statement in owner.node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if statement.name == name:
                    return Definition(State.PRESENT, owner.module, statement)
                if statement.name in ("__getattr__", "__getattribute__"):
                    return UNDECIDED
        if name in self.assigned_names(owner.node):
            return PRESENT
        if owner.node.decorator_list or owner.node.keywords:
            return UNDECIDED
        for base in self._bases(owner):
            found = self.attribute(base, name, depth + 1)
            if found.state is not State.ABSENT:
                return found
        return ABSENT

    def argument(self, owner: Definition, name: str) -> Definition:
        """Return whether a function, or the constructor of a class, takes a keyword argument."""
        node = owner.node
        if isinstance(node, ast.ClassDef):
            return self._constructor_argument(owner, name, 0)
        if node is None:
            return UNDECIDED
        arguments = node.args
        taken = {item.arg for item in (*arguments.args, *arguments.kwonlyargs)}
        if name in taken:
            return Definition(State.PRESENT, owner.module, node)
        decorators = [ast.unparse(item).partition("(")[0] for item in node.decorator_list]
        changes = [text for text in decorators if not _KEEPS_SIGNATURE.search(text)]
        # huggingface_hub's validator takes the former name of `token` and passes it on.
        is_renamed = name == "use_auth_token" and "validate_hf_hub_args" in decorators
        if arguments.kwarg is not None or changes or is_renamed:
            return UNDECIDED
        return Definition(State.ABSENT, owner.module, node)

    def override(self, path: str, signature: str) -> Definition:
        """Return whether a class calls one of its methods only in ways that a signature takes.

        UNDECIDED if it has no such method, or uses it in another way than by calling it.
        """
        owner = self.find(path.rpartition(".")[0])
        method = path.rpartition(".")[2]
        found = self.attribute(owner, method)
        if not isinstance(owner.node, ast.ClassDef) or not isinstance(found.node, ast.FunctionDef):
            return UNDECIDED
        taken, replaced = read_signature(signature)
        calls = [
            call
            for node in self._classes(owner)
            for caller, call in self.own_calls(node).get(method, ())
            if caller not in replaced
        ]
        if any(call is not None and not taken.fits(call) for call in calls):
            return found._replace(state=State.ABSENT)
        return UNDECIDED if None in calls else found

    def _classes(self, owner: Definition, depth: int = 0) -> Iterator[ast.ClassDef]:
        """Yield a class and its bases in the same package."""
        if isinstance(owner.node, ast.ClassDef) and depth < _DEPTH:
            yield owner.node
            for base in self._bases(owner):
                yield from self._classes(base, depth + 1)

    def _constructor_argument(self, owner: Definition, name: str, depth: int) -> Definition:
        node = owner.node
        if not isinstance(node, ast.ClassDef) or depth > _DEPTH:
            return UNDECIDED
        decorators = [ast.unparse(item) for item in node.decorator_list]
        if any("dataclass" in text for text in decorators):
            return self._field(owner, name, depth)
        if decorators or node.keywords:
            return UNDECIDED
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return self.argument(Definition(State.PRESENT, owner.module, statement), name)
            if isinstance(statement, ast.FunctionDef) and statement.name == "__new__":
                return UNDECIDED
        for base in self._bases(owner):
            return self._constructor_argument(base, name, depth + 1)
        return UNDECIDED

    def _field(self, owner: Definition, name: str, depth: int) -> Definition:
        assert isinstance(owner.node, ast.ClassDef)
        for statement in owner.node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return UNDECIDED
            if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
                return Definition(State.PRESENT, owner.module, owner.node)
        for base in self._bases(owner):
            found = self._constructor_argument(base, name, depth + 1)
            if found.state is not State.ABSENT:
                return found
        return Definition(State.ABSENT, owner.module, owner.node)

    def _bases(self, owner: Definition) -> list[Definition]:
        """Return the base classes without `object`; one that is not found has no node."""
        assert isinstance(owner.node, ast.ClassDef)
        bases = [ast.unparse(base).partition("[")[0] for base in owner.node.bases]
        return [
            self.find(f"{owner.module}.{base}")
            for base in bases
            if base not in ("object", "ABC", "abc.ABC", "Generic", "Protocol")
        ]

    def _bound(self, module: str, name: str, depth: int) -> Definition:
        binding = self.names(module).bindings[name]
        if binding is None:
            return Definition(State.PRESENT, module)
        if not isinstance(binding, Imported):
            return Definition(State.PRESENT, module, self.whole(module, binding))
        own = self.tree.has_module(binding.module.partition(".")[0])
        if not own:
            return PRESENT
        if not binding.name:
            return Definition(State.PRESENT, binding.module, None, True)
        if binding.module == module and self.tree.has_module(f"{module}.{name}"):
            return Definition(State.PRESENT, f"{module}.{name}", None, True)
        if (binding.module, binding.name) == (module, name):
            return PRESENT
        found = self.member(binding.module, binding.name, depth + 1)
        # A package imports what it has: a name that is not found was bound in another way.
        return found if found.state is State.PRESENT else PRESENT

    def _is_removed(self, name: str, names: ModuleNames) -> bool:
        if name in names.removed:
            return True
        for key, binding in names.bindings.items():
            if DEPRECATIONS.match(key) and isinstance(binding, Imported):
                return name in self.names(binding.module).removed
        return False

    def _from_stars(self, names: ModuleNames, name: str, depth: int) -> Definition | None:
        """Return a name of the modules imported with a star; None if none of them has it."""
        is_decided = True
        for star in names.stars:
            if not self.tree.has_module(star):
                is_decided &= self.tree.lacks_own(star)
                continue
            exported = self.names(star).exported if star in self.tree.paths else None
            if exported is not None and name in exported:
                found = self.member(star, name, depth + 1)
                return found if found.state is State.PRESENT else PRESENT
            if name.startswith("_") and exported is None:
                continue
            found = self.member(star, name, depth + 1)
            if found.state is State.PRESENT and (exported is None or found.is_module):
                return found
            is_decided &= found.state is not State.UNDECIDED
        return None if is_decided else UNDECIDED


def _assigned_names(node: ast.ClassDef) -> frozenset[str]:
    """Return the attributes that a class assigns, in its body or on an object."""
    names: set[str] = set()
    for target in ast.walk(node):
        if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store):
            names.add(target.attr)
        elif isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
            names.add(target.id)
    return frozenset(names)
