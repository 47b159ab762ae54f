"""Durations and times of day as text."""

from __future__ import annotations

import time


def format_duration(seconds: float) -> str:
    """Return a duration as "90 s" or "5 minutes"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes"


def format_time(seconds: float) -> str:
    """Return the UTC time of day of a POSIX timestamp, as 18:05."""
    return time.strftime("%H:%M", time.gmtime(seconds))
