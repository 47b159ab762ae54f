"""Finds the positions of strings in a JSON text that is known to be valid."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]', re.DOTALL)
_KEY_END = re.compile(r"[ \t\r\n]*:")
_COMMENT = re.compile(
    r'(?P<kept>"[^"\\]*(?:\\.[^"\\]*)*"?)'
    r"|//[^\r\n]*|/\*(?:.*?\*/|.*)"
    r"|,(?=(?:\s|//[^\r\n]*|/\*.*?\*/)*[}\]])",
    re.DOTALL,
)


def find_strings(text: str) -> Iterator[tuple[tuple[str | int, ...], int, int]]:
    """Yield the route and the range of each string value, quotes included.

    Keys, numbers, true, false and null are left out.
    """
    route: list[str | int] = []
    last = (0, 0)
    for match in _TOKEN.finditer(text):
        mark = text[match.start()]
        if mark == '"':
            last = match.span()
            if _KEY_END.match(text, match.end()) is None:
                yield tuple(route), *last
        elif mark == ":":
            route[-1] = text[last[0] + 1 : last[1] - 1]
        elif mark in "{[":
            route.append("" if mark == "{" else 0)
        elif mark in "}]":
            route.pop()
        elif route and isinstance(route[-1], int):
            route[-1] += 1


def mask_json_comments(text: str) -> str:
    """Return JSON with comments and trailing commas as plain JSON; positions stay the same."""
    return _COMMENT.sub(lambda match: match["kept"] or re.sub(r"[^\r\n]", " ", match[0]), text)
