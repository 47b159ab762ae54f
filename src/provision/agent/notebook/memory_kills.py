"""Whether the system has killed processes for memory since an earlier run of the cell.

A kernel that is killed leaves no message: Colab shows that the session crashed for an unknown
reason, and starts a new one. The counter of the system is what remains.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from ..core.files import read_json_object, write_json_object
from .loaded_modules import KernelProcess

FILE = "kernel.json"
SCHEMA = "provision.agent.notebook-kernel/1"
ADVICE = (
    "read the data in parts, use smaller batches or fewer workers, or choose a runtime with more "
    "memory"
)
_COUNTERS = ("sys/fs/cgroup/memory.events", "proc/vmstat")
"""Files with a line "oom_kill NUMBER": of this container, and of the system since its boot. Source:
Linux, admin-guide/cgroup-v2 (memory.events) and mm/vmstat.c.
"""
_BOOT = "proc/sys/kernel/random/boot_id"


def count_memory_kills(root: Path) -> int | None:
    """Return how many processes were killed because memory ran out; None if it is not counted."""
    for name in _COUNTERS:
        if found := re.search(r"^oom_kill (\d{1,18})$", _read(root / name), re.MULTILINE):
            return int(found[1])
    return None


def note_memory_kills(folder: Path, kernel: KernelProcess, root: Path) -> list[str]:
    """Return lines about the kills since the last run, and write the counter for the next one.

    Raises:
        OSError: the file cannot be written.
    """
    earlier, kills, boot = read_json_object(folder / FILE), count_memory_kills(root), _boot(root)
    lines: list[str] = []
    before = earlier.get("kills")
    if isinstance(before, int) and earlier.get("boot") == boot and kills is not None:
        is_same = earlier.get("kernel") == asdict(kernel)
        lines = describe_kills(kills - before, is_same_kernel=is_same)
    document = {"schema": SCHEMA, "boot": boot, "kernel": asdict(kernel), "kills": kills}
    write_json_object(folder / FILE, document)
    return lines


def describe_kills(number: int, *, is_same_kernel: bool) -> list[str]:
    """Return the lines for a number of kills since the last run; [] for none."""
    if number <= 0:
        return []
    what = f"the system killed {_processes(number)} because memory ran out"
    if is_same_kernel:
        return [f"since the last run {what}", ADVICE]
    ended = f"the kernel of the last run has ended, and since then {what}"
    return [f"{ended}: most likely that kernel", ADVICE]


def describe_program_kills(before: int | None, after: int | None) -> list[str]:
    """Return the lines for the kills while a program ran; [] for none."""
    if before is None or after is None or after <= before:
        return []
    what = f"the system killed {_processes(after - before)} of it because memory ran out"
    return [what, ADVICE]


def _processes(number: int) -> str:
    return "a process" if number == 1 else f"{number} processes"


def _boot(root: Path) -> str:
    return _read(root / _BOOT).strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
