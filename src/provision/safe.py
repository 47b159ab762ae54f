"""Foreign text made harmless: control and direction characters shown as escapes, secrets replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}\b|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?<![A-Za-z0-9])gl(?:pat|ptt|rt)-[A-Za-z0-9_-]{20,}|(?<![A-Za-z0-9])npm_[A-Za-z0-9]{30,}|(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{40,}"
    r"|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|[\s\S]*)"
)
"""Every shape that the probe hides too (probe/redact.py); a test holds both against one list."""
_BEARER = re.compile(r"(?i)(\bbearer )[A-Za-z0-9._~+/-]{16,}=*")
_KEYED = re.compile(r"(?i)\b([\w-]*(?:api[_-]?key|token|secret|password|wandb|key)[\w-]*[\"']?\s*[=:]?\s*[\"']?)[A-Fa-f0-9]{40}\b")
# Up to the last @, as uv and urllib read it: a password may hold one, and, where it was not escaped, a slash.
_USERINFO = re.compile(r"(?<=://)(?:[^/\s:@]*:[^\s\"'<>]*@|[^/\s]+@)")
_QUERY = re.compile(r"([?&][\w.-]*(?:token|key|secret|sig|signature|password|credential|auth)[\w.-]*=)[^&#\s\"'<>`)]+", re.IGNORECASE)
_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)
REDACTED = "***"


def safe(text: str) -> str:
    """Return `text` with control, bidirectional and zero-width characters written as escapes; newline and tab stay."""
    # What Python calls printable holds none of these.
    return text if text.isprintable() else _UNPRINTABLE.sub(lambda match: _escape(match.group()), text)


def safe_line(text: str) -> str:
    """Return `text` as one harmless line: newlines and tabs are escaped too."""
    return text if text.isprintable() else safe(text).replace("\n", "\\n").replace("\t", "\\t")


def disarmed(text: str) -> str:
    """Return text for the log of a GitHub workflow, in which no line is a command.

    The runner takes any program's line for one where it begins with :: behind blanks, or holds ##[ (actions/runner, ActionCommand.cs).
    """
    return _COMMAND.sub(r"\1: :", text).replace("##[", "## [")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without the given secret values, well-known token shapes, and user names or passwords in URLs."""
    for value in sorted((s for s in secrets if len(s) >= 4), key=len, reverse=True):
        text = text.replace(value, REDACTED)
    text = _KEYED.sub(rf"\g<1>{REDACTED}", _BEARER.sub(rf"\g<1>{REDACTED}", _SHAPES.sub(REDACTED, text)))
    return _QUERY.sub(rf"\g<1>{REDACTED}", _USERINFO.sub(REDACTED + "@", text)) if "://" in text else text


def looks_secret(value: str) -> bool:
    """Tell whether `value` has the shape of a well-known token or private key (published prefixes of the services)."""
    return _SHAPES.search(value) is not None


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
