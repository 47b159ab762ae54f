"""The programs that travel inside a cell: the same bytes for everyone, since all that a spec says is in the document."""

from __future__ import annotations

from collections.abc import Mapping

from provision import verification
from provision.assets import asset

_CELL, _VERIFY, _RUN = "templates/colab-cell.py", "templates/colab-verify.py", "templates/colab-run.py"


def members() -> Mapping[str, bytes]:
    """Return the programs by the name they have in the payload."""
    return {"cell.pyz": verification.cell(), "installer.pyz": verification.installer(), "probe.pyz": verification.parcel()}


def cell() -> str:
    """Return the program of the first cell."""
    return asset(_CELL).read_text(encoding="utf-8")


def verify() -> str:
    """Return the program of the cell that shows the report."""
    return asset(_VERIFY).read_text(encoding="utf-8")


def run() -> str:
    """Return the program of the cell that runs a script in the environment of its own."""
    return asset(_RUN).read_text(encoding="utf-8")
