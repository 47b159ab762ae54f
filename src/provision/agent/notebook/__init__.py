"""The program in a notebook's kernel: sets up its runtime as a document declares.

Standard library only, Python 3.10 or newer. A cell writes the program's files and calls `start`.
"""

from __future__ import annotations

from .api import rollback, run, start, verify
from .errors import StageError

__all__ = ["StageError", "rollback", "run", "start", "verify"]
