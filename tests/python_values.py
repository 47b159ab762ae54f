"""Finds Python's own notation in texts that people read: tuples, bytes, and lists of quoted
strings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_IN_BRACKETS = re.compile(r"(?<![\w.\])])(?:\([^()\[\]]*\)|\[['\"][^\[\]]*\])")
_BYTES = re.compile(r"\bb(?:'[^']*'|\"[^\"]*\")")


def python_values(text: str) -> list[str]:
    """Return what in a text is a tuple, bytes or a list of strings as Python writes it; calls such
    as `main()` are none.
    """
    return [*_literals(text), *_BYTES.findall(text)]


def strings_of(value: object) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)


def _literals(text: str) -> Iterator[str]:
    for found in _IN_BRACKETS.findall(text):
        try:
            value = ast.literal_eval(found)
        except (ValueError, SyntaxError):
            continue
        if isinstance(value, (tuple, list)):
            yield found
