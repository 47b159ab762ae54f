"""Files by which the machines of a job show each other that they share a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PATHS = ("checkpoints", "output")
"""Names of declared paths with checkpoints, the most specific first."""


def find_shared_path(paths: Mapping[str, str]) -> str | None:
    """Return the declared folder of checkpoints; None if there is none."""
    return next((paths[name] for name in _PATHS if name in paths), None)


def mark_folder(path: str, nonce: str) -> str:
    """Return the folder of the files of one run."""
    return os.path.join(path, f".provision-{nonce}")


def mark_text(nonce: str, replica: str) -> str:
    """Return the content of a machine's file: several blocks, so that a part is noticed."""
    return f"{nonce} {replica}\n" * 2048
