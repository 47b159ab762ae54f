"""JSON values, digests and amounts as people write them, escaped and without secrets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from provision.sanitize import escape_control, redact

_DIGEST = re.compile(r"\b[0-9a-f]{40,}\b")


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every string in its mappings, lists and tuples changed."""
    match value:
        case Enum():
            return value
        case str():
            return change(value)
        case Mapping():
            return {
                map_strings(key, change): map_strings(item, change) for key, item in value.items()
            }
        case list():
            return [map_strings(item, change) for item in value]
        case tuple():
            items = (map_strings(item, change) for item in value)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        case _:
            return value


def format_json_value(value: object, sizes: bool = False) -> str:
    """Return a JSON value as people write it.

    None is empty, long hexadecimal digests are shortened, and with `sizes` numbers are bytes.
    """
    match value:
        case None:
            return ""
        case str():
            return _DIGEST.sub(lambda digest: digest.group()[:12] + "...", to_safe_text(value))
        case bool():
            return "yes" if value else "no"
        case int() if sizes:
            return format_amount(value, "bytes")
        case float():
            return f"{value:.6g}"
        case Mapping():
            return ", ".join(
                f"{format_json_value(key)}: {_inner(item, sizes)}" for key, item in value.items()
            )
        case list() | tuple():
            return ", ".join(_inner(item, sizes) for item in value)
        case _:
            return to_safe_text(str(value))


def to_safe_text(text: str) -> str:
    """Return foreign text without secrets, with control characters escaped."""
    return escape_control(redact(text))


def shorten_digest(digest: str) -> str:
    """Return a digest's algorithm and first twelve digits."""
    algorithm, colon, digits = digest.partition(":")
    return f"{algorithm}:{digits[:12]}" if colon else digest[:19]


def format_number(value: float) -> str:
    """Return a number with four significant digits, large ones with separators."""
    return f"{value:,.0f}" if abs(value) >= 10_000 and abs(value) < 1e15 else f"{value:.4g}"


def format_amount(value: float, unit: str) -> str:
    """Return a number with its unit; bytes as KiB to TiB (IEC 80000-13)."""
    if not unit.startswith("bytes"):
        return f"{format_number(value)} {unit}".strip()
    steps = max(0, min(4, int(math.log2(max(1.0, abs(value)))) // 10))
    return (
        f"{value / 1024**steps:.4g} "
        f"{('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[steps]}{unit.removeprefix('bytes')}"
    )


def format_seconds(value: float) -> str:
    """Return seconds with two decimals below one, one below ten, and none above."""
    decimals = int(value < 1) + int(value < 10)
    return f"{value:.{decimals}f}"


def pluralize(count: int, noun: str, bare: bool = False) -> str:
    """Return a count with its noun, or the noun alone when `bare`."""
    word = noun if count == 1 else noun + "s"
    return word if bare else f"{count} {word}"


def _inner(value: object, sizes: bool) -> str:
    if not value and isinstance(value, (Mapping, list, tuple)):
        return "none"
    if isinstance(value, (list, tuple)):
        return f"[{format_json_value(value, sizes)}]"
    text = format_json_value(value, sizes)
    return f"({text})" if isinstance(value, Mapping) else text or "none"
