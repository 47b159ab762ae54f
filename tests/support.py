"""What a machine may lack for some tests: skipped with a printed reason, or failed where it was promised."""

from __future__ import annotations

import os

import pytest

NAMES = ("browser", "root", "npm", "index", "cc", "device")


def require(name: str, present: bool, reason: str) -> None:
    """Go on when `present`; else skip with `reason`, or fail where the environment variable REQUIRE (names, comma-separated) promises `name`."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is none of {', '.join(NAMES)}")
    if present:
        return
    if name in os.environ.get("REQUIRE", "").replace(",", " ").split():
        pytest.fail(f"REQUIRE names {name}, but {reason}", pytrace=False)
    pytest.skip(reason)
