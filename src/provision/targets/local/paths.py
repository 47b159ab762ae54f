"""Paths of a local environment, and the marker that only a complete one has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.state import to_folder_name
from provision.targets.context import TargetContext

MARKER_FILE = "provision.json"
_MARKER_SCHEMA = "provision.environment/1"


def environment_path(context: TargetContext) -> Path:
    """Return the prefix of the environment that is locked."""
    digest = context.environment.digest.removeprefix("sha256:")[:12]
    return context.folder / "envs" / f"{to_folder_name(context.address)}-{digest}"


def stable_path(context: TargetContext) -> Path:
    """Return the link that follows the target's environment through upgrades."""
    return context.folder / "envs" / to_folder_name(context.address)


def build_marker(context: TargetContext) -> dict[str, Any]:
    """Return the content of the marker of a complete environment."""
    return {
        "schema": _MARKER_SCHEMA,
        "spec": context.stem,
        "target": context.target,
        "digest": context.environment.digest,
        "prefix": str(environment_path(context)),
    }


def recorded_environments(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the recorded environments: the current one, and earlier ones that were in use."""
    if record is None:
        return ()
    return (*record.get("paths", ())[:1], *record.get("earlier", ()))
