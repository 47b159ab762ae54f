"""A workflow's log read as the GitHub runner reads it (actions/runner, ActionCommand.cs and
ActionCommandManager.cs).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_KNOWN = {
    "error",
    "warning",
    "notice",
    "debug",
    "group",
    "endgroup",
    "add-mask",
    "add-path",
    "set-env",
    "set-output",
    "save-state",
    "add-matcher",
    "echo",
}
_KNOWN |= {"stop-commands", "remove-matcher", "internal-set-repo-path"}


@dataclass(frozen=True)
class Command:
    """A command, its properties and its data, all escapes undone."""

    name: str
    properties: dict[str, str]
    data: str


def commands(log: str) -> list[Command]:
    """Every command in a log: a line that begins with :: behind blanks, or holds ##[ anywhere."""
    return [
        found
        for line in re.split("\r\n|\n|\r", log)
        for found in (_second(line) or _first(line),)
        if found is not None
    ]


def _second(line: str) -> Command | None:
    line = line.lstrip()
    end = line.find("::", 2)
    if not line.startswith("::") or end < 0:
        return None
    return _command(
        line[2:end],
        line[end + 2 :],
        (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")),
    )


def _first(line: str) -> Command | None:
    start = line.find("##[")
    end = line.find("]", start)
    return (
        _command(
            line[start + 3 : end],
            line[end + 1 :],
            (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]")),
        )
        if 0 <= start < end
        else None
    )


def _command(info: str, data: str, escapes: tuple[tuple[str, str], ...]) -> Command | None:
    name, _, rest = info.partition(" ")
    if name not in _KNOWN:
        return None
    pairs = (pair.partition("=") for pair in rest.split(",") if "=" in pair)
    in_data = tuple(pair for pair in escapes if pair[1] not in ":,")
    return Command(
        name,
        {key.strip(): _undone(value, escapes) for key, _, value in pairs},
        _undone(data, in_data),
    )


def _undone(text: str, escapes: tuple[tuple[str, str], ...]) -> str:
    for escape, meant in escapes:
        text = text.replace(escape, meant)
    return text
