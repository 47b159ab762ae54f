"""Programs that travel inside a cell: the same bytes for everyone, as the spec is data."""

from __future__ import annotations

from collections.abc import Mapping

from provision import verification
from provision.assets import find_asset


def build_payload_members() -> Mapping[str, bytes]:
    """Return the programs by the name they have in the payload."""
    return {
        "cell.pyz": verification.notebook_zipapp(),
        "installer.pyz": verification.installer_zipapp(),
        "probe.pyz": verification.probe_zipapp(),
    }


def read_template(name: str) -> str:
    """Return the program of a cell: "cell" makes the environment, "verify" shows the report.

    "run" runs a script in an isolated environment.
    """
    return find_asset(f"templates/colab-{name}.py").read_text(encoding="utf-8")
