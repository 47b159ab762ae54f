"""What a person reads while the cell is at work: short lines, one a stage, without control characters and without secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

HIDDEN = "<redacted>"
_LONGEST = 400
_USERINFO = re.compile(r"(?<=://)[^/\s]+@")


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
        self.hidden.update(value for value in values if len(value) >= 4)

    def clean(self, text: str) -> str:
        """Return the text without them, without user names and passwords of addresses, and without control characters."""
        for value in sorted(self.hidden, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        text = _USERINFO.sub(f"{HIDDEN}@", text)
        return "".join(character if character.isprintable() or character == "\n" else " " for character in text)

    def say(self, stage: str, line: str) -> None:
        """Say one line of a stage."""
        self.out(f"{stage:<11} {self.clean(line)}"[:_LONGEST].replace("\n", " "))

    def more(self, line: str) -> None:
        """Say a further line of the same stage."""
        self.say("", line)
