"""Messages for pydantic's errors in the vocabulary of the spec."""

from __future__ import annotations

import re
from collections.abc import Mapping

from provision.diagnostics import (
    Applicability,
    Diagnostic,
    Fix,
    Replace,
    Route,
    RouteLocation,
    RoutePart,
    field_of,
)
from provision.field_types import SECRETS_ARE_NAMED
from provision.source.findings import make_finding
from provision.source.pydantic_errors import MAX_SHOWN_LENGTH, STRING_TYPE, LocatedError
from provision.source.schema_lookup import find_key_parent, keys_at
from provision.source.vocabulary import (
    FORMAT_DESCRIPTIONS,
    KEY_EXAMPLES,
    KEY_SYNONYMS,
    correct_format,
    describe_type,
    format_route,
)
from provision.source.yaml_scalars import format_scalar, quote_scalar
from provision.spelling import nearest_words, normalize_word

_EXPECTED_TYPES = {
    STRING_TYPE: "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_NUMBERS = {
    "int_type": re.compile(r"-?(0|[1-9][0-9]{0,17})"),
    "float_type": re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?"),
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "too_short": ("min_length", "at least"),
    "too_long": ("max_length", "at most"),
}
_TRUE_WORDS = ("yes", "on", "y", "true")
_FALSE_WORDS = ("no", "off", "n", "false")


def explain_error(problem: LocatedError, quotes: Mapping[Route, str]) -> Diagnostic:
    """Return the finding for an error; `quotes` is the result of `find_unquoted_scalars`."""
    match problem.type:
        case "missing" | "union_tag_not_found":
            return _explain_missing(problem)
        case "extra_forbidden":
            return _explain_unknown_key(problem)
        case "string_pattern_mismatch":
            return _explain_format(problem)
        case "secret_literal":
            return _explain_secret(problem.name, problem.where, problem.message)
        case "requirement":
            message = f"{problem.name}{problem.quoted_value} {problem.message}"
            hint = str(problem.context["hint"])
            return make_finding("bad-format", message, problem.where, hint=hint)
        case "literal_error" | "enum" | "union_tag_invalid":
            return _explain_choice(problem)
        case kind if kind in _BOUNDS:
            return _explain_bound(problem)
        case kind if kind in _EXPECTED_TYPES:
            return _explain_type(problem, quotes)
        case _:
            message = f"{problem.name}{problem.quoted_value}: {problem.message}"
            return make_finding("bad-format", message, problem.where)


def _explain_missing(problem: LocatedError) -> Diagnostic:
    key = "kind" if problem.type == "union_tag_not_found" else str(problem.rest[0])
    parent = f"under {problem.name}" if problem.route else "in the spec"
    example = KEY_EXAMPLES.get(key) or _EXAMPLES.get(key, key + ": ...")
    if key == "kind":
        first, *others = (kind.name for kind in problem.registry.kinds)
        example = f"kind: {first} (or {', '.join(others)})"
    return make_finding(
        "missing-key",
        f"{key} is missing {parent}",
        RouteLocation(problem.route, RoutePart.KEY),
        hint=f"add it, for example: {example}",
    )


_EXAMPLES = {
    "python": 'python: "3.12"',
    "type": "type: L4",
    "name": "name: torch",
    "url": "url: https://packages.example.com/simple",
    "project": "project: my-project",
    "region": "region: us-central1",
}


