"""The island that sets up an instance from within and reports: standard library only, Python 3.10
or newer.
"""

from .document import SCHEMA, Document, DocumentError, parse_document

__all__ = ["SCHEMA", "Document", "DocumentError", "parse_document"]
