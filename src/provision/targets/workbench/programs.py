"""Programs that an instance fetches: the same bytes for everyone, as the spec is data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from provision import verification
from provision.assets import find_asset
from provision.targets.workbench.agent_config import Program

_TEMPLATE = "templates/workbench-startup.sh"
_UV = "templates/workbench-uv.json"


def read_startup_program() -> bytes:
    """Return the program that an instance runs at each start."""
    return find_asset(_TEMPLATE).read_bytes()


def build_programs() -> Mapping[str, Program]:
    """Return the programs that the startup program fetches, by name."""
    made = {
        "device": verification.workbench_zipapp(),
        "installer": verification.installer_zipapp(),
        "probe": verification.probe_zipapp(),
    }
    return {name: Program(f"{name}.pyz", content) for name, content in made.items()}


def read_pinned_uv() -> dict[str, Any]:
    """Return the uv that an instance installs with: version, and sha256 of its wheels by file."""
    document: dict[str, Any] = json.loads(find_asset(_UV).read_bytes())
    return document
