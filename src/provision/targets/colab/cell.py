"""Text of the first cell: a program that is the same for every spec, with a document as data."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from provision.assets import find_asset
from provision.targets.colab.payload import decode_payload


def read_template(name: str) -> str:
    """Return the program of a cell: "cell" makes the environment, "verify" shows the report.

    "run" runs a script in an isolated environment.
    """
    return find_asset(f"templates/colab-{name}.py").read_text(encoding="utf-8")


PLACEHOLDER = '{"ABOUT": "HERE"}'
"""The literal in the templates that is replaced with the description of the cell."""


def render_cell(
    about: Mapping[str, Any],
    payload: Sequence[str],
    addresses: Sequence[str] = (),
    code: Sequence[str] = (),
) -> str:
    """Return the cell's text.

    `about` describes the cell for people; the payload follows as lines, or as its addresses, and
    the description of the code for the next rendering.
    """
    places = {"payload_urls": list(addresses), "payload": [] if addresses else list(payload)}
    places |= {"code": list(code)} if code else {}
    return read_template("cell").replace(PLACEHOLDER, to_literal({**about, **places}))


def fill_template(template: str, about: Mapping[str, Any]) -> str:
    """Return the text of another cell."""
    return template.replace(PLACEHOLDER, to_literal(about))


@functools.lru_cache(maxsize=8)
def parse_about(text: str) -> Mapping[str, Any] | None:
    """Return the document in a cell's text; None if there is none.

    Cached: one command reads the same cell about ten times, at 10 ms each.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "ABOUT"
            and isinstance(node.value, ast.Dict)
        ):
            try:
                return dict(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def is_same_cell(left: str, right: str) -> bool:
    """Return whether two cells have the same program and data, however these are compressed."""
    if left == right:
        return True
    if _without_payload(left) != _without_payload(right):
        return False
    abouts = [parse_about(text) for text in (left, right)]
    if None in abouts:
        return False
    first, second = ({**about} for about in abouts if about is not None)
    compressed = [[about.pop(key, []) for about in (first, second)] for key in ("payload", "code")]
    return first == second and all(_is_same_payload(*lines) for lines in compressed)


def to_literal(about: Mapping[str, Any]) -> str:
    """Return strings, numbers and lists of them as a Python literal, one key per line.

    It is JSON, except for characters that JSON writes as surrogate pairs.
    """
    return (
        "{\n"
        + "".join(f"    {_text(key)}: {_value(value)},\n" for key, value in about.items())
        + "}"
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return (
            "["
            + "".join(f"\n        {_text(item)}," for item in value)
            + ("\n    ]" if value else "]")
        )
    return str(value) if isinstance(value, int) else _text(value)


def _text(text: str) -> str:
    # Python reads a surrogate pair, as JSON writes it, as two characters.
    return json.dumps(text) if text.isascii() or max(text) < "\U00010000" else ascii(text)


def _without_payload(text: str) -> str:
    before, _, after = text.partition('"payload": [')
    return before + after.partition("\n}")[2]


def _is_same_payload(left: Any, right: Any) -> bool:
    if not (isinstance(left, list) and isinstance(right, list)):
        return False
    if not all(isinstance(line, str) for line in (*left, *right)):
        return False
    try:
        return decode_payload(left) == decode_payload(right) if left and right else left == right
    except ValueError:
        return False
