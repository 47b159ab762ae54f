"""The folder of the compiled tables in use: those of this installation, or those of a project."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

INSTALLED_TABLES = Path(__file__).parent
COMPILED_NAME, LAZY_NAME = "compiled.json", "on_demand"
"""The file and the folder in a folder of tables."""
tables_in_use: ContextVar[Path] = ContextVar("tables_in_use", default=INSTALLED_TABLES)


def lazy_folder() -> Path:
    """Return the folder of the tables in use that few commands need.

    It is the same object at each call, so that a look-up by it compares no paths.
    """
    return _lazy_folder(tables_in_use.get())


@lru_cache(maxsize=8)
def _lazy_folder(tables: Path) -> Path:
    return tables / LAZY_NAME