def _explain_unknown_key(problem: LocatedError) -> Diagnostic:
    key, route = str(problem.route[-1]), problem.route[:-1]
    known = keys_at(route, problem.data, problem.registry)
    if KEY_SYNONYMS.get(key) in known:
        near: tuple[str, ...] = (KEY_SYNONYMS[key],)
    else:
        near = nearest_words(key, known)
    if field_of(problem.route) == "secrets" and not near:
        return _explain_secret(format_route(route), RouteLocation(problem.route), SECRETS_ARE_NAMED)
    parent = find_key_parent(key, problem.registry)
    fix = None
    where = RouteLocation(problem.route, RoutePart.KEY)
    if parent is not None and not _is_same_word(near, key):
        hint = f"`{key}` belongs " + (f"under {parent}" if parent else "at the top level")
    elif near:
        hint = f"did you mean {_join_with_or(near)}?"
        tree = problem.source.tree
        siblings = tree.find(route) if tree else None
        if siblings is None or near[0] not in siblings.children:
            fix = _suggested_fix(near, key, "rename it to", where)
    else:
        hint = "valid keys: " + ", ".join(known)
    level = f"under {format_route(route)}" if route else "at the top level of the spec"
    message = f"unknown key {key[:MAX_SHOWN_LENGTH]} {level}"
    return make_finding("unknown-key", message, where, hint=hint, fix=fix)


def _explain_secret(name: str, where: RouteLocation, why: str) -> Diagnostic:
    return make_finding(
        "secret-written-out",
        f"{name} must name a secret, not contain one",
        where,
        why=why,
        hint=f"for example: {KEY_EXAMPLES['secrets']}",
    )


def _is_same_word(near: tuple[str, ...], text: str) -> bool:
    """Return whether a text differs from the nearest word just in case, `-`, `_` or blanks."""
    return bool(near) and normalize_word(near[0]) == normalize_word(text)


def _suggested_fix(
    near: tuple[str, ...], text: str, title: str, where: RouteLocation
) -> Fix | None:
    """Return the fix that writes the nearest word, None if there is a choice of several."""
    is_same_word = _is_same_word(near, text)
    if not near or (len(near) > 1 and not is_same_word):
        return None
    applicability = Applicability.SAFE if is_same_word else Applicability.UNSAFE
    edit = Replace(where, format_scalar(near[0]))
    return Fix(f"{title} {near[0]}", (edit,), applicability)


def _explain_choice(problem: LocatedError) -> Diagnostic:
    where, value, route = problem.where, problem.value, problem.route
    expected = str(problem.context.get("expected_tags") or problem.context.get("expected", ""))
    choices = tuple(re.findall(r"'([^']*)'", expected))
    if problem.type == "union_tag_invalid":
        route, value = (*route, "kind"), problem.value.get("kind")
        where = RouteLocation(route)
    text = problem.source.text(route)
    near = nearest_words(text or "", choices) if text else ()
    shown = describe_type(value)
    if text and not problem.is_private:
        shown = f"`{text[:MAX_SHOWN_LENGTH]}`"
    message = f"{format_route(route)} is {shown}"
    if len(choices) == 1:
        message += f"; the only choice is {choices[0]}"
        hint = f"write {choices[0]}"
        near = choices
    else:
        message += ", which is not a valid choice"
        listed = [*near, *(choice for choice in choices if choice not in near)][:5]
        hint = f"choose from {', '.join(listed)}"
        if near:
            hint = f"did you mean {_join_with_or(near)}? {hint}"
    fix = _suggested_fix(near, text, "write", where) if text is not None else None
    return make_finding("not-a-choice", message, where, hint=hint, fix=fix)


def _explain_format(problem: LocatedError) -> Diagnostic:
    pattern = str(problem.context["pattern"])
    description, example = FORMAT_DESCRIPTIONS.get(pattern, ("in the expected format", ""))
    hint = f"for example: {example}"
    if problem.at is RoutePart.KEY:
        message = f"the key {problem.name} is not {description}"
        return make_finding("bad-format", message, problem.where, hint=hint)
    fix = None
    # A short form contains more than the part that is wrong.
    if isinstance(problem.value, str) and not problem.is_private and not problem.rest:
        corrected = correct_format(pattern, problem.value)
        if corrected is not None:
            new = quote_scalar(corrected)
            fix = Fix(f"write {new}", (Replace(problem.where, new),), Applicability.UNSAFE)
    part = f"the {problem.rest[-1]} of " if problem.rest else ""
    message = f"{part}{problem.name}{problem.quoted_value} is not {description}"
    return make_finding("bad-format", message, problem.where, hint=hint, fix=fix)


