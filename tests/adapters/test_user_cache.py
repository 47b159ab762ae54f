"""The bound of the user's cache: what nothing has used for 30 days goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from provision.adapters.files import user_cache_folder
from provision.adapters.user_cache import (
    CODE_DIGESTS,
    IMAGES,
    REPOSITORIES,
    WHEELS,
    mark_used,
    prune_cache,
)


def test_entries_that_are_unused_for_30_days_are_removed(tmp_path: Path) -> None:
    cache = tmp_path / "provision"
    for name in (
        f"{REPOSITORIES}/old",
        f"{REPOSITORIES}/used",
        f"{WHEELS}/old",
        f"{CODE_DIGESTS}/old",
        f"{IMAGES}/old",
        "conda/old",
    ):
        folder = cache / name
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")
        os.utime(folder, (0, time.time() - 31 * 86400))
    recent = cache / WHEELS / "recent"
    recent.mkdir()
    os.utime(recent, (0, time.time() - 29 * 86400))
    mark_used(cache / REPOSITORIES / "used")
    mark_used(cache / WHEELS / "missing")
    prune_cache({"XDG_CACHE_HOME": str(tmp_path)})
    left = sorted(path.relative_to(cache).as_posix() for path in cache.glob("*/*"))
    assert left == [f"{WHEELS}/recent", "conda/old", f"{REPOSITORIES}/used"]
    prune_cache({"XDG_CACHE_HOME": str(tmp_path / "none")})


def test_a_relative_cache_folder_is_ignored() -> None:
    home = {"HOME": "/home/a"}
    expected = Path("/home/a/.cache/provision")
    assert user_cache_folder(home) == expected
    assert user_cache_folder({**home, "XDG_CACHE_HOME": "cache"}) == expected
    assert user_cache_folder({**home, "XDG_CACHE_HOME": "/cache"}) == Path("/cache/provision")
