"""Observes declared secrets and credential files: existence and readers, never a value."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from ..context import ObserverContext
from ..model import Readings
from .folders import hf_home

_SHORTEST = 8
"""Own choice: no service gives out tokens as short as that; `xxx` and `todo` stand for one that is
still to come.
"""


def _declared(context: ObserverContext) -> Readings:
    return {
        f"secret.{name}": _state(context.environ.get(name)) for name in context.expected.secrets
    }


def _state(value: str | None) -> str:
    if value is None or not value.strip():
        return "unset" if not value else "blank"
    if value != value.strip():
        return "with white space around it"
    return "set" if len(value) >= _SHORTEST else "short"


def _files(context: ObserverContext) -> Readings:
    reported = {kind: _who_reads(path, named) for kind, path, named in _places(context)}
    return {"credentials.files": {kind: who for kind, who in reported.items() if who}}


def _places(context: ObserverContext) -> Iterator[tuple[str, str, bool]]:
    """Each kind of credentials with its file, and whether a variable names that file."""
    environ, home = context.environ, context.environ.get("HOME") or os.path.expanduser("~")
    yield (
        "Hugging Face",
        environ.get("HF_TOKEN_PATH") or os.path.join(hf_home(environ), "token"),
        "HF_TOKEN_PATH" in environ,
    )
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    yield (
        "Google Cloud",
        named or os.path.join(home, ".config/gcloud/application_default_credentials.json"),
        bool(named),
    )
    yield (
        "Kaggle",
        os.path.join(
            environ.get("KAGGLE_CONFIG_DIR") or os.path.join(home, ".kaggle"), "kaggle.json"
        ),
        False,
    )
    yield (
        "netrc (Weights & Biases, pip, git)",
        environ.get("NETRC") or os.path.join(home, ".netrc"),
        "NETRC" in environ,
    )


def _who_reads(path: str, named: bool) -> str:
    """Return "only the owner", "others (mode 0644)" or "nobody: REASON"; "" for no file."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError as error:
        return f"nobody: {error.strerror}" if named else ""
    return f"others (mode {mode:04o})" if mode & (stat.S_IRGRP | stat.S_IROTH) else "only the owner"


OBSERVERS = {"Y01": _declared, "Y02": _files}
