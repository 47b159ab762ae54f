"""Edits of a spec, and the fixes that consist of them."""

from __future__ import annotations

import json
import re

from provision.diagnostics import Applicability, Edit, Fix, Insert, Replace, Route, RouteLocation
from provision.kinds.base import TargetFacts
from provision.rules.rule import LintContext

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._+~<>=!*-]*")
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "none"})


def unsafe_fix(title: str, *edits: Edit) -> Fix:
    """Return a fix that is applied on request only."""
    return Fix(title, edits, Applicability.UNSAFE)


def replace_fix(title: str, route: Route, text: str) -> Fix:
    """Return the unsafe fix that replaces a written value (YAML source)."""
    return unsafe_fix(title, Replace(RouteLocation(route), text))


def set_field_edit(context: LintContext, route: Route, text: str) -> Edit:
    """Return the edit that sets a field, written or not, to a value (YAML source)."""
    if context.source.text(route) is not None:
        return Replace(RouteLocation(route), text)
    return Insert(route[:-1], str(route[-1]), text)


def set_field_fix(context: LintContext, route: Route, text: str) -> Fix:
    """Return the unsafe fix that sets a field; "true" and "false" are written as booleans."""
    is_absent = context.source.text(route) is None
    value = text
    if text not in ("true", "false"):
        value = yaml_scalar(text, plain=is_absent or context.source.is_plain(route))
    return unsafe_fix(f"set `{route[-1]}: {text}`", set_field_edit(context, route, value))


def set_argument_fix(context: LintContext, name: str) -> Fix:
    """Return the fix that adds an argument of Trainer with the value true."""
    if "arguments" in context.spec.training.model_fields_set:
        edit = Insert(("training", "arguments"), name, "true")
    else:
        edit = Insert(("training",), "arguments", f"{{{name}: true}}")
    return unsafe_fix(f"set `{name}: true`", edit)


def isolate_fix(context: LintContext, target: TargetFacts) -> Fix:
    """Return the fix that gives a target an environment without its runtime's packages."""
    edit = set_field_edit(context, target.route_to("isolation"), "venv")
    return unsafe_fix("set `isolation: venv`", edit)


def yaml_scalar(text: str, *, plain: bool = True) -> str:
    """Return a YAML scalar for block and flow collections, quoted if needed or if not `plain`."""
    if plain and _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return json.dumps(text)
