"""The island that installs from a lock: standard library only, Python 3.10 or newer, so that it runs where nothing of ours is installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .document import DEFAULT_INDEX, Audit, InstallError, Mode, Pin, Wanted, parse_document, read_document
    from .install import UvFailed
    from .interpreter import Answer
    from .layout import bare, index_lines, locations, project_lines
    from .sayings import REFUSED_FILE, SWITCHED_OFF
    from .scrubbing import scrub

# A lock needs how uv is called, and not how it installs: each room is imported when something of it is asked for.
_ROOMS = {
    "document": ("DEFAULT_INDEX", "Audit", "InstallError", "Mode", "Pin", "Wanted", "parse_document", "read_document"),
    "install": ("UvFailed",),
    "interpreter": ("Answer",),
    "layout": ("bare", "index_lines", "locations", "project_lines"),
    "sayings": ("REFUSED_FILE", "SWITCHED_OFF"),
    "scrubbing": ("scrub",),
}
__all__ = [
    "DEFAULT_INDEX",
    "REFUSED_FILE",
    "SWITCHED_OFF",
    "Answer",
    "Audit",
    "InstallError",
    "Mode",
    "Pin",
    "UvFailed",
    "Wanted",
    "bare",
    "index_lines",
    "locations",
    "parse_document",
    "project_lines",
    "read_document",
    "scrub",
]


def __getattr__(name: str) -> Any:
    """Import the room that a name is from."""
    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(name)
    return getattr(import_module(f".{room}", __name__), name)
