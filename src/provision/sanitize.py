"""Sanitizes foreign text: escapes control characters, and removes secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from provision.agent.core import redact as core

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
REDACTED = "***"


def escape_control(text: str) -> str:
    """Return `text` with control, bidirectional and zero-width characters as escapes.

    Newline and tab stay.
    """
    if text.isprintable():
        return text  # without any of these characters
    return _UNPRINTABLE.sub(_escape, text)


def escape_line(text: str) -> str:
    """Return `text` as one harmless line: newlines and tabs are escaped too."""
    return escape_control(text).replace("\n", "\\n").replace("\t", "\\t")


def escape_workflow_commands(text: str) -> str:
    """Return text for the log of a GitHub workflow, in which no line is a command.

    The runner executes a line of any program that begins with :: behind blanks, or that contains
    ##[ (actions/runner, ActionCommand.cs).
    """
    return _COMMAND.sub(r"\1: :", text).replace("##[", "## [")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without secrets.

    Removes the given values, well-known token shapes, and user names and passwords in URLs.
    """
    return core.redact(text, core.secret_spellings(secrets), REDACTED)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
