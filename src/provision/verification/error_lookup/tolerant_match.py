"""Expressions that also match a text whose quotes and double underscores a web page has dropped."""

from __future__ import annotations

import re
from functools import cache

_PART = re.compile(
    r"\\."  # an escaped character
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]"  # a class of characters
    r"|(?P<mark>['`])(?![?*+{])"
    r"|(?P<underscores>__)(?=\w)|(?<=\w)(?P<closing>__)(?!\w)"
    r"|.",
    re.DOTALL,
)
_MARK = "['`\"]?"


@cache
def compile_tolerant(regex: str) -> re.Pattern[str]:
    """Compile a symptom's expression with optional quotes and double underscores.

    Markdown takes backticks and underscores as marks and does not show them.
    """
    return re.compile(_PART.sub(_make_optional, regex))


def _make_optional(part: re.Match[str]) -> str:
    if part["mark"]:
        return _MARK
    if part["underscores"] or part["closing"]:
        return "(?:__)?"
    return part.group()
