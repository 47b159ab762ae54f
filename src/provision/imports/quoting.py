"""Quotes foreign text in messages."""

from __future__ import annotations

from provision.sanitize import escape_line, redact

_LONGEST_QUOTE = 120
"""Code points of a foreign text in a message (our choice): an address with a commit fits."""


def quote_text(text: str, limit: int = _LONGEST_QUOTE) -> str:
    """Return foreign text for a message: redacted, in one line, and not too long."""
    text = escape_line(" ".join(redact(text).split()))
    return text if len(text) <= limit else f"{text[:limit]}..."
