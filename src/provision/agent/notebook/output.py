"""Prints the lines of a cell, without control characters and secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..core.redact import redact, replace_unprintable, secret_spellings

_LONGEST = 400


def print_at_once(line: str) -> None:
    """Print a line at once: a notebook shows it while the cell goes on."""
    print(line, flush=True)


def format_package_count(count: int) -> str:
    """Return a number of packages in words."""
    return f"{count} package" if count == 1 else f"{count} packages"


@dataclass
class Printer:
    """Prints lines without secrets."""

    out: Callable[[str], None] = print_at_once
    hidden: set[str] = field(default_factory=set)

    def add_secrets(self, values: Iterable[str]) -> None:
        """Add values that must never be shown, except very short ones."""
        self.hidden.update(secret_spellings(values))

    def clean(self, text: str) -> str:
        """Return a text without known secrets, secret-like strings and control characters."""
        secrets = sorted(self.hidden, key=len, reverse=True)
        return replace_unprintable(redact(text, secrets), "\n")

    def print_stage_line(self, stage: str, line: str) -> None:
        """Print a line of a stage, with the stage's name or "" before it."""
        self.out(f"{stage:<11} {self.clean(line)}"[:_LONGEST].replace("\n", " "))
