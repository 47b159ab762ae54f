"""The processes of a replica, signalled and ended as those of its container."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

_END_S, _POLL_S = 5.0, 0.02


def terminate_container(process: subprocess.Popen[bytes], home: Path, *, is_entered: bool) -> bool:
    """Send SIGTERM to the command of a container, and to nothing that the command started.

    Args:
        process: the command, or nsenter, which waits for it.
        home: the folder that HOME names in all processes of the replica.
        is_entered: whether the process is nsenter.

    Returns:
        Whether there is a command.
    """
    pid = process.pid
    if is_entered:
        inner = [child for child, parent in _find_processes(home).items() if parent == pid]
        if not inner:
            return False
        pid = inner[0]
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    return True


def kill_container(process: subprocess.Popen[bytes], home: Path) -> None:
    """Kill all processes of a replica, also those in sessions of their own (Linux)."""
    deadline = time.monotonic() + _END_S
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    while (left := _find_processes(home)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)
    process.wait(_END_S)


def end_container(process: subprocess.Popen[bytes], home: Path, *, is_entered: bool) -> None:
    """End a container as the service does when its job has ended."""
    if process.poll() is None and terminate_container(process, home, is_entered=is_entered):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
    kill_container(process, home)


def _find_processes(home: Path) -> dict[int, int]:
    """Return the processes whose HOME is a folder, with their parents; {} without /proc."""
    variable, found = b"HOME=" + os.fsencode(home), {}
    for folder in Path("/proc").glob("[0-9]*"):
        # Processes end while this runs, and those of other users cannot be read.
        with suppress(OSError, IndexError, ValueError):
            if variable in (folder / "environ").read_bytes().split(b"\0"):
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                found[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return found
