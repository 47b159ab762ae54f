"""What a person reads while the cell is at work: short lines, one a stage, without control characters and without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..agent.core.redact import redact, spellings

_LONGEST = 400


def to_stdout(line: str) -> None:
    """Print a line at once: a notebook shows it while the cell goes on."""
    print(line, flush=True)


def packages(count: int) -> str:
    """Return a number of packages in words."""
    return f"{count} package" if count == 1 else f"{count} packages"


@dataclass
class Teller:
    """Says lines, and remembers what may not be said."""

    out: Callable[[str], None] = to_stdout
    hidden: set[str] = field(default_factory=set)

    def hide(self, values: Iterable[str]) -> None:
        """Remember values that may never be shown. Shorter ones would blot out ordinary words."""
        self.hidden.update(spellings(values))

    def clean(self, text: str) -> str:
        """Return the text without them, without what has the shape of a secret, and without control characters."""
        text = redact(text, sorted(self.hidden, key=len, reverse=True))
        return "".join(character if character.isprintable() or character == "\n" else " " for character in text)

    def say(self, stage: str, line: str) -> None:
        """Say one line of a stage."""
        self.out(f"{stage:<11} {self.clean(line)}"[:_LONGEST].replace("\n", " "))

    def more(self, line: str) -> None:
        """Say a further line of the same stage."""
        self.say("", line)
