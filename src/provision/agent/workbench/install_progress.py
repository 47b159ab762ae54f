"""Counts packages from outside while uv works, because uv reports nothing before its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

COUNT_INTERVAL_S = 2.0
_ARCHIVES = "archive-v0"
"""The folder of uv's cache in which each wheel lies once it is fetched, checked and unpacked, under
a name of its own (uv 0.11, uv-cache crate).
"""


@contextmanager
def report_install_progress(
    prefix: Path, cache: Path, told: Callable[[int], None], every_s: float = COUNT_INTERVAL_S
) -> Iterator[None]:
    """Report how many packages have come while the block runs.

    First they are unpacked in uv's cache, then all of them are linked into the environment.

    Names are counted alone: no file that the person owns is opened.
    """
    before, over = _names(cache / _ARCHIVES), threading.Event()

    def watch() -> None:
        while not over.wait(every_s):
            told(max(_linked(prefix), len(_names(cache / _ARCHIVES) - before)))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _linked(prefix: Path) -> int:
    lib = prefix / "lib"
    folders = (lib / name / "site-packages" for name in _names(lib) if name.startswith("python"))
    return sum(name.endswith(".dist-info") for folder in folders for name in _names(folder))


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
