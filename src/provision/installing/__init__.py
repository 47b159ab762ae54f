"""The island that installs from a lock: standard library only, Python 3.10 or newer, so that it runs where nothing of ours is installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .document import DEFAULT_INDEX, AuditLevel, InstallError, InstallMode, InstallRequest, Pin, parse_document, read_document
    from .install import UvFailed
    from .interpreter import ProcessResult
    from .layout import build_index_variables, index_lines, project_lines, remove_credentials
    from .sayings import HASH_MISMATCH, NETWORK_DISABLED
    from .scrubbing import scrub_environment

# A lock needs how uv is called, and not how it installs: each room is imported when something of it is asked for.
_ROOMS = {
    "document": ("DEFAULT_INDEX", "AuditLevel", "InstallError", "InstallMode", "InstallRequest", "Pin", "parse_document", "read_document"),
    "install": ("UvFailed",),
    "interpreter": ("ProcessResult",),
    "layout": ("build_index_variables", "index_lines", "project_lines", "remove_credentials"),
    "sayings": ("HASH_MISMATCH", "NETWORK_DISABLED"),
    "scrubbing": ("scrub_environment",),
}
__all__ = [
    "DEFAULT_INDEX",
    "HASH_MISMATCH",
    "NETWORK_DISABLED",
    "AuditLevel",
    "InstallError",
    "InstallMode",
    "InstallRequest",
    "Pin",
    "ProcessResult",
    "UvFailed",
    "build_index_variables",
    "index_lines",
    "parse_document",
    "project_lines",
    "read_document",
    "remove_credentials",
    "scrub_environment",
]


def __getattr__(name: str) -> Any:
    """Import the room that a name is from."""
    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(name)
    return getattr(import_module(f".{room}", __name__), name)
