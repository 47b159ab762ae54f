"""The outline of a module's text: its lines without the bodies of functions, or of classes too."""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?:async[ \t]+)?def[ \t]+(?P<function>\w+)|class[ \t]+\w+)"
)
_NOISE = re.compile(r"#.*$|'[^'\\\n]*'|\"[^\"\\\n]*\"")


def outline(text: str, *, classes: bool) -> str:
    """Return a text in which `pass` replaces the bodies of functions; all lines keep their number.

    Bodies of module level functions named `__getattr__` stay.

    Args:
        text: the source of a module.
        classes: whether bodies of classes are replaced too.
    """
    lines = text.split("\n")
    kept: list[str] = []
    while len(kept) < len(lines):
        line = lines[len(kept)]
        head = _HEAD.match(line)
        kept.append(line)
        if (
            head is None
            or (not head["function"] and not classes)
            or head["function"] == "__getattr__"
        ):
            continue
        end = _end_of_head(lines, len(kept) - 1)
        if end is None:
            continue
        kept += lines[len(kept) : end]
        indent = len(head["indent"])
        body = _end_of_body(lines, end, indent)
        if body > end:
            kept += [f"{head['indent']} pass", *[""] * (body - end - 1)]
    return "\n".join(kept)


def block(text: str, line: int) -> str:
    """Return the class or function that starts at a line, with its decorators, and nothing else.

    All lines keep their number.
    """
    lines = text.split("\n")
    start = line - 1
    while not _HEAD.match(lines[start]):
        start += 1
    end = _end_of_head(lines, start) or start + 1
    indent = len(lines[start]) - len(lines[start].lstrip())
    return "\n" * (line - 1) + "\n".join(lines[line - 1 : _end_of_body(lines, end, indent)])


def _end_of_head(lines: list[str], start: int) -> int | None:
    """Return the index after the last line of a head; None if its body is on the same line."""
    depth = 0
    for index in range(start, len(lines)):
        code = _NOISE.sub("", lines[index]).rstrip()
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        if depth <= 0:
            return index + 1 if code.endswith(":") else None
    return None


def _end_of_body(lines: list[str], start: int, indent: int) -> int:
    """Return the index after the last line that is indented more than `indent`."""
    end = start
    for index in range(start, len(lines)):
        line = lines[index]
        stripped = line.lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        if len(line) - len(stripped) <= indent:
            break
        end = index + 1
    return end
