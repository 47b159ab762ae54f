"""Free and used memory of this machine or container, and of a card through torch."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from ..text_files import find_number, read_text
from .cgroups import memory_limit, memory_used

_KIB = 1024


def available_bytes(root: Path) -> int | None:
    """Return the bytes of RAM that can be taken without an out-of-memory kill; None if unknown."""
    free = _field(root / "proc/meminfo", "MemAvailable")
    limit, used = memory_limit(root), memory_used(root)
    left = max(0, limit - used) if limit is not None and used is not None else None
    return min([count for count in (free, left) if count is not None], default=None)


class ProcessMemoryPeak:
    """The most RAM that this process takes from now on, over what it takes now."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            # gVisor has no clear_refs: the mark is then the peak so far, below that of a training.
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._before = _field(Path("/proc/self/status"), "VmRSS") or 0

    def bytes(self) -> int | None:
        """Return the bytes; None if the system does not report them."""
        most = _field(Path("/proc/self/status"), "VmHWM")
        return max(0, most - self._before) if most is not None else None


class TorchMemoryPeak:
    """Peak memory of a card from now on: torch's reservation, and what others hold."""

    def __init__(self) -> None:
        import torch

        torch.cuda.init()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def bytes(self) -> int:
        """Return the bytes."""
        import torch

        free, total = torch.cuda.mem_get_info()
        return int(
            torch.cuda.max_memory_reserved() + max(0, total - free - torch.cuda.memory_reserved())
        )


def limit_process_memory(available: int) -> None:
    """Let this process fail first when it takes more than `available` bytes. Linux only."""
    if sys.platform != "linux":
        return
    import resource

    now = _field(Path("/proc/self/status"), "VmData") or 0
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    required = now + available
    resource.setrlimit(
        resource.RLIMIT_DATA,
        (required if hard == resource.RLIM_INFINITY else min(required, hard), hard),
    )
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _field(file: Path, name: str) -> int | None:
    number = find_number(read_text(file), f"{name}:")
    return None if number is None else number * _KIB
