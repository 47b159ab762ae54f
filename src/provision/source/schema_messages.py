"""Each kind of error that pydantic knows, told in the words of the language."""

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
)
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
    STRING_TYPE: "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_CHOICES = ("literal_error", "enum", "union_tag_invalid")
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "too_short": ("min_length", "at least as many entries as"),
    "too_long": ("max_length", "at most as many entries as"),
}
_BOOLEAN_WORDS = {
    "yes": "true",
    "on": "true",
    "y": "true",
    "no": "false",
    "off": "false",
    "n": "false",
    "true": "true",
    "false": "false",
}


def explain_error(problem: LocatedError, quotes: Mapping[Route, str]) -> Diagnostic:
    """Return the finding for one error; `quotes` is what `quotable` says of plain scalars."""
    match problem.type:
        case "missing" | "union_tag_not_found":
            return _missing(problem)
        case "extra_forbidden":
            return _unknown(problem)
        case "string_pattern_mismatch":
            return _format(problem)
        case "secret_literal":
            return make_finding(
                "secret-written-out",
                f"{problem.name} must name a secret, not hold one",
                problem.where,
                why=problem.message,
                hint=f"write it as in: {KEY_EXAMPLES['secrets']}",
            )
        case kind if kind in _CHOICES:
            return _choice(problem)
        case kind if kind in _BOUNDS:
            return _bound(problem)
        case kind if kind in _EXPECTED_TYPES:
            return _type(problem, quotes)
        case _:
            return make_finding(
                "bad-format",
                f"{problem.name}{problem.quoted_value}: {problem.message}",
                problem.where,
            )


def _missing(problem: LocatedError) -> Diagnostic:
    key = "kind" if problem.type == "union_tag_not_found" else str(problem.rest[0])
    holder = f"under {problem.name}" if problem.route else "in the spec"
    hint = f"add it, as in: {KEY_EXAMPLES.get(key) or _EXAMPLES.get(key, key + ': ...')}"
    return make_finding(
        "missing-key",
        f"{key} is missing {holder}",
        RouteLocation(problem.route, RoutePart.KEY),
        hint=hint,
    )


_EXAMPLES = {
    "python": 'python: "3.12"',
    "type": "type: L4",
    "kind": "kind: local (or colab, colab-enterprise, workbench)",
    "name": "name: torch",
    "url": "url: https://packages.example.com/simple",
    "project": "project: my-project",
    "region": "region: us-central1",
    "limit_per_hour": "limit_per_hour: 3.0",
}


def _unknown(problem: LocatedError) -> Diagnostic:
    key, holder = str(problem.route[-1]), problem.route[:-1]
    known = keys_at(holder, problem.data)
    near = (KEY_SYNONYMS[key],) if KEY_SYNONYMS.get(key) in known else nearest_words(key, known)
    other = find_key_parent(key)
    fix = None
    where = RouteLocation(problem.route, RoutePart.KEY)
    place = f"under {format_route(holder)}" if holder else "at the top of a spec"
    if other is not None and not (near and normalize_word(near[0]) == normalize_word(key)):
        hint = (
            f"`{key}` stands under {other}" if other else f"`{key}` stands at the top of the spec"
        )
    elif near:
        hint = f"did you mean {_join_with_or(near)}?"
        fix = _rename(problem, near, where, key)
    else:
        hint = "there are: " + ", ".join(known)
    return make_finding(
        "unknown-key",
        f"there is no key {key[:MAX_SHOWN_LENGTH]} {place}",
        where,
        hint=hint,
        fix=fix,
    )


def _rename(
    problem: LocatedError, near: tuple[str, ...], where: RouteLocation, key: str
) -> Fix | None:
    present = (
        problem.source.tree.find(problem.route[:-1]) if problem.source.tree is not None else None
    )
    if len(near) > 1 and normalize_word(near[0]) != normalize_word(key):
        return None
    if present is not None and near[0] in present.children:
        return None
    kind = (
        Applicability.SAFE
        if normalize_word(near[0]) == normalize_word(key)
        else Applicability.UNSAFE
    )
    return Fix(f"rename it to {near[0]}", (Replace(where, near[0]),), kind)


def _choice(problem: LocatedError) -> Diagnostic:
    where, value, route = problem.where, problem.value, problem.route
    expected = str(problem.context.get("expected_tags") or problem.context.get("expected", ""))
    choices = tuple(re.findall(r"'([^']*)'", expected))
    if problem.type == "union_tag_invalid":
        route, value = (*route, "kind"), problem.value.get("kind")
        where = RouteLocation(route)
    text = problem.source.text(route)
    near = nearest_words(text or "", choices) if text else ()
    shown = (
        f"`{text[:MAX_SHOWN_LENGTH]}`" if text and not problem.is_private else describe_type(value)
    )
    if len(choices) == 1:
        message, hint = (
            f"{format_route(route)} is {shown}; only {choices[0]} is known",
            f"write {choices[0]}",
        )
        near = choices
    else:
        message = f"{format_route(route)} is {shown}, which is none of its choices"
        hint = (
            (f"did you mean {_join_with_or(near)}? " if near else "")
            + "choose from "
            + ", ".join((near + tuple(c for c in choices if c not in near))[:5])
        )
    fix = None
    if (
        near
        and text is not None
        and (len(near) == 1 or normalize_word(near[0]) == normalize_word(text))
    ):
        kind = (
            Applicability.SAFE
            if normalize_word(near[0]) == normalize_word(text)
            else Applicability.UNSAFE
        )
        fix = Fix(f"write {near[0]}", (Replace(where, format_scalar(near[0])),), kind)
    return make_finding("not-a-choice", message, where, hint=hint, fix=fix)


