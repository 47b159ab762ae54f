"""Text for messages: lists and quoted values."""

from __future__ import annotations

import json
from collections.abc import Iterable


def format_list(items: Iterable[str], most: int = 4) -> str:
    """Return the first words separated by commas, and the number of the others."""
    listed = tuple(items)
    text = ", ".join(listed[:most])
    return f"{text} and {len(listed) - most} more" if len(listed) > most else text


def format_alternatives(items: Iterable[str], most: int = 4) -> str:
    """Return the first words as alternatives: "a", "a or b", "a, b or c"."""
    listed = tuple(items)
    choices = listed[:most]
    if len(listed) > most:
        choices += (f"one of {len(listed) - most} others",)
    return " or ".join(filter(None, (", ".join(choices[:-1]), *choices[-1:])))


def json_quote(value: str) -> str:
    """Return a value as a JSON string."""
    return json.dumps(value, ensure_ascii=False)
