"""One sample of a running program: memory, shared memory, container and cards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..model import JsonObject
from ..text_files import find_number, read_text
from .cgroups import memory_folders, memory_limit
from .nvml import Nvml, NvmlError

_PARENT, _RSS = 1, 21
"""Places in /proc/PID/stat behind the name in brackets (proc_pid_stat(5), fields 4 and 24)."""


def process_tree_memory(pid: int, root: Path = Path("/")) -> list[int]:
    """Return the resident bytes of a process and its descendants; () once it ended.

    Pages that several share count for each.
    """
    parents, memory = {}, {}
    page = os.sysconf("SC_PAGE_SIZE")
    for number, fields in _processes(root / "proc"):
        parents[number], memory[number] = int(fields[_PARENT]), int(fields[_RSS]) * page
    children: dict[int, list[int]] = {}
    for number, parent in parents.items():
        children.setdefault(parent, []).append(number)
    ours, left = [], [pid] if pid in parents else []
    while left:
        ours.append(number := left.pop())
        left += children.get(number, [])
    return [memory[number] for number in ours]


def shared_memory_usage(root: Path = Path("/")) -> tuple[int, int] | None:
    """Return the bytes used and in all of /dev/shm; None without it."""
    try:
        usage = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return (usage.f_blocks - usage.f_bfree) * usage.f_frsize, usage.f_blocks * usage.f_frsize


def container_memory(root: Path = Path("/")) -> dict[str, int | None]:
    """Return memory limit and peak of the control group, and the processes killed for memory."""
    memory: dict[str, int | None] = {
        "limit_bytes": memory_limit(root),
        "peak_bytes": None,
        "kills": None,
    }
    for folder in memory_folders(root):
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            memory["peak_bytes"] = memory["peak_bytes"] or _number(folder, name)
        if memory["kills"] is None:
            memory["kills"] = find_number(read_text(folder / "memory.events"), "oom_kill")
    if memory["kills"] is None:
        memory["kills"] = find_number(read_text(root / "proc/vmstat"), "oom_kill")
    return memory


def machine_ram_bytes(root: Path = Path("/")) -> int | None:
    """Return the machine's RAM in bytes."""
    count = find_number(read_text(root / "proc/meminfo"), "MemTotal:")
    return None if count is None else count * 1024


class CardSampler:
    """The machine's cards through NVML; without a driver none, and `error` is NVML's code."""

    def __init__(self) -> None:
        self.error: int | None = None
        self._library: Nvml | None = None
        try:
            self._library = Nvml()
        except NvmlError as error:
            self.error = error.code

    def sample(self) -> list[JsonObject]:
        """Return memory, utilisation, temperature, power and throttle reasons of each card."""
        if self._library is None:
            return []
        try:
            return self._library.live_values()
        except NvmlError as error:
            self.error = error.code
            return []


def _processes(proc: Path) -> Iterator[tuple[int, list[str]]]:
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                with open(proc / name / "stat", encoding="utf-8", errors="replace") as file:
                    text = file.read()
            except OSError:  # it ended meanwhile
                continue
            fields = text[text.rfind(")") + 2 :].split()
            if len(fields) > _RSS:
                yield int(name), fields


def _number(folder: Path, name: str) -> int | None:
    text = read_text(folder / name)
    return int(text) if text.isdigit() else None
