"""Programs that travel inside a cell: the same bytes for everyone, as the spec is data."""

from __future__ import annotations

from collections.abc import Mapping

from provision import verification
from provision.assets import find_asset

_CELL, _VERIFY, _RUN = (
    "templates/colab-cell.py",
    "templates/colab-verify.py",
    "templates/colab-run.py",
)


def build_payload_members() -> Mapping[str, bytes]:
    """Return the programs by the name they have in the payload."""
    return {
        "cell.pyz": verification.notebook_zipapp(),
        "installer.pyz": verification.installer_zipapp(),
        "probe.pyz": verification.probe_zipapp(),
    }


def read_cell_template() -> str:
    """Return the program of the first cell."""
    return find_asset(_CELL).read_text(encoding="utf-8")


def read_verify_template() -> str:
    """Return the program of the cell that shows the report."""
    return find_asset(_VERIFY).read_text(encoding="utf-8")


def read_run_template() -> str:
    """Return the program of the cell that runs a script in the isolated environment."""
    return find_asset(_RUN).read_text(encoding="utf-8")
