"""Keeps secrets, names of people and names of machines out of everything the probe writes."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

HIDDEN = "<redacted>"
_SHORTEST_SECRET = 4
_SHORTEST_LINE = 12
_SHORTEST_NAME = 3
_COMMON_NAMES = frozenset(
    {"localhost", "root", "user", "none", "linux", "debian", "ubuntu", "python", "torch", "jupyter", "colab", "content", "admin", "nobody", "runner"}
)
_TOKEN_SHAPES = (
    re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    re.compile(r"\bAIza[A-Za-z0-9_-]{20,}"),
    re.compile(r"\bya29\.[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"),
    re.compile(r"\bgl(?:pat|ptt|rt)-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{40,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"),
    re.compile(r"(?i)(?<=\bbearer )[A-Za-z0-9._~+/-]{16,}"),
    re.compile(r"(?i)(?<=://)[A-Za-z0-9_-]{20,}(?=@)"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    re.compile(r"(?i)(?<=://)[^/\s:@]+:[^/\s]+(?=@)"),
)
_KEYED = re.compile(r"(?i)\b([\w-]*(?:api[_-]?key|token|secret|password|wandb|key)[\w-]*[\"']?\s*[=:]?\s*[\"']?)([A-Fa-f0-9]{40})\b")
_QUERY = re.compile(r"(?i)([?&][\w.-]*(?:token|key|secret|sig|signature|password|credential)[\w.-]*=)[^&#\s\"'<>]+")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")


class Redactor:
    """Replaces what must not be published in captured text; made once per process from the environment it runs in."""

    def __init__(self, secrets: Iterable[str] = (), home: str = "", user: str = "", host: str = "") -> None:
        self._secrets = _spellings(secrets)
        self._home = home.rstrip("/\\") if len(home.rstrip("/\\")) > 1 else ""
        self._user = _name_pattern(user)
        # The whole name first: what is left of it without its domain is a name too.
        self._hosts = tuple(pattern for pattern in (_name_pattern(host), _name_pattern(host.partition(".")[0])) if pattern)

    @classmethod
    def of(cls, environ: Mapping[str, str], secret_names: Iterable[str]) -> Redactor:
        """The redactor of this process: values of the declared secrets, home folder, user and host name."""
        values = [environ[name] for name in secret_names if environ.get(name)]
        return cls(values, os.path.expanduser("~"), _user_name(), socket.gethostname())

    def text(self, text: str) -> str:
        """The text without secrets, token-like strings, e-mail addresses, home folder, user and host name."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for shape in _TOKEN_SHAPES:
            text = shape.sub(HIDDEN, text)
        text = _KEYED.sub(lambda match: match[1] + HIDDEN, text)
        text = _QUERY.sub(lambda match: match[1] + HIDDEN, text)
        text = _EMAIL.sub("<email>", text)
        if self._home:
            text = re.sub(re.escape(self._home) + r"(?![\w.-])", "~", text)
        if self._user:
            text = self._user.sub("<user>", text)
        for pattern in self._hosts:
            text = pattern.sub("<host>", text)
        return text

    def tree(self, value: Any) -> Any:
        """The same for every text inside a JSON value; object keys that carry a secret are replaced too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.tree(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.tree(item) for item in value]
        return value


def _spellings(secrets: Iterable[str]) -> list[str]:
    found: set[str] = set()
    for secret in secrets:
        lines = [line for line in secret.splitlines() if len(line) >= _SHORTEST_LINE]
        for text in (secret, secret.strip(), *lines):
            if len(text) >= _SHORTEST_SECRET:
                # A secret also shows up inside a repr, a JSON text or a URL.
                found.update((text, repr(text)[1:-1], quote(text, safe="")))
    return sorted(found, key=len, reverse=True)


def _name_pattern(name: str) -> re.Pattern[str] | None:
    if len(name) < _SHORTEST_NAME or name.lower() in _COMMON_NAMES:
        return None
    return re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
