"""Requirements of tests that a machine may lack, and folders that are made once for all processes of a run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

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


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` fills once for all processes of this run of the tests; tests only read it, or copy it.

    Waits while another process fills it. If `make` raises, the next caller tries again in a new folder.
    """
    own = factory.getbasetemp()
    root = (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "made-once"
    root.mkdir(exist_ok=True)
    with (root / f"{name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        *_, state = lock.read().splitlines() or [""]
        if state.startswith("made "):
            return root / state.removeprefix("made ")
        folder = root / f"{name}-{os.urandom(4).hex()}"
        folder.mkdir()
        make(folder)
        lock.write(f"made {folder.name}\n")
        return folder
