"""Each kind of error that pydantic knows, told in the words of the language."""

from __future__ import annotations

import re
from collections.abc import Mapping

from provision.diagnostics import Applicability, At, Diagnostic, Fix, Place, Replace, Route
from provision.source.findings import finding
from provision.source.locating import SHOWN, TEXT, Problem
from provision.source.quoting import quoted, written
from provision.source.shapes import elsewhere, keys_at
from provision.source.suggesting import fold, nearest
from provision.source.wording import FORMATS, LOOKS, OTHER_WORDS, dotted, kind_of, respelled

_WANTED = {
    TEXT: "a text",
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
_TRUTH = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false", "true": "true", "false": "false"}


def explain(problem: Problem, quotes: Mapping[Route, str]) -> Diagnostic:
    """Return the finding for one error; `quotes` is what `quotable` says of plain scalars."""
    match problem.type:
        case "missing" | "union_tag_not_found":
            return _missing(problem)
        case "extra_forbidden":
            return _unknown(problem)
        case "string_pattern_mismatch":
            return _format(problem)
        case "secret_literal":
            return finding(
                "secret-written-out",
                f"{problem.name} must name a secret, not hold one",
                problem.where,
                why=problem.message,
                hint=f"write it as in: {LOOKS['secrets']}",
            )
        case kind if kind in _CHOICES:
            return _choice(problem)
        case kind if kind in _BOUNDS:
            return _bound(problem)
        case kind if kind in _WANTED:
            return _type(problem, quotes)
        case _:
            return finding("bad-format", f"{problem.name}{problem.shown}: {problem.message}", problem.where)


def _missing(problem: Problem) -> Diagnostic:
    key = "kind" if problem.type == "union_tag_not_found" else str(problem.rest[0])
    holder = f"under {problem.name}" if problem.route else "in the spec"
    hint = f"add it, as in: {LOOKS.get(key) or _EXAMPLES.get(key, key + ': ...')}"
    return finding("missing-key", f"{key} is missing {holder}", Place(problem.route, At.KEY), hint=hint)


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


def _unknown(problem: Problem) -> Diagnostic:
    key, holder = str(problem.route[-1]), problem.route[:-1]
    known = keys_at(holder, problem.data)
    near = (OTHER_WORDS[key],) if OTHER_WORDS.get(key) in known else nearest(key, known)
    other = elsewhere(key)
    fix = None
    where = Place(problem.route, At.KEY)
    place = f"under {dotted(holder)}" if holder else "at the top of a spec"
    if other is not None and not (near and fold(near[0]) == fold(key)):
        hint = f"`{key}` stands under {other}" if other else f"`{key}` stands at the top of the spec"
    elif near:
        hint = f"did you mean {_either(near)}?"
        fix = _rename(problem, near, where, key)
    else:
        hint = "there are: " + ", ".join(known)
    return finding("unknown-key", f"there is no key {key[:SHOWN]} {place}", where, hint=hint, fix=fix)


def _rename(problem: Problem, near: tuple[str, ...], where: Place, key: str) -> Fix | None:
    present = problem.source.tree.find(problem.route[:-1]) if problem.source.tree is not None else None
    if len(near) > 1 and fold(near[0]) != fold(key):
        return None
    if present is not None and near[0] in present.children:
        return None
    kind = Applicability.SAFE if fold(near[0]) == fold(key) else Applicability.UNSAFE
    return Fix(f"rename it to {near[0]}", (Replace(where, near[0]),), kind)


def _choice(problem: Problem) -> Diagnostic:
    where, value, route = problem.where, problem.value, problem.route
    expected = str(problem.context.get("expected_tags") or problem.context.get("expected", ""))
    choices = tuple(re.findall(r"'([^']*)'", expected))
    if problem.type == "union_tag_invalid":
        route, value = (*route, "kind"), problem.value.get("kind")
        where = Place(route)
    text = problem.source.text(route)
    near = nearest(text or "", choices) if text else ()
    shown = f"`{text[:SHOWN]}`" if text and not problem.private else kind_of(value)
    if len(choices) == 1:
        message, hint = f"{dotted(route)} is {shown}; only {choices[0]} is known", f"write {choices[0]}"
        near = choices
    else:
        message = f"{dotted(route)} is {shown}, which is none of its choices"
        hint = (f"did you mean {_either(near)}? " if near else "") + "choose from " + ", ".join((near + tuple(c for c in choices if c not in near))[:5])
    fix = None
    if near and text is not None and (len(near) == 1 or fold(near[0]) == fold(text)):
        kind = Applicability.SAFE if fold(near[0]) == fold(text) else Applicability.UNSAFE
        fix = Fix(f"write {near[0]}", (Replace(where, written(near[0])),), kind)
    return finding("not-a-choice", message, where, hint=hint, fix=fix)


def _format(problem: Problem) -> Diagnostic:
    pattern = str(problem.context["pattern"])
    words, example = FORMATS.get(pattern, ("written another way", ""))
    if problem.at is At.KEY:
        return finding("bad-format", f"the key {problem.name} is not {words}", problem.where, hint=f"as in: {example}")
    fix = None
    meant = respelled(pattern, problem.value) if isinstance(problem.value, str) and not problem.private else None
    # A short form holds more than the part that is wrong.
    if meant is not None and not problem.rest:
        fix = Fix(f"write {quoted(meant)}", (Replace(problem.where, quoted(meant)),), Applicability.UNSAFE)
    part = f"the {problem.rest[-1]} of " if problem.rest else ""
    return finding("bad-format", f"{part}{problem.name}{problem.shown} is not {words}", problem.where, hint=f"as in: {example}", fix=fix)


def _bound(problem: Problem) -> Diagnostic:
    name, words = _BOUNDS[problem.type]
    bound = problem.context.get(name)
    what = f"{problem.name}{problem.shown}" if not isinstance(problem.value, dict | list) else f"{problem.name} with {len(problem.value)} entries"
    return finding("out-of-range", f"{what} must be {words} {bound}" if "entries" not in words else f"{what} must hold {words} {bound}", problem.where)


def _type(problem: Problem, quotes: Mapping[Route, str]) -> Diagnostic:
    value, wanted = problem.value, _WANTED[problem.type]
    if problem.type == "model_type" and problem.route[0] in ("gpu", "packages", "conda_packages"):
        wanted = "a text or a mapping"
    if problem.type == TEXT and isinstance(value, bool | int | float):
        return _lost(problem, quotes)
    fix = _retyped(problem)
    looks = _looks(problem)
    hint = fix.title if fix else f"write it as in: {looks}" if looks else f"write {wanted}"
    return finding("wrong-type", f"{problem.name}{problem.shown} is {kind_of(value)}; {wanted} is wanted", problem.where, hint=hint, fix=fix)


def _lost(problem: Problem, quotes: Mapping[Route, str]) -> Diagnostic:
    """Return the finding for a number or boolean where a text is wanted; the fix quotes the author's own text, in which 3.10 is not 3.1."""
    text = problem.source.text(problem.route) or ""
    example = quotes.get(problem.route, "")
    fix = None
    # A fix holds the value, and views show fixes.
    if not example and problem.route[:1] != ("secrets",):
        fix = Fix("put the value in quotes", (Replace(problem.where, quoted(text)),), Applicability.SAFE)
    read = str(problem.value)
    why = "" if read == text or problem.private or isinstance(problem.value, bool) else f"Without quotes, YAML reads {text} as {read}."
    hint = f"write it as in: {example}" if example else "put it in quotes" if problem.private else f"put it in quotes: {quoted(text)}"
    message = f"{problem.name}{problem.shown} is {kind_of(problem.value)} in YAML; a text is wanted"
    return finding("types-lost", message, problem.where, why=why, hint=hint, fix=fix)


def _retyped(problem: Problem) -> Fix | None:
    """Return the fix for a number or boolean that stands in quotes, a yes or no, or a single value where a list is wanted."""
    text = problem.value
    if not isinstance(text, str) or problem.private:
        return None
    new = None
    if problem.type in ("int_type", "float_type") and re.fullmatch(
        r"-?(0|[1-9][0-9]{0,17})" + (r"(\.[0-9]{1,17})?" if problem.type == "float_type" else ""), text
    ):
        new = text
    elif problem.type == "bool_type":
        new = _TRUTH.get(text.lower())
    elif problem.type == "list_type" and re.fullmatch(r"[^\s,\[\]{}]{1,200}", text):
        new = f"[{written(text)}]"
    return None if new is None else Fix(f"write {new}", (Replace(problem.where, new),), Applicability.SAFE)


def _looks(problem: Problem) -> str:
    """Return how the key is written; an item of a list, and a member of a mapping with free keys, goes by its holder."""
    free = problem.route[:1] in (("env",), ("secrets",), ("paths",), ("targets",), ("indexes",))
    parts = problem.route[-2:] if free or isinstance(problem.route[-1], int) else problem.route[-1:]
    return next((LOOKS[part] for part in reversed(parts) if isinstance(part, str) and part in LOOKS), "")


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
