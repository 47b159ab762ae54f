"""The island that installs from a lock: standard library only, Python 3.10 or newer, so that it runs where nothing of ours is installed."""

from .document import DEFAULT_INDEX, Audit, InstallError, Mode, Pin, Wanted, parse_document, read_document
from .install import REFUSED_FILE, SWITCHED_OFF, UvFailed, install
from .interpreter import Answer
from .layout import bare, index_lines, locations, project_lines
from .scrubbing import scrub

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
    "install",
    "locations",
    "parse_document",
    "project_lines",
    "read_document",
    "scrub",
]
