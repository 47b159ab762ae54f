"""The uv that installs on devices: its version, and the sha256 of its wheels."""

from __future__ import annotations

import json
from typing import Any

from provision.assets import find_asset

_UV = "templates/workbench-uv.json"


def read_pinned_uv() -> dict[str, Any]:
    """Return the uv that a device installs with: version, and sha256 of its wheels by file."""
    document: dict[str, Any] = json.loads(find_asset(_UV).read_bytes())
    return document
