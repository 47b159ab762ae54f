"""Texts of which every match of a regular expression contains one.

A text without any of them need not be searched, which is many times faster.
"""

from __future__ import annotations

import re
import re._constants as codes
import re._parser as parser
from collections.abc import Iterable
from typing import Any

_MIN_LENGTH = 4
"""Shorter texts stand in most logs."""
_MAX_TEXTS = 60
"""More texts take as long to look for as the expression."""
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def required_texts(regex: str) -> tuple[str, ...]:
    """Return texts of which every match of an expression contains one; () if none are known."""
    tree = parser.parse(regex)
    if tree.state.flags & re.IGNORECASE:
        return ()
    found = _of_sequence(tree)
    return tuple(sorted(found)) if len(found) <= _MAX_TEXTS else ()


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    """Return the best texts of a sequence: the longest, then the fewest."""
    candidates: list[frozenset[str]] = []
    run = ""
    for code, value in items:
        if code is codes.LITERAL:
            run += chr(value)
            continue
        candidates.append(frozenset({run}))
        run = ""
        candidates.append(_of_item(code, value))
    candidates.append(frozenset({run}))
    usable = [one for one in candidates if one and min(map(len, one)) >= _MIN_LENGTH]
    return max(usable, key=lambda one: (min(map(len, one)), -len(one)), default=frozenset())


def _of_item(code: Any, value: Any) -> frozenset[str]:
    if code is codes.SUBPATTERN:
        _, added_flags, _, inner = value
        return frozenset() if added_flags & re.IGNORECASE else _of_sequence(inner)
    if code is codes.ATOMIC_GROUP:
        return _of_sequence(value)
    if code in _REPEATS:
        least, _, inner = value
        return _of_sequence(inner) if least else frozenset()
    if code is codes.BRANCH:
        branches = [_of_sequence(branch) for branch in value[1]]
        return frozenset().union(*branches) if all(branches) else frozenset()
    return frozenset()
