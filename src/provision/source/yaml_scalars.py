"""Text as it is written in YAML, so that it is read back as that text."""

from __future__ import annotations

import json
import re

from provision.source.nodes import resolve_scalar

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OUTSIDE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def quote_scalar(text: str) -> str:
    """Return `text` as a YAML scalar in double quotes."""
    return _OUTSIDE.sub(
        lambda found: f"\\u{ord(found.group()):04x}", json.dumps(text, ensure_ascii=False)
    )


def format_scalar(text: str) -> str:
    """Return `text` as a YAML scalar, in quotes only where it needs them, in flow collections too."""  # noqa: E501
    return (
        text
        if _BARE.fullmatch(text) and isinstance(resolve_scalar(text)[0], str)
        else quote_scalar(text)
    )
