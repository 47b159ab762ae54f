"""Reads the NVIDIA driver's errors (Xid) since the boot from the kernel's log."""

from __future__ import annotations

import os
import re
from pathlib import Path

_XID = re.compile(rb"NVRM: Xid \([^)]*\): (\d+)")
_RECORD = 8192
"""Bytes that hold any record of /dev/kmsg (Linux, printk: at most 1 KiB of text and its
dictionary).
"""
_MOST_RECORDS = 100_000


def read_xids(root: Path) -> list[int] | None:
    """Return the numbers of all Xid lines, sorted, each once; None where the log cannot be read."""
    try:
        handle = os.open(root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return sorted(
            {int(number) for record in _records(handle) for number in _XID.findall(record)}
        )
    except OSError:
        return None
    finally:
        os.close(handle)


def _records(handle: int) -> list[bytes]:
    records = []
    for _ in range(_MOST_RECORDS):
        try:
            record = os.read(handle, _RECORD)
        except BlockingIOError:
            break
        except BrokenPipeError:
            # Records were overwritten while we read; the next read goes on behind them.
            continue
        if not record:
            break
        records.append(record)
    return records
