"""Counts of bytes as text for people."""

from __future__ import annotations

_MIB, _GIB = 2**20, 2**30


def format_bytes(count: float) -> str:
    """Return a count of bytes for people: "1.5 TiB", "15.6 GiB", "64 MiB"."""
    if count >= 1024 * _GIB:
        return f"{count / 1024 / _GIB:.4g} TiB"
    return f"{count / _GIB:.4g} GiB" if count >= _GIB else f"{count / _MIB:.4g} MiB"
