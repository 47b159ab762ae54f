"""The island that runs inside a notebook's kernel: standard library only, Python 3.10 or newer. A
cell lays it out and calls `start`.
"""

from __future__ import annotations

from .api import rollback, run, start, verify
from .document import SCHEMA, Document, DocumentError, parse_document
from .errors import StageError
from .payload import PAYLOAD_FILES, pack_payload

__all__ = [
    "PAYLOAD_FILES",
    "SCHEMA",
    "Document",
    "DocumentError",
    "StageError",
    "pack_payload",
    "parse_document",
    "rollback",
    "run",
    "start",
    "verify",
]
