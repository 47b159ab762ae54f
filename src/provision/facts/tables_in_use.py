"""The folder of the compiled tables in use: those of this installation, or those of a project."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path

INSTALLED_TABLES = Path(__file__).parent
COMPILED_NAME, LAZY_NAME = "compiled.json", "on_demand"
"""The file and the folder in a folder of tables."""
tables_in_use: ContextVar[Path] = ContextVar("tables_in_use", default=INSTALLED_TABLES)
