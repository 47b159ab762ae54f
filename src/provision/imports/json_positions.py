"""Finds the positions of strings in a JSON text that is known to be valid."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BLANK = r"[ \t\r\n]*+"
_TOKEN = re.compile(
    rf"({_STRING.pattern})({_BLANK}:)?"
    rf"|(\[{_BLANK}{_STRING.pattern}(?:{_BLANK},{_BLANK}{_STRING.pattern})*+{_BLANK}\])"
    r"|[{}\[\],]",
    re.DOTALL,
)
"""A string and perhaps the colon of a key, a list of strings alone, or a mark."""
_COMMENT = re.compile(
    r'(?P<kept>"[^"\\]*(?:\\.[^"\\]*)*"?)'
    r"|//[^\r\n]*|/\*(?:.*?\*/|.*)"
    r"|,(?=(?:\s|//[^\r\n]*|/\*.*?\*/)*[}\]])",
    re.DOTALL,
)


def find_strings(
    text: str, *, in_key: str | None = None
) -> Iterator[tuple[tuple[str | int, ...], int, int]]:
    """Yield the route and the range of each string value, quotes included.

    Keys, numbers, true, false and null are left out.

    Args:
        text: The JSON.
        in_key: Leave out lists of strings that are not the value of this key.
    """
    route: list[str | int] = []
    for match in _TOKEN.finditer(text):
        mark = text[match.start()]
        if mark == '"':
            start, end = match.span(1)
            if match[2] is None:
                yield tuple(route), start, end
            else:
                route[-1] = text[start + 1 : end - 1]
        elif match[3] is not None:
            if in_key is None or (route and route[-1] == in_key):
                strings = _STRING.finditer(text, *match.span())
                for number, string in enumerate(strings):
                    yield (*route, number), *string.span()
        elif mark in "{[":
            route.append("" if mark == "{" else 0)
        elif mark in "}]":
            route.pop()
        elif route and isinstance(route[-1], int):
            route[-1] += 1


def mask_json_comments(text: str) -> str:
    """Return JSON with comments and trailing commas as plain JSON; positions stay the same."""
    return _COMMENT.sub(lambda match: match["kept"] or re.sub(r"[^\r\n]", " ", match[0]), text)
