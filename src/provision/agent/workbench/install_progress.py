"""Counts installed packages while uv runs, because uv reports nothing before its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

COUNT_INTERVAL_S = 2.0
_ARCHIVES = "archive-v0"
"""Folder of uv's cache with an entry for each wheel that is fetched, checked and unpacked (uv 0.11,
uv-cache crate).
"""


@contextmanager
def report_install_progress(
    prefix: Path, cache: Path, on_count: Callable[[int], None], every_s: float = COUNT_INTERVAL_S
) -> Iterator[None]:
    """Report the number of installed packages while the block runs.

    Packages are first unpacked in uv's cache, then all of them are linked into the environment.
    Only names are counted: no file of the user is opened.
    """
    before, ended = _names(cache / _ARCHIVES), threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            on_count(max(_count_linked(prefix), len(_names(cache / _ARCHIVES) - before)))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _count_linked(prefix: Path) -> int:
    return sum(1 for _ in prefix.glob("lib/python*/site-packages/*.dist-info"))


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
