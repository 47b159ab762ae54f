"""A control group that limits the memory of the programs in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from tests.support import require

_MOUNT = Path("/sys/fs/cgroup")


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """Make a group with a limit in bytes; yield the file that takes ids of processes."""
    folder, file = _new_group()
    try:
        folder.mkdir()
        (folder / file).write_text(str(limit))
    except OSError as error:
        if folder.is_dir():
            folder.rmdir()
        require("root", False, f"no memory control group can be made: {error}")
    try:
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


def _new_group() -> tuple[Path, str]:
    """Return a folder for a new group next to that of this process, and the name of its limit."""
    name = f"provision-test-{os.getpid()}"
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "memory":
            above = PurePosixPath(group).parent.relative_to("/")
            return _MOUNT / "memory" / above / name, "memory.limit_in_bytes"
    return _MOUNT / name, "memory.max"
