"""Describes Python expressions of a notebook as text: conditions, strings and imports."""

from __future__ import annotations

import ast
import re

_LONGEST_CONDITION = 80


def find_colab_condition(test: ast.expr, *, is_false: bool = False) -> bool | None:
    """Return the place that a test requires: True for Colab, False for elsewhere, None for any.

    Args:
        test: The test of an if statement.
        is_false: True for the place that makes the test false.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return find_colab_condition(operand, is_false=not is_false)
        case ast.BoolOp(op=operator, values=values):
            places = {find_colab_condition(value, is_false=is_false) for value in values}
            # All parts of `a and b` are required, and of `a or b` any one is enough.
            if isinstance(operator, ast.And) != is_false:
                places.discard(None)
            return places.pop() if len(places) == 1 else None
    place = _place_of(test)
    return place if place is None else place != is_false


def _place_of(test: ast.expr) -> bool | None:
    """Return whether a test without `and`, `or` and `not` is about being on Colab."""
    if "colab" not in ast.unparse(test).lower():
        return None
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[other]):
            is_negative = isinstance(operator, ast.NotIn)
            if isinstance(other, ast.Constant) and not other.value:
                is_negative = isinstance(operator, ast.Eq | ast.Is)
            return (find_colab_condition(left) is not False) != is_negative
    return True


def text_of(node: ast.expr) -> str | None:
    """Return a string with {name} for each part that is not a literal, None for no string."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) or "" for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{shorten(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = text_of(left), text_of(right)
            if first is None and second is None:
                return None
            return (first or f"{{{shorten(left)}}}") + (second or f"{{{shorten(right)}}}")
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return re.sub(r"%\w", "{value}", text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return re.sub(r"\{\w*\}", "{value}", text)
    return None


def shorten(node: ast.AST) -> str:
    """Return the text of an expression or statement for a message, in one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_CONDITION else f"{text[:_LONGEST_CONDITION]}..."


def imported_modules(statement: ast.Import | ast.ImportFrom) -> tuple[str, ...]:
    """Return the full names of the modules that a statement imports."""
    if isinstance(statement, ast.Import):
        return tuple(alias.name for alias in statement.names)
    if statement.level or not statement.module:
        return ()
    return (statement.module,)