def _format(problem: LocatedError) -> Diagnostic:
    pattern = str(problem.context["pattern"])
    words, example = FORMAT_DESCRIPTIONS.get(pattern, ("written another way", ""))
    if problem.at is RoutePart.KEY:
        return make_finding(
            "bad-format",
            f"the key {problem.name} is not {words}",
            problem.where,
            hint=f"as in: {example}",
        )
    fix = None
    meant = (
        correct_format(pattern, problem.value)
        if isinstance(problem.value, str) and not problem.is_private
        else None
    )
    # A short form holds more than the part that is wrong.
    if meant is not None and not problem.rest:
        fix = Fix(
            f"write {quote_scalar(meant)}",
            (Replace(problem.where, quote_scalar(meant)),),
            Applicability.UNSAFE,
        )
    part = f"the {problem.rest[-1]} of " if problem.rest else ""
    return make_finding(
        "bad-format",
        f"{part}{problem.name}{problem.quoted_value} is not {words}",
        problem.where,
        hint=f"as in: {example}",
        fix=fix,
    )


def _bound(problem: LocatedError) -> Diagnostic:
    name, words = _BOUNDS[problem.type]
    bound = problem.context.get(name)
    what = (
        f"{problem.name}{problem.quoted_value}"
        if not isinstance(problem.value, dict | list)
        else f"{problem.name} with {len(problem.value)} entries"
    )
    return make_finding(
        "out-of-range",
        f"{what} must be {words} {bound}"
        if "entries" not in words
        else f"{what} must hold {words} {bound}",
        problem.where,
    )


def _type(problem: LocatedError, quotes: Mapping[Route, str]) -> Diagnostic:
    value, wanted = problem.value, _EXPECTED_TYPES[problem.type]
    if problem.type == "model_type" and problem.route[0] in ("gpu", "packages", "conda_packages"):
        wanted = "a text or a mapping"
    if problem.type == STRING_TYPE and isinstance(value, bool | int | float):
        return _type_lost(problem, quotes)
    fix = _retyped(problem)
    looks = _key_example(problem)
    hint = fix.title if fix else f"write it as in: {looks}" if looks else f"write {wanted}"
    return make_finding(
        "wrong-type",
        f"{problem.name}{problem.quoted_value} is {describe_type(value)}; {wanted} is wanted",
        problem.where,
        hint=hint,
        fix=fix,
    )


def _type_lost(problem: LocatedError, quotes: Mapping[Route, str]) -> Diagnostic:
    """Return the finding for a number or boolean where a text is wanted; the fix quotes the
    author's own text, in which 3.10 is not 3.1.
    """
    text = problem.source.text(problem.route) or ""
    example = quotes.get(problem.route, "")
    fix = None
    # A fix holds the value, and views show fixes.
    if not example and problem.route[:1] != ("secrets",):
        fix = Fix(
            "put the value in quotes",
            (Replace(problem.where, quote_scalar(text)),),
            Applicability.SAFE,
        )
    read = str(problem.value)
    why = (
        ""
        if read == text or problem.is_private or isinstance(problem.value, bool)
        else f"Without quotes, YAML reads {text} as {read}."
    )
    hint = (
        f"write it as in: {example}"
        if example
        else "put it in quotes"
        if problem.is_private
        else f"put it in quotes: {quote_scalar(text)}"
    )
    message = (
        f"{problem.name}{problem.quoted_value} is {describe_type(problem.value)} in YAML; a "
        "text is wanted"
    )
    return make_finding("types-lost", message, problem.where, why=why, hint=hint, fix=fix)


def _retyped(problem: LocatedError) -> Fix | None:
    """Return the fix for a number or boolean that stands in quotes, a yes or no, or a single value
    where a list is wanted.
    """
    text = problem.value
    if not isinstance(text, str) or problem.is_private:
        return None
    new = None
    if problem.type in ("int_type", "float_type") and re.fullmatch(
        r"-?(0|[1-9][0-9]{0,17})" + (r"(\.[0-9]{1,17})?" if problem.type == "float_type" else ""),
        text,
    ):
        new = text
    elif problem.type == "bool_type":
        new = _BOOLEAN_WORDS.get(text.lower())
    elif problem.type == "list_type" and re.fullmatch(r"[^\s,\[\]{}]{1,200}", text):
        new = f"[{format_scalar(text)}]"
    return (
        None
        if new is None
        else Fix(f"write {new}", (Replace(problem.where, new),), Applicability.SAFE)
    )


def _key_example(problem: LocatedError) -> str:
    """Return how the key is written; an item of a list, and a member of a mapping with free keys,
    goes by its holder.
    """
    free = problem.route[:1] in (("env",), ("secrets",), ("paths",), ("targets",), ("indexes",))
    parts = problem.route[-2:] if free or isinstance(problem.route[-1], int) else problem.route[-1:]
    return next(
        (
            KEY_EXAMPLES[part]
            for part in reversed(parts)
            if isinstance(part, str) and part in KEY_EXAMPLES
        ),
        "",
    )


def _join_with_or(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
