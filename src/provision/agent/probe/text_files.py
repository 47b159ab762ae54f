"""Text files of the system, which may be absent or unreadable."""

from __future__ import annotations

import re
from pathlib import Path


def read_text(path: Path) -> str:
    """Return a file's text, without white space around it; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def find_number(text: str, name: str) -> int | None:
    """Return the number behind a name at the beginning of a line; None without such a line."""
    match = re.search(rf"^{re.escape(name)}\s+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None
