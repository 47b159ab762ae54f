"""Secrets in text, replaced. The time it takes grows linearly with the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

REDACTED = "<redacted>"
_SHORTEST_VALUE = 4
_SHORTEST_LINE = 12
_KEY_WINDOW = 80

_PREFIXED = re.compile(
    r"hf_[A-Za-z0-9]{16,}|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9._-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|AKIA[A-Z0-9]{16}(?![A-Za-z0-9_])|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:sk-[A-Za-z0-9_-]{20,}|gl(?:pat|ptt|rt)-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,})"
)
"""Tokens with the published prefix of their service. Prefixes that may end a word match only at
the start of a word, or after an escape such as \\n.
"""
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
)
# Matches from the start of a run of these characters, so that each is read a few times only.
_DOTTED = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
_WEB_TOKEN_START = re.compile(r"(?<![A-Za-z0-9])eyJ")
_BEARER = re.compile(
    r"(?i)(\bbearer "
    r")(?:[A-Za-z0-9._~+/-]{16,}|(?=[A-Za-z._~+/-]{0,15}[0-9])[A-Za-z0-9._~+/-]{8,})=*"
)
_HEX_KEY = re.compile(r"(?<![A-Fa-f0-9])[A-Fa-f0-9]{40}(?![A-Za-z0-9_])")
_KEY_NAME = re.compile(
    r"(?i)(?:key|token|secret|password|wandb)[\w-]{0,40}[\"']?\s{0,8}[=:]?\s{0,8}[\"']?\Z"
)
_ADDRESS = re.compile(r"[^\s\"'<>]+")
_END_OF_USER = re.compile("[/:@]")
_PARAMETER = re.compile(r"([?&])([\w.-]*)=([^&#\s\"'<>`)]+)")
_SECRET_NAME = re.compile(r"(?i)token|key|secret|sig|password|credential|auth")


def secret_spellings(values: Iterable[str]) -> list[str]:
    """Return the spellings of secret values, longest first: plain, lines, repr, JSON, URLs."""
    spellings: set[str] = set()
    for value in values:
        lines = [line for line in value.splitlines() if len(line) >= _SHORTEST_LINE]
        for text in (value, value.strip(), *lines):
            if len(text) >= _SHORTEST_VALUE:
                quoted = (repr(text)[1:-1], json.dumps(text)[1:-1], quote(text, safe=""))
                spellings.update((text, *quoted))
    return sorted(spellings, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str] = (), hidden: str = REDACTED) -> str:
    """Return the text without secrets.

    Args:
        text: any text.
        secrets: texts to hide, the longest first (see `secret_spellings`).
        hidden: the replacement.

    Hides `secrets`, well-known shapes of tokens and private keys, values after `Bearer`, 40
    hexadecimal digits after a word such as `key` or `token`,
    user names and passwords of URLs, and the values of URL parameters with secret-like names.
    """
    for secret in secrets:
        text = text.replace(secret, hidden)
    text = _hide_tokens(text, hidden)
    text = _BEARER.sub(lambda match: match[1] + hidden, text)
    text = _HEX_KEY.sub(lambda match: hidden if _follows_key_name(match) else match[0], text)
    if "://" not in text:
        return text
    if "@" in text:
        text = _ADDRESS.sub(lambda match: _hide_user(match[0], hidden), text)

    def hide_parameter(match: re.Match[str]) -> str:
        mark, name, _ = match.groups()
        return f"{mark}{name}={hidden}" if _SECRET_NAME.search(name) else match[0]

    return _PARAMETER.sub(hide_parameter, text)


def replace_unprintable(text: str, kept: str = "") -> str:
    """Return the text with a space for each unprintable character but those in `kept`."""
    return "".join(
        character if character.isprintable() or character in kept else " " for character in text
    )


def is_secret_like(value: str) -> bool:
    """Return whether a value has the shape of a well-known token or private key."""
    return _hide_tokens(value, "") != value


def _hide_tokens(text: str, hidden: str) -> str:
    text = _PREFIXED.sub(hidden, text)
    if "eyJ" in text:
        text = _DOTTED.sub(lambda match: _hide_web_tokens(match[0], hidden), text)
    return _PRIVATE_KEY.sub(hidden, text) if "-----BEGIN" in text else text


def _follows_key_name(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _KEY_WINDOW) : match.start()]
    return _KEY_NAME.search(before) is not None


def _hide_web_tokens(dotted: str, hidden: str) -> str:
    """Hide the JSON web tokens (RFC 7519) in segments joined by dots."""
    kept, segments, position = list[str](), dotted.split("."), 0
    while position < len(segments):
        header = segments[position]
        start = _WEB_TOKEN_START.search(header)
        lengths = [len(segment) for segment in segments[position + 1 : position + 3]]
        is_long = len(lengths) == 2 and lengths[0] >= 10 and lengths[1] >= 5
        if start and is_long and len(header) - start.start() >= 13:
            kept.append(header[: start.start()] + hidden)
            position += 3
        else:
            kept.append(header)
            position += 1
    return ".".join(kept)


def _hide_user(address: str, hidden: str) -> str:
    """Hide user and password of the URLs in a text without white space.

    They end at the last @, as in uv and urllib: a password may have an @ or a slash.
    """
    if "://" not in address or "@" not in address:
        return address
    last, kept, position = address.rindex("@"), list[str](), 0
    while (colon := address.find("://", position)) != -1 and (start := colon + 3) <= last:
        kept.append(address[position:start])
        position = start
        end = _END_OF_USER.search(address, start)
        if end is None or end[0] == "/":
            continue
        at = last
        if end[0] == "@":
            slash = address.find("/", start)
            at = address.rindex("@", start, slash if slash != -1 else None)
        kept.append(f"{hidden}@")
        position = at + 1
    return "".join([*kept, address[position:]])
