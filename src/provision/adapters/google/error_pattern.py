"""The type of an error pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from provision.adapters.google.error_hints import HintValues


class ErrorPattern(NamedTuple):
    """An error with its scope, message and hint.

    It matches if the code is among `codes` (() for any), and one of `patterns` is in the message or
    the reason is among `reasons`.
    """

    kind: str
    scope: str | Callable[[HintValues], str]
    what: str | Callable[[HintValues], str]
    hint: str | Callable[[HintValues], str]
    patterns: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()
    operation: bool | None = None
    max_retries: int | None = 0
