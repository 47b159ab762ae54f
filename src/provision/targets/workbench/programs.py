"""The programs of ours that an instance fetches: the same bytes for everyone, since all that a spec says is in the document."""

from __future__ import annotations

from collections.abc import Mapping

from provision import verification
from provision.assets import asset
from provision.targets.workbench.document import Program

_TEMPLATE = "templates/workbench-startup.sh"


def startup() -> bytes:
    """Return the program that an instance runs at each start."""
    return asset(_TEMPLATE).read_bytes()


def fetched() -> Mapping[str, Program]:
    """Return the programs that the startup program fetches, by name."""
    return {"installer": Program("installer.pyz", verification.installer()), "probe": Program("probe.pyz", verification.parcel())}
