"""The input of every observer."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .expectations import Expectations
from .model import Environ, Readings


def _ignore_progress(_card: str) -> None:
    """Report no progress."""


@dataclass(slots=True)
class ObserverContext:
    """Expectations, machine and working folder of the observers of one stage.

    Attributes:
        expected: what the lock promises.
        scratch: an empty folder for files.
        subject: the package of a check that is repeated for each direct package.
        root: root of the file system.
        environ: variables of this process.
        memo: values that observers of one stage share.
        report_progress: called with the card in use, if there are several.
    """

    expected: Expectations
    scratch: Path
    subject: str | None = None
    root: Path = Path("/")
    environ: Environ = field(default_factory=lambda: os.environ)
    memo: Readings = field(default_factory=dict)
    report_progress: Callable[[str], None] = _ignore_progress


Observer = Callable[[ObserverContext], "Readings"]
"""Returns readings by key."""
