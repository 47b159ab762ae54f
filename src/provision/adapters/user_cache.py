"""Bounds the user's cache: entries that nothing has used for long are removed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from provision.adapters.diagnostic_log import log
from provision.adapters.files import user_cache_folder

REPOSITORIES, WHEELS, CODE_DIGESTS = "repositories", "built-wheels", "code-digests"
IMAGES = "images"
UNUSED_DAYS = 30
"""Days after which an unused entry is removed. Our choice: it can be fetched or made again."""
_DAY_S = 86400


def mark_used(entry: Path) -> None:
    """Note the use of an entry: the time of change of its folder."""
    with suppress(OSError):
        os.utime(entry)


def prune_cache(environment: Mapping[str, str]) -> None:
    """Remove the entries that were not used for UNUSED_DAYS; called after one was added."""
    oldest = time.time() - UNUSED_DAYS * _DAY_S
    for name in (REPOSITORIES, WHEELS, CODE_DIGESTS, IMAGES):
        folder = user_cache_folder(environment) / name
        for entry in folder.iterdir() if folder.is_dir() else ():
            with suppress(OSError):
                if entry.lstat().st_mtime < oldest:
                    log.info("remove %s, which is unused for %d days", entry, UNUSED_DAYS)
                    shutil.rmtree(entry, ignore_errors=True)