def _explain_bound(problem: LocatedError) -> Diagnostic:
    name, relation = _BOUNDS[problem.type]
    expected = f"{relation} {problem.context.get(name)}"
    message = f"{problem.name} must be {expected}"
    if value := problem.quoted_value:
        message += f", but is{value}"
    if isinstance(problem.value, dict | list):
        message = f"{problem.name} has {len(problem.value)} entries; expected {expected}"
    return make_finding("out-of-range", message, problem.where)


def _explain_type(problem: LocatedError, quotes: Mapping[Route, str]) -> Diagnostic:
    value, expected = problem.value, _EXPECTED_TYPES[problem.type]
    if problem.type == "model_type" and problem.route[0] in ("gpu", "packages", "conda_packages"):
        expected = "a string or a mapping"
    if problem.type == STRING_TYPE and isinstance(value, bool | int | float):
        return _explain_lost_type(problem, quotes)
    hint = f"write {expected}"
    fix = _retype_fix(problem)
    if fix:
        hint = fix.title
    elif example := _key_example(problem):
        hint = f"for example: {example}"
    message = f"{problem.name}: expected {expected}, got {_describe(problem)}"
    return make_finding("wrong-type", message, problem.where, hint=hint, fix=fix)


def _describe(problem: LocatedError) -> str:
    """Return the type of a value, and the value if it can be shown: "the number `3.10`"."""
    described = describe_type(problem.value)
    if not problem.quoted_value:
        return described
    return f"the {described.split()[-1]}{problem.quoted_value}"


def _explain_lost_type(problem: LocatedError, quotes: Mapping[Route, str]) -> Diagnostic:
    """Return the finding for a number or boolean in place of text.

    The fix quotes the author's own text, in which 3.10 is not 3.1.
    """
    text = problem.source.text(problem.route) or ""
    example = quotes.get(problem.route, "")
    fix, why = None, ""
    # A fix contains the value, and views show fixes.
    if not example and field_of(problem.route) != "secrets":
        edit = Replace(problem.where, quote_scalar(text))
        fix = Fix("put the value in quotes", (edit,), Applicability.SAFE)
    value = str(problem.value)
    if value != text and not problem.is_private and not isinstance(problem.value, bool):
        why = f"Without quotes, YAML reads {text} as {value}."
    hint = "put it in quotes"
    if example:
        hint = f"for example: {example}"
    elif not problem.is_private:
        hint = f"put it in quotes: {quote_scalar(text)}"
    message = f"{problem.name}: expected a string, got {_describe(problem)}"
    return make_finding("types-lost", message, problem.where, why=why, hint=hint, fix=fix)


def _retype_fix(problem: LocatedError) -> Fix | None:
    """Return the fix for a value of the wrong YAML type.

    Such a value is a quoted number or boolean, a yes or no, or a single value instead of a list.
    """
    text = problem.value
    if not isinstance(text, str) or problem.is_private:
        return None
    new = None
    if problem.type in _NUMBERS:
        new = text if _NUMBERS[problem.type].fullmatch(text) else None
    elif problem.type == "bool_type":
        if text.lower() in _TRUE_WORDS:
            new = "true"
        elif text.lower() in _FALSE_WORDS:
            new = "false"
    elif problem.type == "list_type" and re.fullmatch(r"[^\s,\[\]{}]{1,200}", text):
        new = f"[{format_scalar(text)}]"
    if new is None:
        return None
    return Fix(f"write {new}", (Replace(problem.where, new),), Applicability.SAFE)


def _key_example(problem: LocatedError) -> str:
    """Return an example of the key.

    An item of a list, and a member of a mapping with free keys, use the example of their parent.
    """
    free = problem.route[:1] in (("env",), ("secrets",), ("paths",), ("targets",), ("indexes",))
    parts = problem.route[-2:] if free or isinstance(problem.route[-1], int) else problem.route[-1:]
    examples = (KEY_EXAMPLES.get(str(part), "") for part in reversed(parts))
    return next(filter(None, examples), "")


def _join_with_or(choices: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
