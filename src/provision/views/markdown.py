"""External text in Markdown: escaped, so that it shows as it is."""

from __future__ import annotations

import re

from provision.sanitize import escape_line, redact

_PUNCTUATION = re.compile(r"[!\"#$%'()*+,\-./:;=?\[\\\]^_`{|}~]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@&#8203;"}
"""A zero-width space behind @ keeps GitHub from mentioning people, which it does after escapes."""


def escape_markdown(text: str) -> str:
    """Return a text on one line as Markdown that shows exactly it, with secrets replaced.

    It has no link, image, code, table cell, HTML or mention. Every ASCII punctuation mark may be
    escaped (CommonMark 0.31, section 2.4).
    """
    escaped = _PUNCTUATION.sub(lambda match: "\\" + match.group(), escape_line(redact(text)))
    return re.sub("[&<>@]", lambda match: _ENTITIES[match.group()], escaped)


def table_row(*cells: str) -> str:
    """Return a row of a table with escaped cells."""
    return f"| {' | '.join(map(escape_markdown, cells))} |"
