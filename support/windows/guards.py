"""Conditions under which a use of a package does not count, or counts only in newer releases."""

from __future__ import annotations

import ast
import re

ALWAYS: frozenset[str] = frozenset()
GUARDED = frozenset({"guarded"})
"""The use is tried, or depends on a version or on a setting."""
SKIPPED = frozenset({"skipped"})
"""The branch is never run, such as that of type checkers."""

_VERSION = re.compile(
    r"version|hasattr|signature|greater|_ge_|_gte|_lt_|less|inspect|sys\.|platform|getattr|parameters|find_spec\(.*\.|is_\w+_\d|_v?\d+_\d+|"
    r"minimum|\bMIN_"
)
_PRESENCE = re.compile(
    r"^_?(?:is|IS|has|HAS)?_?(?P<name>\w+?)_?(?:available|AVAILABLE|installed|INSTALLED)$"
)
_TRIED = {
    "ImportError",
    "ModuleNotFoundError",
    "AttributeError",
    "Exception",
    "BaseException",
    "TypeError",
    "RuntimeError",
    "NameError",
    "OptionalDependencyNotAvailable",
}
_OTHER_CONDITION = GUARDED


def of_test(
    test: ast.expr, versions: set[str], *, in_function: bool
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the guards of the two branches of a condition.

    A guard such as "presence:peft" means that the branch runs if a package is installed. Inside of
    functions, conditions about other things are no guards.

    Args:
        test: the condition.
        versions: names that hold the result of a comparison of versions.
        in_function: whether the condition is evaluated in a call, not at import.
    """
    text = ast.unparse(test)
    if "TYPE_CHECKING" in text:
        return SKIPPED, ALWAYS
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    present = _presence(test)
    if present is not None and not names & versions:
        return present, GUARDED
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _presence(test.operand)
        if inner is not None:
            return GUARDED, inner
    if _VERSION.search(text) or names & versions or "available" in text.lower():
        return GUARDED, GUARDED
    if in_function:
        return ALWAYS, ALWAYS
    return _OTHER_CONDITION, _OTHER_CONDITION


def of_try(statement: ast.Try) -> frozenset[str]:
    """Return the guard of the body of a try."""
    for handler in statement.handlers:
        caught = "Exception" if handler.type is None else ast.unparse(handler.type)
        if any(name.rpartition(".")[2] in _TRIED for name in re.findall(r"[\w.]+", caught)):
            return GUARDED
    return ALWAYS


def of_with(statement: ast.With | ast.AsyncWith) -> frozenset[str]:
    """Return the guard of the body of a with statement: one that suppresses errors is a try."""
    text = " ".join(ast.unparse(item.context_expr) for item in statement.items)
    return GUARDED if re.search(r"suppress|optional|catch|try_import|PlaceHolder", text) else ALWAYS


def compares_versions(value: ast.expr) -> bool:
    """Return whether a value is the result of a comparison of versions or a search for a name."""
    return bool(_VERSION.search(ast.unparse(value)))


def _presence(test: ast.expr) -> frozenset[str] | None:
    """Return the guards for a condition that only asks which packages are installed."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = [_presence(value) for value in test.values]
        if any(part is None for part in parts):
            return None
        return frozenset().union(*(part for part in parts if part is not None))
    if isinstance(test, ast.Call):
        name = ast.unparse(test.func).rpartition(".")[2]
        if test.args or test.keywords:
            return None
    elif isinstance(test, ast.Name | ast.Attribute):
        name = ast.unparse(test).rpartition(".")[2]
    else:
        return None
    found = _PRESENCE.match(name)
    return frozenset({f"presence:{found['name'].lower()}"}) if found else None
