"""The island that runs inside a notebook's kernel: standard library only, Python 3.10 or newer. A cell lays it out and calls `start`."""

from __future__ import annotations

from .document import SCHEMA, Document, DocumentError, parse_document
from .opening import rollback, run, start, verify
from .payload import MEMBERS, pack
from .stopped import Stopped

__all__ = ["MEMBERS", "SCHEMA", "Document", "DocumentError", "Stopped", "pack", "parse_document", "rollback", "run", "start", "verify"]
