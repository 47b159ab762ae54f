"""Foreign text in Markdown: only ever text."""

from __future__ import annotations

import re

from provision.sanitize import escape_line, redact

_PUNCTUATION = re.compile(r"[!\"#$%'()*+,\-./:;=?\[\\\]^_`{|}~]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "@&#8203;"}
"""A zero-width space behind @ keeps names from being called (GitHub does that after escapes are
resolved).
"""


def escape_markdown(text: str) -> str:
    """Return `text` on one line as Markdown that shows exactly it: no link, image, code, table
    cell, HTML or mention; secrets replaced.

    Every ASCII punctuation mark may be escaped (CommonMark 0.31, section 2.4).
    """
    escaped = _PUNCTUATION.sub(lambda match: "\\" + match.group(), escape_line(redact(text)))
    return re.sub("[&<>@]", lambda match: _ENTITIES[match.group()], escaped)
