"""Methods that replace those of a class in another package, and the calls that this class makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from windows import guards

_ACCEPTED = ("override", "torch.no_grad", "wraps", "deprecate_kwarg")


class Signature(NamedTuple):
    """The parameters of a method after `self`, with the methods of its class that call no base.

    Attributes:
        required: positional parameters without a default.
        optional: positional parameters with one.
        named: parameters after a star; a name that ends with "=" has a default.
        is_long: whether it takes any positional arguments.
        is_open: whether it takes any keyword arguments.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    named: tuple[str, ...]
    is_long: bool
    is_open: bool

    def fits(self, call: ast.Call) -> bool:
        """Return whether a call can be made; one with `*` or `**` may pass what is missing."""
        names = [item.arg for item in call.keywords]
        is_spread = None in names or any(isinstance(item, ast.Starred) for item in call.args)
        given = sum(not isinstance(item, ast.Starred) for item in call.args)
        positional = (*self.required, *self.optional)
        if given > len(positional) and not self.is_long:
            return False
        taken = {*positional[given:], *(name.rstrip("=") for name in self.named)}
        if not self.is_open and any(name not in taken for name in names if name is not None):
            return False
        missing = {*self.required[given:], *(name for name in self.named if name[-1] != "=")}
        return is_spread or missing <= set(names)


def written_signature(node: ast.ClassDef) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Yield the methods of a class whose signature its text shows, as "(a, b=, *, c=)".

    After "!" follow the methods of the class that replace those of the base without a call to
    them: what the base calls there is never called.
    """
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    replaced = sorted(
        method.name for method in methods if f"super().{method.name}" not in ast.unparse(method)
    )
    for method in methods:
        decorators = [ast.unparse(item).partition("(")[0] for item in method.decorator_list]
        if method.name.startswith("__") or not set(decorators) <= set(_ACCEPTED):
            continue
        if method.args.vararg is not None and method.args.kwarg is not None:
            continue
        others = [name for name in replaced if name != method.name]
        yield method, f"({_written(method.args)})!{','.join(others)}"


def _written(arguments: ast.arguments) -> str:
    positional = [item.arg for item in (*arguments.posonlyargs, *arguments.args)][1:]
    first = len(positional) - len(arguments.defaults)
    parts = [name if index < first else f"{name}=" for index, name in enumerate(positional)]
    if arguments.vararg is not None or arguments.kwonlyargs:
        parts.append("*" if arguments.vararg is None else f"*{arguments.vararg.arg}")
    for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parts.append(item.arg if default is None else f"{item.arg}=")
    if arguments.kwarg is not None:
        parts.append(f"**{arguments.kwarg.arg}")
    return ", ".join(parts)


def read_signature(text: str) -> tuple[Signature, frozenset[str]]:
    """Return what `written_signature` wrote, with the replaced methods."""
    written, _, replaced = text.partition("!")
    required: list[str] = []
    optional: list[str] = []
    named: list[str] = []
    is_long = is_open = is_named = False
    for part in filter(None, written.strip("()").split(", ")):
        if part.startswith("**"):
            is_open = True
        elif part.startswith("*"):
            is_named, is_long = True, part != "*"
        elif is_named:
            named.append(part)
        elif part.endswith("="):
            optional.append(part[:-1])
        else:
            required.append(part)
    signature = Signature(tuple(required), tuple(optional), tuple(named), is_long, is_open)
    return signature, frozenset(filter(None, replaced.split(",")))


def own_calls(node: ast.ClassDef) -> dict[str, list[tuple[str, ast.Call | None]]]:
    """Return the calls `self.name(...)` of a class by name, each with the method that makes it.

    None stands for another use of a method. Calls under a condition about versions or signatures
    are left out, and those of a method to itself.
    """
    calls: dict[str, list[tuple[str, ast.Call | None]]] = {}
    for method in node.body:
        if isinstance(method, ast.FunctionDef):
            for name, call in _calls_below(method):
                if name != method.name:
                    calls.setdefault(name, []).append((method.name, call))
    return calls


def _calls_below(node: ast.AST) -> Iterator[tuple[str, ast.Call | None]]:
    if isinstance(node, ast.If):
        parts = guards.of_test(node.test, set(), in_function=True)
        branches = zip((node.body, node.orelse), parts, strict=True)
        below: list[ast.AST] = [node.test]
        below += [line for body, guard in branches if not guard for line in body]
    elif isinstance(node, ast.Try) and guards.of_try(node) == guards.GUARDED:
        below = [*node.finalbody]
    elif isinstance(node, ast.Call) and (name := _own_name(node.func)):
        yield name, node
        below = [*node.args, *node.keywords]
    elif isinstance(node, ast.expr) and (name := _own_name(node)):
        yield name, None
        return
    else:
        below = [*ast.iter_child_nodes(node)]
    for item in below:
        yield from _calls_below(item)


def _own_name(node: ast.expr) -> str:
    """Return the attribute of `self` that an expression reads, or ""."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "self" else ""
    return ""
