"""Formats text as YAML scalars."""

from __future__ import annotations

import json
import re

from provision.source.nodes import resolve_scalar

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OUTSIDE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def quote_scalar(text: str) -> str:
    """Return a text as a YAML scalar in double quotes."""
    return _OUTSIDE.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(text, ensure_ascii=False)
    )


def format_scalar(text: str) -> str:
    """Return a text as a YAML scalar, quoted only if necessary, also in flow collections."""
    if _BARE.fullmatch(text) and isinstance(resolve_scalar(text)[0], str):
        return text
    return quote_scalar(text)
