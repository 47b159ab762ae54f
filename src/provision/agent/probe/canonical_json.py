"""JSON in one spelling, and its digest: sorted keys, UTF-8, no NaN, 6 significant digits."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

_DIGITS = 6


def to_canonical_json(value: Any) -> str:
    """Return the one spelling of a JSON value: 6 significant digits; NaN becomes text."""
    return json.dumps(
        to_json_value(value),
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )


def to_json_value(value: Any) -> Any:
    """Return a value as `to_canonical_json` writes it."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    return str(value)


def canonical_digest(value: Any) -> str:
    """`sha256:` and the hash of the canonical spelling."""
    return (
        "sha256:"
        + hashlib.sha256(to_canonical_json(value).encode("utf-8", "backslashreplace")).hexdigest()
    )
