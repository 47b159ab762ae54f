"""Keeps secrets, names of people and names of machines out of everything the probe writes."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable
from typing import Any

from ..core.redact import redact, secret_spellings
from .model import Environ

_SHORTEST_NAME = 3
_COMMON_NAMES = frozenset(
    {
        "localhost",
        "root",
        "user",
        "none",
        "linux",
        "debian",
        "ubuntu",
        "python",
        "torch",
        "jupyter",
        "colab",
        "content",
        "admin",
        "nobody",
        "runner",
    }
)
# Begins where a run of these characters begins, so that each is read once.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")


class Redactor:
    """Removes what must not be published from text; made once in each process."""

    def __init__(
        self, secrets: Iterable[str] = (), home: str = "", user: str = "", host: str = ""
    ) -> None:
        self._secrets = secret_spellings(secrets)
        self._home = home.rstrip("/\\") if len(home.rstrip("/\\")) > 1 else ""
        self._user = _name_pattern(user)
        # The whole name first: what is left of it without its domain is a name too.
        self._hosts = tuple(
            pattern
            for pattern in (_name_pattern(host), _name_pattern(host.partition(".")[0]))
            if pattern
        )

    @classmethod
    def of(cls, environ: Environ, secret_names: Iterable[str]) -> Redactor:
        """Return the redactor of this process: secret values, home folder, user and host name."""
        return cls(
            [environ[name] for name in secret_names if environ.get(name)],
            os.path.expanduser("~"),
            _user_name(),
            socket.gethostname(),
        )

    def text(self, text: str) -> str:
        """Return a text without secrets, token-like strings, addresses, home, user and host."""
        text = redact(text, self._secrets)
        text = _EMAIL.sub("<email>", text)
        if self._home:
            text = re.sub(re.escape(self._home) + r"(?![\w.-])", "~", text)
        if self._user:
            text = self._user.sub("<user>", text)
        for pattern in self._hosts:
            text = pattern.sub("<host>", text)
        return text

    def tree(self, value: Any) -> Any:
        """Return a JSON value without them, in keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.tree(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.tree(item) for item in value]
        return value


def _name_pattern(name: str) -> re.Pattern[str] | None:
    if len(name) < _SHORTEST_NAME or name.lower() in _COMMON_NAMES:
        return None
    return re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
